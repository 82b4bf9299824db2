//! The summaries of several k6 as one, in the form of k6's `--summary-export`. Pure.
//!
//! What can be added is added; what can't be had from the parts is left out, so that it reads as not known:
//! - counters, rates, checks and groups are sums; a counter's rate is by the longest measured time of all parts, so that
//!   nothing looks faster than it was;
//! - `vus` and `vus_max` are sums; a script's own gauges are left out, for the last value of all is nobody's;
//! - trends have their number, their mean weighted by it, least and greatest value. Percentiles there are of
//!   `http_req_duration` alone, from the added histograms, and only where these have every request in them;
//! - thresholds are left out: each k6 has judged its own part. Those of the whole are in
//!   [`crate::distributed::merge_thresholds`].

use std::collections::{BTreeMap, BTreeSet};

use brewbench_agent::{
    reports::summary::{Group, Kind, Metric, Summary},
    series::histogram::Histogram,
};
use serde_json::{Map, Value, json};

/// The statistics that come from histograms, with their shares.
const PERCENTILES: [(&str, f64); 5] =
    [("med", 0.5), ("p(90)", 0.9), ("p(95)", 0.95), ("p(99)", 0.99), ("p(99.9)", 0.999)];

/// The latency of all requests, and of the successful ones.
const ALL: &str = "http_req_duration";
const OF_SUCCESSFUL: &str = "http_req_duration{expected_response:true}";

/// Latencies of the measured phase, of all generators.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Of the requests that succeeded.
    pub succeeded: Histogram,
    /// Of those that failed.
    pub failed: Histogram,
}

impl Latencies {
    /// Those of a metric; none if it is no latency.
    pub fn of(&self, metric: &str) -> Option<Histogram> {
        match metric {
            ALL => Some([&self.succeeded, &self.failed].into_iter().sum()),
            OF_SUCCESSFUL => Some(self.succeeded.clone()),
            _ => None,
        }
    }
}

/// One summary of all, as JSON. There is one part at least, and each was read before.
pub fn summed(parts: &[Summary], latencies: &Latencies) -> String {
    let measured_s = parts.iter().map(|part| part.figures().measured_ms).fold(0.0, f64::max) / 1e3;
    let names: BTreeSet<&String> = parts.iter().flat_map(|part| part.metrics.keys()).collect();
    let mut metrics = Map::new();
    for name in names {
        let of: Vec<Counted<'_>> = parts
            .iter()
            .filter_map(|part| {
                part.metrics.get(name).map(|metric| Counted { metric, count: count(name, metric, part) })
            })
            .collect();
        if let Some(values) = metric(name, &of, measured_s, latencies) {
            metrics.insert(name.clone(), written(values));
        }
    }
    let roots: Vec<&Group> = parts.iter().map(|part| &part.root).collect();
    let whole = json!({ "root_group": group(&roots), "metrics": metrics });
    format!("{whole:#}\n")
}

type Values = BTreeMap<&'static str, f64>;

/// A metric of one part, and how many values it has if that is known.
#[derive(Clone, Copy)]
struct Counted<'a> {
    metric: &'a Metric,
    count: Option<f64>,
}

/// Every request has one latency, also where nobody asked k6 to count them.
fn count(name: &str, metric: &Metric, of: &Summary) -> Option<f64> {
    let figures = of.figures();
    let said = metric.values.get("count").copied();
    said.or_else(|| match name {
        ALL => Some(figures.requests as f64),
        OF_SUCCESSFUL => Some(figures.requests.saturating_sub(figures.failed?) as f64),
        _ => None,
    })
}

fn metric(name: &str, of: &[Counted<'_>], measured_s: f64, latencies: &Latencies) -> Option<Values> {
    let sum = |value: &str| of.iter().filter_map(|one| one.metric.values.get(value)).sum::<f64>();
    Some(match of.first()?.metric.kind {
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
        Kind::Trend => trend(name, of, latencies),
    })
}

fn trend(name: &str, of: &[Counted<'_>], latencies: &Latencies) -> Values {
    let mut values = Values::new();
    let total = of.iter().map(|one| one.count).sum::<Option<f64>>();
    values.extend(total.map(|total| ("count", total)));
    // k6 writes zeros for a trend without values.
    let full: Vec<&Counted<'_>> = of.iter().filter(|one| one.count != Some(0.0)).collect();
    let all = |name| full.iter().map(|one| one.metric.values.get(name).copied()).collect::<Option<Vec<f64>>>();
    let (least, greatest) = (all("min"), all("max"));
    let least = least.and_then(|all| all.into_iter().reduce(f64::min));
    let greatest = greatest.and_then(|all| all.into_iter().reduce(f64::max));
    values.extend(least.map(|least| ("min", least)));
    values.extend(greatest.map(|greatest| ("max", greatest)));
    let weighted = full.iter().map(|one| Some(one.metric.values.get("avg")? * one.count?)).sum::<Option<f64>>();
    let mean = weighted.zip(total.filter(|total| *total > 0.0)).map(|(sum, total)| sum / total);
    values.extend(mean.map(|mean| ("avg", mean)));
    if let Some(histogram) = latencies.of(name).filter(|histogram| Some(histogram.total() as f64) == total) {
        // Within a bucket anything could be; below the least and above the greatest there was nothing.
        let (low, high) = (least.unwrap_or(0.0), greatest.unwrap_or(f64::MAX));
        let at = |q| histogram.quantile(q).map(|quantile| quantile.estimate.max(low).min(high));
        values.extend(PERCENTILES.into_iter().filter_map(|(name, q)| Some((name, at(q)?))));
    }
    values
}

/// Groups of the same path, and the checks in them.
fn group(of: &[&Group]) -> Value {
    let mut checks: BTreeMap<&str, (&str, u64, u64)> = BTreeMap::new();
    let mut groups: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
    for one in of {
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
    let groups: Map<String, Value> = groups.into_iter().map(|(name, of)| (name.to_owned(), group(&of))).collect();
    let (name, path) = of.first().map_or(("", ""), |one| (one.name.as_str(), one.path.as_str()));
    json!({ "name": name, "path": path, "groups": groups, "checks": checks })
}

fn written(values: Values) -> Value {
    let number = |value: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "small enough")]
        if value.fract() == 0.0 && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
    };
    values.into_iter().map(|(name, value)| (name.to_owned(), number(value))).collect::<Map<_, _>>().into()
}
