//! The native load generator as a real child process: what it reports is what the target counted, to the request.

use brewbench_agent::run::execute;
use brewbench_testing::Counter;
use brewbench_wire::engine::EngineKind;
use brewbench_wire::job::Job;
use brewbench_wire::load::{Form, Load, Open};
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::reports::read::parse_own;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::{REQUESTS, Scenario};
use brewbench_wire::series::Second;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, vus};

const LIST: &str = "[[request]]\npath = \"/load\"\nweight = 3\n[[request]]\npath = \"/load/${WHICH}\"\n";

async fn run(target: &str, list: &str, load: Load) -> Option<Outcome> {
    run_with(EngineKind::Native, target, list, load).await
}

/// Runs a list against a target that is running.
pub async fn run_with(engine: EngineKind, target: &str, list: &str, load: Load) -> Option<Outcome> {
    let port = target.rsplit(':').next().unwrap_or_default();
    let bench = Bench::new(&format!("{} {port}", engine.as_str())).await?;
    let manifest = format!("name = \"counter\"\nversion = \"1\"\n[url]\nbase = \"{target}\"\n[ready]\npath = \"/\"\n");
    std::fs::write(bench.work.targets.join("counter.toml"), manifest).expect("a manifest");
    let usual = job("counter");
    let scenario = Scenario::of_script("test", "").with_file(REQUESTS, list).with_default("WHICH", "bad");
    let spec = RunSpec { requested_engine: Some(engine), load: Some(load), ..usual.spec };
    let job = Job { scenario, spec, ..usual };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    Some(outcome)
}

#[tokio::test]
async fn every_request_of_a_load_is_counted_once() {
    let open = Open::new(Form::Constant { level: 200, duration_ms: 2_000 }, Some(20)).expect("a load");
    for load in [vus(5, 2_000), Load::Open(open)] {
        let target = Counter::start();
        let Some(outcome) = run(&target.base, LIST, load.clone()).await else { return };
        assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
        let summary = parse_own(outcome.summary.as_deref().expect("a summary").as_bytes()).expect("its own");
        let figures = summary.figures_over(outcome.conditions.load_time);
        let warm_up = outcome.series.as_ref().and_then(|packed| packed.unpack().ok()).expect("a series");
        let requests = |seconds: &[Second]| seconds.iter().map(Second::requests).sum::<u64>();
        let warmed = requests(&warm_up.warm_up.expect("a warm-up").seconds);
        let measured = warm_up.measured.expect("a load");
        // Those in progress at the end of the warm-up are in no figure.
        let unknown = target.count("/load").checked_sub(figures.requests + warmed);
        assert!(unknown.is_some_and(|unknown| unknown <= 20), "{load:?}: {unknown:?}, {figures:?}");
        assert_eq!(requests(&measured.seconds), figures.requests, "{load:?}");
        assert!(measured.seconds.iter().all(|second| second.succeeded.schema() == 5), "an hour can be stored");
        let statuses = outcome.work.statuses.as_ref().expect("statuses");
        assert_eq!(statuses.values().sum::<u64>(), figures.requests, "{statuses:?}");
        assert_eq!(statuses.get("500").copied(), figures.failed, "{statuses:?}");
        assert!(figures.failed.is_some_and(|failed| failed > 0 && 2 * failed < figures.requests), "{figures:?}");
        assert!(outcome.engine.is_some_and(|engine| engine.name == "native"));
        let record = outcome.conditions.load_record.expect("a record");
        assert_eq!((record.regular_ms, record.interrupted_iterations), (Some(2_000), Some(0)));
        assert!(measured.usage.iter().any(|usage| usage.generator.cpu_us.is_some_and(|used| used > 0)), "{measured:?}");
        if let Load::Open(_) = load {
            assert_eq!(figures.requests + figures.dropped_iterations.expect("counted"), 400, "{figures:?}");
        }
    }
}

#[tokio::test]
async fn a_list_that_can_not_be_read_fails_the_run_with_its_line() {
    let target = Counter::start();
    let Some(outcome) = run(&target.base, "[[request]]\npath = 5\n", vus(1, 1_000)).await else { return };
    let Ended::Failed { reason, .. } = outcome.ended else { panic!("{:?}", outcome.ended) };
    assert!(reason.starts_with("requests.toml: line 2: "), "{reason}");
    let Some(outcome) = run(&target.base, LIST, Load::Script).await else { return };
    let Ended::Failed { reason, cause } = outcome.ended else { panic!("{:?}", outcome.ended) };
    assert_eq!(reason, "native 1 can't run a script's own load, which this run needs");
    assert_eq!(cause, Cause::Other);
}
