//! Fixtures for this module's tests.

pub use crate::runs::testing::{figured, judged};
use crate::runs::{
    model::{Run, RunSize},
    testing,
};

/// A valid run with round figures: 10,000 requests/s, p50 4 ms, p99 16 ms.
pub fn run(target: &str, repetition: u32) -> Run {
    let run = Run {
        experiment: Some("night".to_owned().into()),
        target_identity: Some(format!("{target}-sum")),
        ..testing::finished(target, repetition)
    };
    figured(run, |figures| {
        figures.data_received_bytes = Some(2e7);
        figures.received_per_s = Some(2e6);
    })
}

/// A valid run on another machine size; throughput grows with the square root of the cores.
pub fn sized(target: &str, repetition: u32, vcpus: f64) -> Run {
    let name = format!("{vcpus} vCPU / {} GiB", 2.0 * vcpus);
    let mut run = faster(run(target, repetition), vcpus.sqrt());
    run.id = format!("{target}-{vcpus}-{repetition}").into();
    run.spec.size = Some(RunSize { name, vcpus, memory_bytes: 1 << 33, replicas: 1 });
    run
}

/// Multiplies the throughput by a factor and divides the latencies by it.
pub fn faster(mut run: Run, factor: f64) -> Run {
    // All counts over the same duration grow.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float to integer cast saturates")]
    let scaled = |count: u64| (count as f64 * factor).round() as u64;
    run.figures.requests = run.figures.requests.map(scaled);
    for more in [&mut run.figures.rps, &mut run.figures.data_received_bytes, &mut run.figures.received_per_s] {
        *more = more.map(|value| value * factor);
    }
    for less in [
        &mut run.figures.avg_ms,
        &mut run.figures.p50_ms,
        &mut run.figures.p90_ms,
        &mut run.figures.p95_ms,
        &mut run.figures.p99_ms,
        &mut run.figures.max_ms,
    ] {
        *less = less.map(|value| value / factor);
    }
    run
}

/// A failed run without figures.
pub fn failed(mut run: Run, error: &str) -> Run {
    run.phase = brewbench_wire::Phase::Failed;
    run.error = Some(error.to_owned());
    run.verdict = None;
    for figure in [
        &mut run.figures.rps,
        &mut run.figures.avg_ms,
        &mut run.figures.p50_ms,
        &mut run.figures.p90_ms,
        &mut run.figures.p95_ms,
        &mut run.figures.p99_ms,
        &mut run.figures.max_ms,
    ] {
        *figure = None;
    }
    run
}

/// Six repetitions within one percent: enough for the tests of a page with two or three cells.
pub fn repeated(make: impl Fn(u32) -> Run) -> Vec<Run> {
    (1..=6).zip([0.995, 1.0, 1.005, 0.998, 1.002, 1.0]).map(|(n, factor)| faster(make(n), factor)).collect()
}
