//! Merges the k6 summaries of several generators, in the format of k6's `--summary-export`. Pure.
//!
//! Values that can't be derived from the parts are omitted, so that they are unknown:
//! - Counters, rates, checks and groups are sums. A counter's rate uses the longest measured time, so that nothing
//!   looks faster than it was.
//! - `vus` and `vus_max` are sums. Custom gauges are omitted, because a last value of all parts does not exist.
//! - Trends have count, weighted mean, minimum and maximum. Only `http_req_duration`, or `grpc_req_duration` without it, has percentiles,
//!   from the merged histograms, and only if these contain every request.
//! - Thresholds are omitted, because each k6 has judged its own part. [`crate::distributed::merge_thresholds`] merges
//!   them.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::{
    histogram::Histogram,
    reports::{
        protocol::SUCCESSFUL_CALLS,
        summary::{Group, Kind, Metric, Summary},
    },
};
use serde_json::{Map, Value, json};

/// The statistics that come from histograms, with their shares.
const PERCENTILES: [(&str, f64); 5] =
    [("med", 0.5), ("p(90)", 0.9), ("p(95)", 0.95), ("p(99)", 0.99), ("p(99.9)", 0.999)];

/// The latency of all requests, and of the successful ones.
const ALL: &str = "http_req_duration";
const SUCCESSFUL: &str = "http_req_duration{expected_response:true}";
const CALLS: &str = "grpc_req_duration";

/// Latencies of the measured phase of all generators.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Latencies of successful requests.
    pub succeeded: Histogram,
    /// Latencies of failed requests.
    pub failed: Histogram,
}

impl Latencies {
    /// Returns the histogram of a k6 metric; none if the metric is not a latency.
    pub fn for_metric(&self, metric: &str) -> Option<Histogram> {
        match metric {
            ALL | CALLS => Some([&self.succeeded, &self.failed].into_iter().sum()),
            SUCCESSFUL | SUCCESSFUL_CALLS => Some(self.succeeded.clone()),
            _ => None,
        }
    }
}

/// Merges summaries into one, as JSON, with rates over the longest time of a part. There must be at least one part.
pub fn summed(parts: &[Summary], longest_ms: f64, latencies: &Latencies) -> String {
    let measured_s = longest_ms / 1e3;
    let names: BTreeSet<&String> = parts.iter().flat_map(|part| part.metrics.keys()).collect();
    let mut metrics = Map::new();
    for name in names {
        let counted: Vec<Counted<'_>> = parts
            .iter()
            .filter_map(|part| {
                part.metrics.get(name).map(|metric| Counted { metric, count: count(name, metric, part) })
            })
            .collect();
        if let Some(values) = metric(name, &counted, measured_s, latencies) {
            metrics.insert(name.clone(), to_json(values));
        }
    }
    let roots: Vec<&Group> = parts.iter().map(|part| &part.root).collect();
    let summary = json!({ "root_group": group(&roots), "metrics": metrics });
    format!("{summary:#}\n")
}

type Values = BTreeMap<&'static str, f64>;

/// A metric of one part with its number of values, if known.
#[derive(Clone, Copy)]
struct Counted<'a> {
    metric: &'a Metric,
    count: Option<f64>,
}

/// Returns the number of values of a metric. Every request has one latency, even if the summary has no count.
fn count(name: &str, metric: &Metric, summary: &Summary) -> Option<f64> {
    let figures = summary.figures();
    let reported = metric.values.get("count").copied();
    reported.or_else(|| match name {
        ALL => Some(figures.requests as f64),
        SUCCESSFUL => Some(figures.requests.saturating_sub(figures.failed?) as f64),
        _ => None,
    })
}

fn metric(name: &str, parts: &[Counted<'_>], measured_s: f64, latencies: &Latencies) -> Option<Values> {
    let sum = |value: &str| parts.iter().filter_map(|one| one.metric.values.get(value)).sum::<f64>();
    Some(match parts.first()?.metric.kind {
        Kind::Counter => {
            let count = sum("count");
            let rate = if measured_s > 0.0 { count / measured_s } else { 0.0 };
            Values::from([("count", count), ("rate", rate)])
        }
        Kind::Rate => {
            let (passes, fails) = (sum("passes"), sum("fails"));
            let value = if passes + fails > 0.0 { passes / (passes + fails) } else { 0.0 };
            Values::from([("passes", passes), ("fails", fails), ("value", value)])
        }
        Kind::Gauge if matches!(name, "vus" | "vus_max") => {
            Values::from([("value", sum("value")), ("max", sum("max"))])
        }
        Kind::Gauge => return None,
        Kind::Trend => trend(name, parts, latencies),
    })
}

fn trend(name: &str, parts: &[Counted<'_>], latencies: &Latencies) -> Values {
    let mut values = Values::new();
    let total = parts.iter().map(|one| one.count).sum::<Option<f64>>();
    values.extend(total.map(|total| ("count", total)));
    // k6 writes zeros for a trend without values.
    let nonempty: Vec<&Counted<'_>> = parts.iter().filter(|one| one.count != Some(0.0)).collect();
    let all = |name| nonempty.iter().map(|one| one.metric.values.get(name).copied()).collect::<Option<Vec<f64>>>();
    let (min, max) = (all("min"), all("max"));
    let min = min.and_then(|all| all.into_iter().reduce(f64::min));
    let max = max.and_then(|all| all.into_iter().reduce(f64::max));
    values.extend(min.map(|min| ("min", min)));
    values.extend(max.map(|max| ("max", max)));
    let weighted = nonempty.iter().map(|one| Some(one.metric.values.get("avg")? * one.count?)).sum::<Option<f64>>();
    let mean = weighted.zip(total.filter(|total| *total > 0.0)).map(|(sum, total)| sum / total);
    values.extend(mean.map(|mean| ("avg", mean)));
    if let Some(histogram) = latencies.for_metric(name).filter(|histogram| Some(histogram.total() as f64) == total) {
        // An estimate within a bucket may exceed minimum and maximum, which are exact.
        let (low, high) = (min.unwrap_or(0.0), max.unwrap_or(f64::MAX));
        let at = |q| histogram.quantile(q).map(|quantile| quantile.within(low, high).estimate);
        values.extend(PERCENTILES.into_iter().filter_map(|(name, q)| Some((name, at(q)?))));
    }
    values
}

/// Merges groups of the same path with their checks.
fn group(parts: &[&Group]) -> Value {
    let mut checks: BTreeMap<&str, (&str, u64, u64)> = BTreeMap::new();
    let mut groups: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
    for one in parts {
        for check in &one.checks {
            let (_, passes, fails) = checks.entry(&check.name).or_insert((&check.path, 0, 0));
            *passes = passes.saturating_add(check.passes);
            *fails = fails.saturating_add(check.fails);
        }
        for inner in &one.groups {
            groups.entry(&inner.name).or_default().push(inner);
        }
    }
    let checks: Map<String, Value> = checks
        .into_iter()
        .map(|(name, (path, passes, fails))| {
            (name.to_owned(), json!({ "name": name, "path": path, "passes": passes, "fails": fails }))
        })
        .collect();
    let groups: Map<String, Value> =
        groups.into_iter().map(|(name, groups)| (name.to_owned(), group(&groups))).collect();
    let (name, path) = parts.first().map_or(("", ""), |one| (one.name.as_str(), one.path.as_str()));
    json!({ "name": name, "path": path, "groups": groups, "checks": checks })
}

fn to_json(values: Values) -> Value {
    let number = |value: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "small enough")]
        if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
    };
    values.into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect::<Map<_, _>>().into()
}
