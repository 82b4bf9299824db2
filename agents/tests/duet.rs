//! Duets with the native load generator as real processes: both targets run, and are loaded in turns.

use brewbench_agent::run::duet;
use brewbench_wire::engine::EngineKind;
use brewbench_wire::job::{Job, Partner};
use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::reports::read::parse_own;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::{REQUESTS, Scenario};
use brewbench_wire::{Phase, RunId};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, vus};

/// Returns the jobs of a duet of two targets.
pub fn jobs([target, other]: [&str; 2]) -> [Job; 2] {
    let usual = job(target);
    let scenario = Scenario::of_script("test", "").with_file(REQUESTS, "[[request]]\npath = \"/\"\n");
    let native = Some(EngineKind::Native);
    let spec = RunSpec { requested_engine: native, load: Some(vus(2, 1_500)), duet: true, ..usual.spec };
    let partner = Some(Partner { run: RunId::now(), target: other.to_owned() });
    let job = Job { scenario, spec, partner, ..usual };
    let partner = job.of_partner().expect("a partner");
    assert_eq!((job.fault(), partner.fault()), (None, None));
    [job, partner]
}

async fn run(bench: &Bench, jobs: &[Job; 2], cancel: &CancellationToken, measuring: &Notify) -> [Outcome; 2] {
    let on_phase = |_, phase| {
        if phase == Phase::Measuring {
            measuring.notify_one();
        }
    };
    let outcomes = duet::run(jobs.each_ref(), &bench.work, cancel, on_phase).await;
    for job in jobs {
        bench.assert_clean(job.run);
    }
    outcomes
}

#[tokio::test]
async fn both_targets_are_measured_for_the_same_time_in_turns() {
    let Some(bench) = Bench::new("duet").await else { return };
    bench.offer("good", "");
    bench.offer("various", "");
    let jobs = jobs(["good", "various"]);
    let outcomes = run(&bench, &jobs, &CancellationToken::new(), &Notify::new()).await;
    for (outcome, job) in outcomes.iter().zip(&jobs) {
        assert_eq!((&outcome.ended, outcome.run), (&Ended::Finished, job.run), "{}", outcome.generator_log);
        let record = outcome.conditions.load_record.as_ref().expect("a record");
        // 16 turns of 95 ms each in 16 pairs of 200 ms.
        assert_eq!((record.regular_ms, record.open_ms), (Some(3_200), Some(1_520)));
        let summary = parse_own(outcome.summary.as_deref().expect("a summary").as_bytes()).expect("its own");
        let figures = summary.figures_over(outcome.conditions.load_time);
        assert!(figures.requests > 100 && (figures.measured_ms - 1_520.0).abs() < 1.0, "{figures:?}");
        let (rps, in_turns) = (figures.rps, figures.requests as f64 / 1.52);
        assert!(rps > 0.9 * in_turns && rps <= in_turns, "{rps} of {in_turns}");
    }
}

#[tokio::test]
async fn if_one_target_fails_both_runs_fail_and_nothing_is_left() {
    let Some(bench) = Bench::new("broken duet").await else { return };
    bench.offer("good", "");
    bench.offer("dead", "");
    let [good, dead] = run(&bench, &jobs(["good", "dead"]), &CancellationToken::new(), &Notify::new()).await;
    let Ended::Failed { reason: why, .. } = dead.ended else { panic!("{:?}", dead.ended) };
    let Ended::Failed { reason, .. } = good.ended else { panic!("{:?}", good.ended) };
    assert_eq!(reason, format!("the other target of the duet, dead, failed: {why}"));
}

#[tokio::test]
async fn a_cancellation_ends_both_runs() {
    let Some(bench) = Bench::new("cancelled duet").await else { return };
    bench.offer("good", "");
    let (cancel, measuring) = (CancellationToken::new(), Notify::new());
    let cancelling = async {
        measuring.notified().await;
        cancel.cancel();
    };
    let jobs = jobs(["good", "good"]);
    let (outcomes, ()) = tokio::join!(run(&bench, &jobs, &cancel, &measuring), cancelling);
    assert_eq!(outcomes.map(|outcome| outcome.ended), [Ended::Cancelled, Ended::Cancelled]);
}

#[tokio::test]
async fn targets_that_do_not_fit_into_the_memory_together_are_refused() {
    let Some(bench) = Bench::new("big duet").await else { return };
    bench.offer("good", "");
    let mut jobs = jobs(["good", "good"]);
    for job in &mut jobs {
        let memory_bytes = brewbench_agent::host::machine::memory_bytes() / 3 * 2;
        job.spec.size = job.spec.size.take().map(|size| brewbench_wire::job::Size { memory_bytes, ..size });
    }
    let [one, _] = run(&bench, &jobs, &CancellationToken::new(), &Notify::new()).await;
    let Ended::Failed { reason, .. } = one.ended else { panic!("{:?}", one.ended) };
    assert!(
        reason.starts_with("a duet of the size 1 vCPU / 64 MiB needs ") || reason.contains("other target"),
        "{reason}"
    );
}
