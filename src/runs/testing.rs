//! Fixture runs for unit tests.

use brewbench_wire::target::TargetKind;

use super::load::tests::vus;
use crate::{
    catalog::model::Engine,
    metrics::Figures,
    runs::{
        model::{Origin, Run, RunEnforced, RunSize, RunSpec},
        verdict::{Reason, Verdict},
    },
};

const STARTED: i64 = 1_772_626_394_000;

/// A valid run that took 18 s: 10,000 requests/s, p50 4 ms, p99 16 ms.
pub fn finished(target: &str, repetition: u32) -> Run {
    Run {
        verdict: Some(Verdict::Valid),
        figures: Figures {
            requests: Some(100_000),
            failed: Some(0),
            error_rate: Some(0.0),
            rps: Some(10_000.0),
            avg_ms: Some(5.0),
            min_ms: Some(0.1),
            p50_ms: Some(4.0),
            p90_ms: Some(8.0),
            p95_ms: Some(10.0),
            p99_ms: Some(16.0),
            p999_ms: Some(20.0),
            max_ms: Some(30.0),
            cpu_ms_per_request: Some(0.1),
            held_memory_bytes: Some(20 << 20),
            measured_s: Some(10.0),
            ..Figures::default()
        },
        enforced: Some(RunEnforced { cpu: "cgroup2".to_owned(), memory: "cgroup2".to_owned() }),
        engine: Some(Engine { name: "k6".to_owned(), version: Some("1.8.1".to_owned()) }),
        target_kind: Some(TargetKind::Process),
        target_identity: Some("00aa".to_owned()),
        finished_at_ms: Some(STARTED + 18_000),
        ..started(target, repetition, "finished")
    }
}

/// Changes the figures of a run.
pub fn figured(mut run: Run, change: impl FnOnce(&mut Figures)) -> Run {
    change(&mut run.figures);
    run
}

/// A run that is being measured.
pub fn measuring(target: &str) -> Run {
    started(target, 3, "measuring")
}

/// A run that ended without results.
pub fn failed(target: &str, phase: &str, error: &str) -> Run {
    Run { error: Some(error.to_owned()), finished_at_ms: Some(STARTED + 4_000), ..started(target, 1, phase) }
}

/// Sets the verdict of a run, with one reason.
pub fn judged(mut run: Run, verdict: Verdict, text: &str) -> Run {
    run.verdict = Some(verdict);
    let (code, text) = ("fixture".to_owned(), text.to_owned());
    run.reasons = vec![Reason { code, verdict, text, observed: None, limit: None, unit: None }];
    run
}

/// What these runs measure.
pub fn spec(target: &str) -> RunSpec {
    let size = RunSize { name: "2 vCPU / 4 GiB".to_owned(), vcpus: 2.0, memory_bytes: 4 << 30, replicas: 1 };
    let spec = RunSpec {
        target: target.to_owned(),
        size: Some(size),
        scenario: Some("hash".to_owned()),
        scenario_sha256: Some("00aa00aa11bb11bb".to_owned()),
        warm_up_s: Some(2.0),
        ..RunSpec::default()
    };
    spec.under(vus(10, 10.0))
}

fn started(target: &str, repetition: u32, phase: &str) -> Run {
    Run {
        id: format!("{target}-{repetition}").into(),
        experiment: Some("e".to_owned().into()),
        retry_of: None,
        labels: Vec::new(),
        note: None,
        origin: Origin::Agent,
        interleaved: true,
        version: Some("1.0".to_owned()),
        spec: spec(target),
        repetition,
        phase: phase.parse().expect("a phase"),
        verdict: None,
        reasons: Vec::new(),
        error: None,
        figures: Figures::default(),
        enforced: None,
        agent: Some("bench-01".to_owned()),
        engine: None,
        target_kind: None,
        target_identity: None,
        created_by: "ada".to_owned(),
        queued_at_ms: STARTED - 2_000,
        phase_at_ms: STARTED + 5_000,
        started_at_ms: Some(STARTED),
        finished_at_ms: None,
    }
}
