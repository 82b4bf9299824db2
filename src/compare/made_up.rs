//! Made-up runs for this slice's tests.

use std::collections::BTreeMap;

use crate::runs::{Origin, Reason, Run, RunEnforced, RunSize, Verdict};

/// A valid run with round figures: 10,000 requests/s, p50 4 ms, p99 16 ms.
pub fn run(target: &str, repetition: u32) -> Run {
    Run {
        id: format!("{target}-{repetition}"),
        experiment: None,
        origin: Origin::Agent,
        target: target.to_owned(),
        version: Some("1.0".to_owned()),
        size: Some(RunSize { name: "2 vCPU / 4 GiB".to_owned(), vcpus: 2.0, memory_bytes: 4 << 30 }),
        scenario: Some("hash".to_owned()),
        scenario_sha256: Some("00aa00aa11bb11bb".to_owned()),
        parameters: BTreeMap::new(),
        vus: Some(10),
        repetition,
        phase: "finished".to_owned(),
        verdict: Some(Verdict::Valid),
        reasons: Vec::new(),
        error: None,
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
        data_received_bytes: Some(2e7),
        data_sent_bytes: Some(1e7),
        iterations: Some(100_000),
        dropped_iterations: Some(0),
        checks_passed: Some(100_000),
        checks_failed: Some(0),
        thresholds: Some(0),
        thresholds_failed: Some(0),
        warm_up_s: Some(2.0),
        measured_s: Some(10.0),
        duration_s: Some(10.0),
        enforced: Some(RunEnforced { cpu: "cgroup2".to_owned(), memory: "cgroup2".to_owned() }),
        agent: Some("bench-01".to_owned()),
        k6_version: Some("1.8.1".to_owned()),
        target_sha256: Some(format!("{target}-sum")),
        created_by: "ada".to_owned(),
        queued_at_ms: 1_772_626_394_000,
        phase_at_ms: 1_772_626_414_000,
        started_at_ms: Some(1_772_626_396_000),
        finished_at_ms: Some(1_772_626_414_000),
    }
}

/// The same on a machine of another size.
pub fn sized(target: &str, repetition: u32, vcpus: f64) -> Run {
    let name = format!("{vcpus} vCPU / {} GiB", 2.0 * vcpus);
    let mut run = faster(run(target, repetition), vcpus.sqrt());
    run.id = format!("{target}-{vcpus}-{repetition}");
    run.size = Some(RunSize { name, vcpus, memory_bytes: 1 << 33 });
    run
}

/// Throughput times a factor, latency by the same factor less.
pub fn faster(mut run: Run, factor: f64) -> Run {
    for more in [&mut run.rps, &mut run.data_received_bytes] {
        *more = more.map(|value| value * factor);
    }
    for less in [&mut run.avg_ms, &mut run.p50_ms, &mut run.p90_ms, &mut run.p95_ms, &mut run.p99_ms, &mut run.max_ms] {
        *less = less.map(|value| value / factor);
    }
    run
}

/// Judged as something else than valid.
pub fn judged(mut run: Run, verdict: Verdict, text: &str) -> Run {
    run.verdict = Some(verdict);
    run.reasons = vec![Reason { code: "made_up".to_owned(), verdict, text: text.to_owned() }];
    run
}

/// Failed without figures.
pub fn failed(mut run: Run, error: &str) -> Run {
    run.phase = "failed".to_owned();
    run.error = Some(error.to_owned());
    run.verdict = None;
    for figure in [
        &mut run.rps,
        &mut run.avg_ms,
        &mut run.p50_ms,
        &mut run.p90_ms,
        &mut run.p95_ms,
        &mut run.p99_ms,
        &mut run.max_ms,
    ] {
        *figure = None;
    }
    run
}

/// Three repetitions that differ by a percent.
pub fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
    (1..=3).zip([0.995, 1.0, 1.005]).map(|(repetition, factor)| faster(make(repetition), factor)).collect()
}
