//! Which numbers are accepted: those that k6 can have measured.

use std::collections::BTreeMap;

use super::json::Node;
use super::{builtin, names};
use crate::reports::summary::{Kind, Metric, Shape, Summary};
use crate::reports::validate::{Fault, Place, Shown};

/// The largest number up to which a float holds every whole one.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A test takes between a nanosecond and some 300 years. Beyond that, dividing by it gives figures that mean nothing.
const DURATION_MS: std::ops::RangeInclusive<f64> = 1e-6..=1e13;

/// By how much, relative to the larger, rounding may turn the order of two statistics: an average is a sum of
/// millions of floats.
const ROUNDING: f64 = 1e-6;

/// Puts one value among the others. k6 writes `null` for a trend's statistic that it did not compute: it stays absent.
pub(super) fn keep(
    values: &mut BTreeMap<String, f64>,
    kind: Kind,
    name: &str,
    node: &Node<'_>,
    place: &Place<'_>,
) -> Result<(), Fault> {
    let place = place.key(name);
    names::text(name, &place)?;
    if kind == Kind::Trend && matches!(node, Node::Null) {
        return Ok(());
    }
    match values.insert(name.to_owned(), node.number(&place)?) {
        Some(_) => Err(place.fault("comes twice, under two names")),
        None => Ok(()),
    }
}

/// A number of things: whole, not negative.
pub(super) fn count(node: Result<&Node<'_>, Fault>, place: &Place<'_>) -> Result<f64, Fault> {
    let number = node?.number(place)?;
    not_negative(number, place)?;
    is_whole(number, place)?;
    Ok(number)
}

/// A count that [`parse`](crate::reports::read::parse) has found to be whole and not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float to integer cast saturates")]
pub(super) fn whole(count: f64) -> u64 {
    count as u64
}

/// Judges a summary that has been read: each metric by itself, then together what runs are compared by.
pub(super) fn judge(summary: &Summary) -> Result<(), Fault> {
    judge_duration(summary)?;
    let metrics = Place::root("metrics");
    for (name, metric) in &summary.metrics {
        let place = metrics.key(name);
        judge_metric(metric, builtin::of(name).map(|(kind, _)| kind), &place)?;
    }
    judge_requests(summary, &metrics)?;
    match summary.measured_ms() {
        Some(measured) if DURATION_MS.contains(&measured) => Ok(()),
        _ => Err(metrics
            .key("http_reqs")
            .key("rate")
            .fault("does not tell how long the test took, and nothing else does")),
    }
}

fn judge_duration(summary: &Summary) -> Result<(), Fault> {
    let Some(duration) = summary.duration_ms.filter(|duration| !DURATION_MS.contains(duration)) else { return Ok(()) };
    let place = match summary.shape {
        Shape::MachineReadable => "config.duration",
        Shape::HandleSummary | Shape::SummaryExport => "state.testRunDurationMs",
        Shape::TextReport | Shape::Wrk => "the time of the test",
    };
    let place = Place::root(place);
    Err(place.fault(format_args!("{} ms is no time that a test takes", Shown(duration))))
}

fn judge_requests(summary: &Summary, metrics: &Place<'_>) -> Result<(), Fault> {
    for name in ["http_reqs", "http_req_duration"] {
        if !summary.metrics.contains_key(name) {
            let what = "is missing: a summary without HTTP requests can't be compared";
            return Err(metrics.key(name).fault(what));
        }
    }
    let requests = summary.value("http_reqs", "count").unwrap_or_default();
    let [passes, fails] = ["passes", "fails"].map(|value| summary.value("http_req_failed", value));
    match passes.zip(fails) {
        #[expect(clippy::float_cmp, reason = "counts: both are whole and small enough to be exact")]
        Some((passes, fails)) if passes + fails != requests => {
            let (judged, requests) = (Shown(passes + fails), Shown(requests));
            // A script's `responseCallback: null` does this; a failure rate over a part of the requests would mislead.
            let what = format!("judges {judged} requests, but http_reqs counts {requests}: all or none must be judged");
            Err(metrics.key("http_req_failed").fault(what))
        }
        _ => Ok(()),
    }
}

fn judge_metric(metric: &Metric, builtin: Option<Kind>, place: &Place<'_>) -> Result<(), Fault> {
    if let Some(kind) = builtin.filter(|kind| *kind != metric.kind) {
        return Err(place.fault(format_args!("is a {}, in k6 it is a {}", metric.kind.word(), kind.word())));
    }
    for name in metric.kind.always() {
        if !metric.values.contains_key(*name) {
            return Err(place.key(name).fault("is missing"));
        }
    }
    for (name, value) in &metric.values {
        let place = place.key(name);
        // A script's own counters, gauges and trends may go below zero and count in fractions.
        let counts = match (metric.kind, name.as_str()) {
            (Kind::Rate, "passes" | "fails") | (Kind::Trend, "count") => true,
            (Kind::Counter, "count") | (Kind::Gauge, _) => builtin.is_some(),
            _ => false,
        };
        if counts || builtin.is_some() {
            not_negative(*value, &place)?;
        }
        if counts {
            is_whole(*value, &place)?;
        }
        if metric.kind == Kind::Rate && name == "rate" && !(0.0..=1.0).contains(value) {
            return Err(place.fault(format_args!("{} is not between 0 and 1", Shown(*value))));
        }
    }
    if metric.kind == Kind::Trend { judge_order(&metric.values, place) } else { Ok(()) }
}

/// min ≤ percentiles in their order ≤ max, and the average between min and max.
fn judge_order(values: &BTreeMap<String, f64>, place: &Place<'_>) -> Result<(), Fault> {
    let ranked = values.iter().filter_map(|(name, value)| Some((rank(name)?, name.as_str(), *value)));
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by(|(left, ..), (right, ..)| left.total_cmp(right));
    let average = values.get("avg").map(|value| ("avg", *value));
    let min = values.get("min").map(|value| ("min", *value));
    let max = values.get("max").map(|value| ("max", *value));
    let neighbours = ranked.windows(2).filter_map(|pair| match pair {
        [(_, low, low_value), (_, high, high_value)] => Some(((*low, *low_value), (*high, *high_value))),
        _ => None,
    });
    for ((low, low_value), (high, high_value)) in neighbours.chain(min.zip(average)).chain(average.zip(max)) {
        if low_value - high_value > ROUNDING * low_value.abs().max(high_value.abs()) {
            let (low_value, high_value) = (Shown(low_value), Shown(high_value));
            return Err(place.key(high).fault(format_args!("{high_value} is less than {low}, which is {low_value}")));
        }
    }
    Ok(())
}

/// Where a statistic stands among the others, in percent; `avg` and `count` have no fixed place.
fn rank(name: &str) -> Option<f64> {
    match name {
        "min" => Some(f64::NEG_INFINITY),
        "max" => Some(f64::INFINITY),
        _ => percentile(name),
    }
}

/// The percentage that a statistic stands for: 50 for `med` and for `p(50)`.
pub(super) fn percentile(name: &str) -> Option<f64> {
    match name {
        "med" => Some(50.0),
        _ => name.strip_prefix("p(")?.strip_suffix(')')?.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p)),
    }
}

fn not_negative(number: f64, place: &Place<'_>) -> Result<(), Fault> {
    if number < 0.0 { Err(place.fault(format_args!("{} is negative", Shown(number)))) } else { Ok(()) }
}

fn is_whole(number: f64, place: &Place<'_>) -> Result<(), Fault> {
    if number.fract() != 0.0 {
        return Err(place.fault(format_args!("{} is not a whole number", Shown(number))));
    }
    if number > WHOLE_MAX {
        return Err(place.fault(format_args!("{} is more than can be counted exactly", Shown(number))));
    }
    Ok(())
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Rate => "rate",
            Self::Trend => "trend",
        }
    }

    /// What k6 writes for every metric of this kind.
    fn always(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["count", "rate"],
            Self::Gauge => &["value"],
            Self::Rate => &["rate", "passes", "fails"],
            Self::Trend => &[],
        }
    }
}
