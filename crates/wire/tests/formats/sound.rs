//! What holds for every report that was read; also for those of `examples/fuzz-reports.rs`.

use brewbench_wire::reports::report::{Latencies, Report};
use brewbench_wire::reports::summary::{Figures, Latency};

/// Checks that the values of a report could have been measured.
pub fn check(report: &Report) -> Result<(), String> {
    let Report { requests, failed, rate_per_s, duration, load, blocked_ms, .. } = report;
    let is_counted = requests.zip(*failed).is_none_or(|(requests, failed)| failed <= requests);
    let sound = |value: Option<f64>| value.is_none_or(|value| value.is_finite() && value >= 0.0);
    let numbers = [*rate_per_s, load.rate_per_s, report.received_per_s, *blocked_ms, duration.map(|time| time.ms)];
    let times = [&report.latency, &report.ok_latency, &report.first_byte];
    let is_sound = is_counted
        && numbers.into_iter().all(sound)
        && times.into_iter().all(of_latencies)
        && report.others.values().all(|value| value.is_finite());
    if !is_sound {
        return Err(format!("can't have been measured: {report:?}"));
    }
    report.figures().map_or(Ok(()), |figures| of_figures(&figures))
}

/// Checks the main metrics of a run.
pub fn of_figures(figures: &Figures) -> Result<(), String> {
    let sound = |value: f64| value.is_finite() && value >= 0.0;
    let Figures { requests, failed, rps, measured_ms, latency, ok_latency, ttfb_p95_ms, blocked_ms, .. } = figures;
    let of_latency = |of: &Latency| {
        [of.avg_ms, of.min_ms, of.p50_ms, of.p90_ms, of.p95_ms, of.p99_ms, of.p999_ms, of.max_ms]
            .into_iter()
            .flatten()
            .all(sound)
    };
    let is_sound = failed.is_none_or(|failed| failed <= *requests)
        && sound(*rps)
        && sound(*measured_ms)
        && of_latency(latency)
        && of_latency(ok_latency)
        && [*ttfb_p95_ms, *blocked_ms].into_iter().flatten().all(sound);
    if is_sound { Ok(()) } else { Err(format!("can't have been measured: {figures:?}")) }
}

fn of_latencies(latency: &Latencies) -> bool {
    let ends = [latency.min, latency.mean, latency.max, latency.stddev].into_iter().flatten();
    let mut times = ends.chain(latency.percentiles.iter().map(|one| one.time));
    times.all(|time| time.ms.is_finite() && time.ms >= 0.0 && !time.error_ms.is_nan())
}
