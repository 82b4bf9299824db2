//! Validates numbers: only values that k6 can have measured are accepted.

use std::collections::BTreeMap;

use super::json::Node;
use super::{builtin, names};
use crate::reports::protocol::Protocol;
use crate::reports::summary::{Kind, Metric, Shape, Summary};
use crate::reports::validate::{Fault, Place, ShortNumber};

/// The largest float up to which all integers are exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Plausible durations, from a nanosecond to some 300 years. Rates over others would be meaningless.
const DURATION_MS: std::ops::RangeInclusive<f64> = 1e-6..=1e13;

/// Relative rounding error by which the order of two statistics may be violated: an average is a sum of millions of
/// floats.
const ROUNDING: f64 = 1e-6;

/// Inserts a value. k6 writes `null` for a trend's statistic that it did not compute: it stays absent.
pub(super) fn insert(
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
        Some(_) => Err(place.fault("is duplicated under two names")),
        None => Ok(()),
    }
}

/// Reads a count: an integer that is not negative.
pub(super) fn count(node: Result<&Node<'_>, Fault>, place: &Place<'_>) -> Result<f64, Fault> {
    let number = node?.number(place)?;
    not_negative(number, place)?;
    is_integer(number, place)?;
    Ok(number)
}

/// Converts a count validated by [`parse`](crate::reports::read::parse).
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float to integer cast saturates")]
pub(super) fn to_integer(count: f64) -> u64 {
    count as u64
}

/// Validates a summary: each metric on its own, then the values by which runs are compared.
pub(super) fn judge(summary: &Summary) -> Result<(), Fault> {
    judge_duration(summary)?;
    let metrics = Place::root("metrics");
    for (name, metric) in &summary.metrics {
        let place = metrics.key(name);
        judge_metric(metric, builtin::lookup(name).map(|(kind, _)| kind), &place)?;
    }
    judge_failures(summary, &metrics)?;
    match summary.measured_ms() {
        Some(measured) if DURATION_MS.contains(&measured) => Ok(()),
        // Nothing was measured.
        None if !has_requests(summary) => Ok(()),
        _ => Err(metrics
            .key("http_reqs")
            .key("rate")
            .fault("can't be used to derive the duration of the test, which is missing")),
    }
}

fn has_requests(summary: &Summary) -> bool {
    summary.metrics.contains_key("http_reqs")
}

fn judge_duration(summary: &Summary) -> Result<(), Fault> {
    let Some(duration) = summary.duration_ms.filter(|duration| !DURATION_MS.contains(duration)) else { return Ok(()) };
    let place = match summary.shape {
        Shape::MachineReadable => "config.duration",
        Shape::HandleSummary | Shape::SummaryExport => "state.testRunDurationMs",
        Shape::TextReport | Shape::Other(_) => "the time of the test",
    };
    let place = Place::root(place);
    Err(place.fault(format_args!("{} ms is not a plausible duration", ShortNumber(duration))))
}

/// Checks that a summary has HTTP requests, even if there were none of them.
pub(super) fn judge_requests(summary: &Summary) -> Result<(), Fault> {
    if summary.stated.is_some() || summary.protocol() != Protocol::Http {
        return Ok(());
    }
    for name in ["http_reqs", "http_req_duration"] {
        if !summary.metrics.contains_key(name) {
            let what =
                "is missing: a summary without HTTP requests, gRPC calls and WebSocket messages can't be compared";
            return Err(Place::root("metrics").key(name).fault(what));
        }
    }
    Ok(())
}

fn judge_failures(summary: &Summary, metrics: &Place<'_>) -> Result<(), Fault> {
    let requests = summary.value("http_reqs", "count").unwrap_or_default();
    let [passes, fails] = ["passes", "fails"].map(|value| summary.value("http_req_failed", value));
    match passes.zip(fails) {
        #[expect(clippy::float_cmp, reason = "counts: both are whole and small enough to be exact")]
        Some((passes, fails)) if passes + fails != requests => {
            if !has_requests(summary) {
                return judge_requests(summary);
            }
            let (judged, requests) = (ShortNumber(passes + fails), ShortNumber(requests));
            // Happens with a script's `responseCallback: null`; a failure rate over a part of the requests would
            // mislead.
            let what = format!("covers {judged} requests, but http_reqs counts {requests}: it must cover all or none");
            Err(metrics.key("http_req_failed").fault(what))
        }
        _ => Ok(()),
    }
}

fn judge_metric(metric: &Metric, builtin: Option<Kind>, place: &Place<'_>) -> Result<(), Fault> {
    if let Some(kind) = builtin.filter(|kind| *kind != metric.kind) {
        return Err(place.fault(format_args!("is a {}, but in k6 it is a {}", metric.kind.word(), kind.word())));
    }
    for name in metric.kind.required() {
        if !metric.values.contains_key(*name) {
            return Err(place.key(name).fault("is missing"));
        }
    }
    for (name, value) in &metric.values {
        let place = place.key(name);
        // Custom counters, gauges and trends may be negative and fractional.
        let counts = match (metric.kind, name.as_str()) {
            (Kind::Rate, "passes" | "fails") | (Kind::Trend, "count") => true,
            (Kind::Counter, "count") | (Kind::Gauge, _) => builtin.is_some(),
            _ => false,
        };
        if counts || builtin.is_some() {
            not_negative(*value, &place)?;
        }
        if counts {
            is_integer(*value, &place)?;
        }
        if metric.kind == Kind::Rate && name == "rate" && !(0.0..=1.0).contains(value) {
            return Err(place.fault(format_args!("{} is not between 0 and 1", ShortNumber(*value))));
        }
    }
    if metric.kind == Kind::Trend { judge_order(&metric.values, place) } else { Ok(()) }
}

/// Checks that min ≤ percentiles in ascending order ≤ max, and min ≤ average ≤ max.
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
            let (low_value, high_value) = (ShortNumber(low_value), ShortNumber(high_value));
            return Err(place.key(high).fault(format_args!("{high_value} is less than {low}, which is {low_value}")));
        }
    }
    Ok(())
}

/// Returns the rank of a statistic in percent; `avg` and `count` have none.
fn rank(name: &str) -> Option<f64> {
    match name {
        "min" => Some(f64::NEG_INFINITY),
        "max" => Some(f64::INFINITY),
        _ => percentile(name),
    }
}

/// Returns the percentage of a percentile: 50 for `med` and for `p(50)`.
pub(super) fn percentile(name: &str) -> Option<f64> {
    match name {
        "med" => Some(50.0),
        _ => name.strip_prefix("p(")?.strip_suffix(')')?.trim().parse().ok().filter(|p| (0.0..=100.0).contains(p)),
    }
}

fn not_negative(number: f64, place: &Place<'_>) -> Result<(), Fault> {
    if number < 0.0 { Err(place.fault(format_args!("{} is negative", ShortNumber(number)))) } else { Ok(()) }
}

fn is_integer(number: f64, place: &Place<'_>) -> Result<(), Fault> {
    if number.fract() != 0.0 {
        return Err(place.fault(format_args!("{} is not an integer", ShortNumber(number))));
    }
    if number > WHOLE_MAX {
        return Err(place.fault(format_args!("{} is too large to be counted exactly", ShortNumber(number))));
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

    /// Returns the values that k6 writes for every metric of this kind.
    fn required(self) -> &'static [&'static str] {
        match self {
            Self::Counter => &["count", "rate"],
            Self::Gauge => &["value"],
            Self::Rate => &["rate", "passes", "fails"],
            Self::Trend => &[],
        }
    }
}
