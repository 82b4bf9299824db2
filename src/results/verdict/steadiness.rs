//! Checks that the measured phase was steady: no trend or step beyond its own noise. Pure.
//!
//! Under a constant number of virtual users only the rate is judged. It determines the mean latency (Little's law:
//! users = rate × latency), and the median of a throttled target jumps between requests with and without a pause,
//! although nothing drifts. At a constant arrival rate only latency can drift.
//!
//! [`drift`](mod@super::drift) separates drift from noise. A drift below the limit is ignored.

use brewbench_agent::{
    series::histogram::Histogram,
    wire::{
        load::{Form, Load},
        series::Second,
    },
};

use super::drift::{Drift, MAX_POINTS, drift};
use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::{Context, SeriesState},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A point with fewer requests is noise and has no usable median.
const MIN_REQUESTS: usize = 20;

/// Several neighbouring seconds.
#[derive(Default)]
struct Point {
    requests: u64,
    seconds: f64,
    latencies: Histogram,
}

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let SeriesState::Series(series) = context.series else { return };
    let Some(load) = context.load.filter(|load| is_constant(load)) else { return };
    let points = points(series.measured.as_ref().map_or(&[], |window| &window.seconds));
    if matches!(load, Load::Closed(_)) {
        let rates: Vec<f64> = points.iter().map(|point| point.requests as f64 / point.seconds).collect();
        let found = drift(&rates);
        let level = |value: f64| format!("{value:.0} requests/s");
        reasons.extend(
            found.and_then(|found| reason("not_steady", "throughput", found, level, limits.get(Limit::NotSteadyRate))),
        );
        return;
    }
    let medians: Option<Vec<f64>> =
        points.iter().map(|point| point.latencies.quantile(0.5).map(|median| median.estimate)).collect();
    let level = |value: f64| format!("{value:.2} ms");
    reasons.extend(medians.as_deref().and_then(drift).and_then(|found| {
        reason("not_steady_p50", "the median latency", found, level, limits.get(Limit::NotSteadyP50))
    }));
}

/// Whether the load is constant; a script's own load is unknown, and stages are not meant to be steady.
fn is_constant(load: &Load) -> bool {
    load.shape().is_some_and(|shape| matches!(shape.form(), Form::Constant { .. }))
}

/// Merges seconds into points with enough requests, without the first and last, in which k6 starts and stops.
fn points(seconds: &[Second]) -> Vec<Point> {
    let timed: Vec<(f64, &Second)> = seconds
        .windows(2)
        .map(|pair| ((f64::from(pair[1].until_ms) - f64::from(pair[0].until_ms)) / 1_000.0, &pair[1]))
        .collect();
    let inner = timed.split_last().map_or(&[][..], |(_, inner)| inner);
    let requests = inner.iter().fold(0_u64, |sum, (_, second)| sum.saturating_add(second.requests()));
    let Ok(requests) = usize::try_from(requests) else { return Vec::new() };
    if requests == 0 {
        return Vec::new();
    }
    let chunk_len = inner.len().div_ceil(MAX_POINTS).max((MIN_REQUESTS * inner.len()).div_ceil(requests));
    // The incomplete chunk at the end is not a point.
    inner.chunks_exact(chunk_len).map(Point::merged).filter(|point| point.seconds > 0.0).collect()
}

impl Point {
    fn merged(part: &[(f64, &Second)]) -> Self {
        let mut point = Self::default();
        for (seconds, second) in part {
            point.requests = point.requests.saturating_add(second.requests());
            point.seconds += seconds;
            point.latencies.add(&second.succeeded);
        }
        point
    }
}

fn reason(code: &str, what: &str, found: Drift, level: impl Fn(f64) -> String, limit: f64) -> Option<Reason> {
    let change = found.change();
    if change.abs() <= limit {
        return None;
    }
    let verb = if change > 0.0 { "rose" } else { "fell" };
    let (size, first, last) = (Unit::Share.text(change.abs()), level(found.first), level(found.last));
    let text = format!("not steady: {what} {verb} by {size} during the measured phase, from {first} to {last}");
    Some(Reason::new(code, Verdict::Suspect, text).with(change.abs(), limit, Unit::Share))
}
