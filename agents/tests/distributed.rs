//! Distributed runs, each participant with a real k6: they start simultaneously, their parts add up, and nothing is
//! left.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use brewbench_agent::run::barrier::{Gates, Opening};
use brewbench_agent::run::context::RunContext;
use brewbench_agent::run::execute;
use brewbench_wire::engine::EngineKind;
use brewbench_wire::job::{Job, Role, Segment};
use brewbench_wire::load::{Form, Load, Open};
use brewbench_wire::messages::Gate;
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::reports::formats::native;
use brewbench_wire::reports::read::parse_own;
use brewbench_wire::reports::summary::Figures;
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::scenario::REQUESTS;
use brewbench_wire::{Phase, now_ms};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, vus};

/// Address of the target: loopback, but not the address used in a run of one agent.
const ADDRESS: [u8; 4] = [127, 0, 0, 2];

/// A participant's report that it is at a gate.
type Report = (usize, Gate, Option<String>);

/// Acts as the server: opens a gate once all participants are there, if `opens` allows it.
async fn open_gates(
    mut reports: mpsc::UnboundedReceiver<Report>,
    participants: Vec<watch::Sender<Option<Opening>>>,
    opens: impl Fn(Gate) -> bool,
) {
    let mut at: Vec<Option<Gate>> = vec![None; participants.len()];
    let mut serves = None;
    while let Some((participant, gate, base_url)) = reports.recv().await {
        at[participant] = Some(gate);
        serves = base_url.or(serves);
        if at.iter().all(|place| *place == Some(gate)) && opens(gate) {
            let base_url = serves.clone().expect("the target serves before it is loaded");
            let opening = Opening { gate, at_ms: now_ms() + 100, base_url };
            for participant in &participants {
                participant.send_replace(Some(opening.clone()));
            }
        }
    }
}

/// Creates a bench for each participant: the host and the generators.
async fn benches(name: &str, generators: usize) -> Option<Vec<Bench>> {
    let mut all = Vec::new();
    for number in 0..=generators {
        let mut bench = Bench::new(&format!("{name} {number}")).await?;
        bench.work = RunContext { load_address: Some(ADDRESS.into()), ..bench.work };
        all.push(bench);
    }
    all[0].offer_at("good", "{host}:{port}", "");
    Some(all)
}

/// Executes a run with all participants; returns their outcomes and the phases reported by the host.
async fn run_distributed(
    benches: &[Bench],
    job: &Job,
    opens: impl Fn(Gate) -> bool,
    cancel: &CancellationToken,
) -> (Vec<Outcome>, Vec<Phase>) {
    let (report, reports) = mpsc::unbounded_channel::<Report>();
    let phases = Arc::new(Mutex::new(Vec::new()));
    let (mut parts, mut participants) = (Vec::new(), Vec::new());
    for (place, bench) in benches.iter().enumerate() {
        let of = u32::try_from(benches.len() - 1).expect("few");
        let role = match u32::try_from(place).expect("few").checked_sub(1) {
            None => Role::Host,
            Some(index) => Role::Generator(Segment { index, of }),
        };
        let (open, opened) = watch::channel(None);
        participants.push(open);
        let (report, phases) = (report.clone(), Arc::clone(&phases));
        let gates = Gates::new(move |gate, base_url| drop(report.send((place, gate, base_url))), opened);
        let job = Job { role, ..job.clone() };
        parts.push(async move {
            let on_phase = |phase| phases.lock().expect("not poisoned").push(phase);
            let outcome = execute::run_part(&job, &bench.work, gates, cancel, on_phase).await;
            if outcome.ended != Ended::Finished {
                // As the server does: if one participant fails, the others are cancelled.
                cancel.cancel();
            }
            outcome
        });
    }
    drop(report);
    let (outcomes, ()) = tokio::join!(futures_util::future::join_all(parts), open_gates(reports, participants, opens));
    for bench in benches {
        bench.assert_clean(job.run);
    }
    let phases = phases.lock().expect("not poisoned").clone();
    (outcomes, phases)
}

fn metric(outcome: &Outcome, metric: &str, value: &str) -> f64 {
    let summary = outcome.summary.as_deref().expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(summary).expect("JSON");
    summary["metrics"][metric][value].as_f64().unwrap_or_else(|| panic!("{metric} {value}: {summary}"))
}

fn measuring_since(outcome: &Outcome) -> i64 {
    outcome.times.iter().find(|time| time.phase == Phase::Measuring).expect("measured").at_ms
}

#[tokio::test]
async fn two_generators_load_one_target_simultaneously_with_their_segments() {
    let Some(benches) = benches("together", 2).await else { return };
    let job = Job { spec: RunSpec { load: Some(vus(3, 2_000)), ..job("good").spec }, ..job("good") };
    let (outcomes, phases) = run_distributed(&benches, &job, |_| true, &CancellationToken::new()).await;
    assert_eq!(phases, [Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting]);
    for outcome in &outcomes {
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    }
    let [host, generators @ ..] = &outcomes[..] else { panic!("parts") };
    assert!(host.summary.is_none() && host.generator_log.is_empty() && host.target_log.starts_with("unruly is good"));
    assert_eq!(host.environment["target.command"].matches("{host}").count(), 1);
    let usage = host.series.as_ref().expect("a series").unpack().expect("unpacked").measured.expect("measured").usage;
    assert!(usage.iter().any(|sample| sample.target.memory_bytes > Some(0)), "{usage:?}");
    // Three virtual users: one on one generator, two on the other, and never more in total.
    let mut users: Vec<f64> = generators.iter().map(|part| metric(part, "vus_max", "max")).collect();
    users.sort_by(f64::total_cmp);
    assert_eq!(users, [1.0, 2.0]);
    for part in generators {
        let (count, rate) = (metric(part, "http_reqs", "count"), metric(part, "http_reqs", "rate"));
        // The time it waited for the others is not part of its duration.
        let seconds = count / rate;
        assert!((1.9..2.9).contains(&seconds), "{seconds} s");
        let window = part.series.as_ref().expect("a series").unpack().expect("unpacked").measured.expect("measured");
        let counted: u64 = window.seconds.iter().map(brewbench_wire::series::Second::requests).sum();
        assert!((counted as f64 - count).abs() < 0.5, "{counted} of {count}");
        assert!(window.start_ms >= measuring_since(part) - 50, "the series starts with the load");
        assert!(part.target.is_none() && part.cores.target.is_empty() && !part.cores.generator.is_empty());
    }
    let apart = (measuring_since(&generators[0]) - measuring_since(&generators[1])).abs();
    println!("the generators started {apart} ms apart");
}

#[tokio::test]
async fn two_native_generators_start_together_and_have_each_request_once() {
    let Some(benches) = benches("native", 2).await else { return };
    let list = "[[request]]\npath = \"/\"\n";
    let open = Open::new(Form::Constant { level: 101, duration_ms: 2_000 }, Some(10)).expect("a load");
    let (usual, requested_engine) = (job("good"), Some(EngineKind::Native));
    let job = Job {
        spec: RunSpec { load: Some(Load::Open(open)), requested_engine, ..usual.spec },
        scenario: usual.scenario.with_file(REQUESTS, list),
        ..usual
    };
    let (outcomes, _) = run_distributed(&benches, &job, |_| true, &CancellationToken::new()).await;
    let summaries: Vec<&str> = outcomes.iter().filter_map(|outcome| outcome.summary.as_deref()).collect();
    assert_eq!(summaries.len(), 2, "{:?}", outcomes.iter().map(|outcome| &outcome.ended).collect::<Vec<_>>());
    let figures = |text: &str| parse_own(text.as_bytes()).expect("its own").figures();
    let sum = figures(&native::merged(&summaries).expect("a sum"));
    assert_eq!((sum.requests + sum.dropped_iterations.expect("counted"), sum.failed), (202, Some(0)));
    let parts: Vec<Figures> = summaries.iter().map(|text| figures(text)).collect();
    assert_eq!(parts.iter().map(|part| part.requests).sum::<u64>(), sum.requests);
    assert!(parts.iter().all(|part| part.requests >= 90), "{parts:?}");
    let slowest = parts.iter().filter_map(|part| part.latency.max_ms).fold(0.0, f64::max);
    assert_eq!(sum.latency.max_ms, Some(slowest));
    for part in &outcomes[1..] {
        let window = part.series.as_ref().expect("a series").unpack().expect("unpacked").measured.expect("measured");
        assert!(window.start_ms >= measuring_since(part) - 50, "the series starts with the load");
    }
}

#[tokio::test]
async fn a_run_cancelled_at_a_gate_or_under_load_leaves_nothing_behind() {
    let Some(benches) = benches("cancelled", 2).await else { return };
    for last in [None, Some(Gate::Load), Some(Gate::Measure)] {
        let cancel = CancellationToken::new();
        let job = Job { spec: RunSpec { load: Some(vus(2, 600_000)), ..job("good").spec }, ..job("good") };
        let stop = cancel.clone();
        // At the gate after the last one that opens all participants wait, or k6 is running.
        let opens = move |gate| {
            let open = last.is_some_and(|last| gate <= last);
            let is_end = gate == Gate::Measure || !open;
            if is_end {
                let stop = stop.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    stop.cancel();
                });
            }
            open
        };
        let (outcomes, _) = run_distributed(&benches, &job, opens, &cancel).await;
        assert!(outcomes.iter().all(|outcome| outcome.ended == Ended::Cancelled), "{last:?}: {outcomes:?}");
        if last == Some(Gate::Measure) {
            // The target's log is kept to explain why the others stopped.
            assert!(outcomes[0].target_log.starts_with("unruly is good"), "{:?}", outcomes[0]);
        }
    }
}

#[tokio::test]
async fn load_from_other_machines_must_be_allowed() {
    let Some(mut benches) = benches("owner", 1).await else { return };
    benches[0].work.load_address = None;
    let cancel = CancellationToken::new();
    let gates = Gates::new(|_, _| (), watch::channel(None).1);
    let host = Job { role: Role::Host, ..job("good") };
    let outcome = execute::run_part(&host, &benches[0].work, gates, &cancel, |_| {}).await;
    let Ended::Failed { reason, .. } = outcome.ended else { panic!("{outcome:?}") };
    assert!(reason.contains("--load-address"), "{reason}");

    // A server can't make the agent load public addresses.
    let opening = Opening { gate: Gate::Load, at_ms: 0, base_url: "http://8.8.8.8:80".to_owned() };
    let gates = Gates::new(|_, _| (), watch::channel(Some(opening)).1);
    let generator = Job { role: Role::Generator(Segment { index: 0, of: 1 }), ..job("good") };
    let outcome = execute::run_part(&generator, &benches[1].work, gates, &cancel, |_| {}).await;
    let Ended::Failed { reason, cause: Cause::Generator } = outcome.ended else { panic!("{outcome:?}") };
    assert!(reason.contains("8.8.8.8 is not a private address"), "{reason}");
}
