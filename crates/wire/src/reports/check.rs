//! Checks every report in the same way, and states what must not be believed. Pure.

use crate::reports::formats::format::Format;
use crate::reports::report::{Definition, Latencies, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, ShortNumber};
use crate::reports::warning::Warning;

/// The longest latency, 30 days: longer ones are counters that overflowed.
const TIME_MAX_MS: f64 = 2_592_000_000.0;

/// Plausible durations, from a nanosecond to some 300 years.
pub(super) const DURATION_MS: std::ops::RangeInclusive<f64> = 1e-6..=1e13;

/// Share of the client's timeout around which the slowest request was given up.
const CAPPED: std::ops::RangeInclusive<f64> = 0.99..=1.02;

/// Share of the requested rate that has to be reached.
const RATE_REACHED: f64 = 0.95;

/// Relative error of a mean: a sum of millions of floats.
const ROUNDING: f64 = 1e-6;

/// Checks a report that was read, completes its warnings, and removes values that can't have been measured.
///
/// Fails if values contradict each other: one of them was damaged or edited, and nobody knows which one.
pub(super) fn finish(report: &mut Report, format: &Format) -> Result<(), Fault> {
    report.format = format.name;
    report.load.timeout_ms = report.load.timeout_ms.or(format.timeout_ms);
    if let Some(requests) = report.requests {
        report.failed = report.failed_of(requests);
    }
    plausible(report)?;
    let mut warnings = Vec::new();
    let all = [
        (&mut report.latency, ""),
        (&mut report.ok_latency, " of successful requests"),
        (&mut report.first_byte, " until the first byte"),
    ];
    for (latency, of) in all {
        believable(latency, of, &mut warnings);
        in_order(latency)?;
    }
    without_responses(report, &mut warnings);
    capped(report, &mut warnings);
    load(report, &mut warnings);
    for warning in warnings {
        if !report.warnings.contains(&warning) {
            report.warnings.push(warning);
        }
    }
    Ok(())
}

fn plausible(report: &mut Report) -> Result<(), Fault> {
    let duration = report.duration.map(|time| time.ms);
    if let Some(ms) = duration.filter(|ms| !DURATION_MS.contains(ms)) {
        let what = format!("{} ms is not a plausible duration", ShortNumber(ms));
        return Err(Place::root("the duration").fault(what));
    }
    for (rate, name) in [(&mut report.rate_per_s, "the rate"), (&mut report.load.rate_per_s, "the requested rate")] {
        if let Some(value) = rate.filter(|rate| !rate.is_finite() || *rate < 0.0 || *rate > 1e12) {
            return Err(Place::root(name).fault(format_args!("{} requests/s can't be", ShortNumber(value))));
        }
    }
    if let (Some(failed), Some(requests)) = (report.failed, report.requests)
        && failed > requests
    {
        let what = format!("{failed} of {requests} requests can't have failed");
        return Err(Place::root("failed requests").fault(what));
    }
    for value in [&mut report.received_per_s, &mut report.blocked_ms] {
        *value = value.filter(|value| value.is_finite() && *value >= 0.0);
    }
    report.others.retain(|_, value| value.is_finite());
    Ok(())
}

/// Removes negative times and times that no test can measure.
fn believable(latency: &mut Latencies, of: &str, warnings: &mut Vec<Warning>) {
    let mut is_believable = |name: &dyn std::fmt::Display, time: Time| {
        let statistic = format!("{name}{of}");
        match time.ms {
            ms if !ms.is_finite() => false,
            ms if ms < 0.0 => {
                warnings.push(Warning::NegativeTime { statistic, ms });
                false
            }
            ms if ms > TIME_MAX_MS => {
                warnings.push(Warning::Overflow { statistic, ms });
                false
            }
            _ => true,
        }
    };
    let Latencies { min, mean, max, stddev, percentiles, .. } = latency;
    let ends = [(min, "minimum latency"), (mean, "mean latency"), (max, "maximum latency"), (stddev, "deviation")];
    for (time, name) in ends {
        *time = time.filter(|time| is_believable(&name, *time));
    }
    percentiles.retain(|one| is_believable(&format_args!("p{}", one.percent), one.time));
}

/// Checks that min ≤ percentiles in their order ≤ max and min ≤ mean ≤ max, within the errors of both.
fn in_order(latency: &Latencies) -> Result<(), Fault> {
    let named = |time: Option<Time>, name: &str| time.map(|time| (name.to_owned(), time));
    let (min, max) = (named(latency.min, "the minimum"), named(latency.max, "the maximum"));
    let percentiles = latency.percentiles.iter().map(|one| (format!("p{}", one.percent), one.time));
    let ranked: Vec<_> = min.clone().into_iter().chain(percentiles).chain(max.clone()).collect();
    let pairs = ranked.iter().zip(ranked.iter().skip(1)).map(|(low, high)| (low.clone(), high.clone()));
    let mean = named(latency.mean, "the mean");
    let of_mean = min.zip(mean.clone()).into_iter().chain(mean.zip(max));
    let share = match latency.definition {
        Definition::Histogram | Definition::Estimated | Definition::Buckets => 2e-3,
        _ => ROUNDING,
    };
    for ((low_name, low), (high_name, high)) in pairs.chain(of_mean) {
        let error = low.error_ms + high.error_ms + share * low.ms.abs().max(high.ms.abs());
        if low.ms - high.ms > error * (1.0 + ROUNDING) {
            let (low, high) = (ShortNumber(low.ms), ShortNumber(high.ms));
            let what = format!("{high_name} of {high} ms is below {low_name} of {low} ms: one was damaged or edited");
            return Err(Place::root("latency").fault(what));
        }
    }
    Ok(())
}

/// Forgets the zeros that tools print as latency if nothing was measured.
fn without_responses(report: &mut Report, warnings: &mut Vec<Warning>) {
    let Some(requests) = report.requests else { return };
    let zeros = |latency: &Latencies| {
        let Latencies { min, mean, max, percentiles, .. } = latency;
        let all = [min, mean, max].into_iter().flatten().chain(percentiles.iter().map(|one| &one.time));
        // A zero that was rounded was measured.
        all.into_iter().all(|time| time.ms == 0.0 && time.error_ms == 0.0)
    };
    let all_failed = report.failed == Some(requests);
    if requests > 0 && all_failed {
        warnings.push(Warning::AllFailed { requests });
        report.ok_latency = Latencies::default();
    }
    if requests == 0 || all_failed && zeros(&report.latency) {
        report.latency = Latencies::default();
        report.ok_latency = Latencies::default();
        warnings.push(Warning::NoLatency);
    }
}

fn capped(report: &Report, warnings: &mut Vec<Warning>) {
    let Some((timeout_ms, max)) = report.load.timeout_ms.zip(report.latency.max) else { return };
    // The tool counts them, and there were none.
    if report.failures.get("timeout") == Some(&0) {
        return;
    }
    if timeout_ms > 0.0 && CAPPED.contains(&(max.ms / timeout_ms)) {
        warnings.push(Warning::Capped { timeout_ms });
    }
}

fn load(report: &mut Report, warnings: &mut Vec<Warning>) {
    let load = &report.load;
    if let (Some(requested), Some(failed @ 1..)) = (load.connections, load.connect_errors) {
        warnings.push(Warning::ConnectionsFailed { requested, failed, open: load.open() });
    }
    if let (Some(requested), Some(reached)) = (load.rate_per_s, report.rate_per_s)
        && reached < RATE_REACHED * requested
    {
        warnings.push(Warning::RateMissed { requested, reached });
    }
}
