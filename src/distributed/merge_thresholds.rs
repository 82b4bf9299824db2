//! Judges a script's thresholds for the total load of all generators. Each k6 judges only its own part, so its result
//! does not apply to the total. Pure.
//!
//! - If the total is known exactly, it is compared: counts, rates, means, minima and maxima.
//! - A percentile of the latency is known to lie within a bucket of the merged histograms. A limit outside of that
//!   bucket decides; a limit inside does not.
//! - Any other statistic that is not a sum (percentiles of other trends, custom gauges) lies between the minimum and
//!   the maximum of the parts. So if all parts with values agree on a one-sided limit, the total agrees, too.
//!   Percentiles of very few values may deviate by the distance between neighbouring values.
//! - Otherwise it is not judged. The result of each generator's own k6 is stored in any case.

use std::collections::BTreeSet;

use brewbench_wire::reports::summary::{Kind, Metric, Summary};

use crate::{
    distributed::{
        merge_summaries::Latencies,
        threshold_condition::{Condition, Statistic},
    },
    results::evidence::{Basis, WholeThreshold},
};

/// Judges all thresholds of a script; failed ones come first, then unknown ones. `total` is the merged summary of the
/// parts and `latencies` are the histograms that it was merged with.
pub fn thresholds(parts: &[Summary], total: &Summary, latencies: &Latencies) -> Vec<WholeThreshold> {
    let conditions = |part: &Summary| -> Vec<(String, String)> {
        let all = part.metrics.iter().flat_map(|(name, metric)| metric.thresholds.iter().map(move |one| (name, one)));
        all.map(|(name, one)| (name.clone(), one.expression.clone())).collect()
    };
    let names: BTreeSet<(String, String)> = parts.iter().flat_map(conditions).collect();
    let mut all: Vec<WholeThreshold> = names
        .into_iter()
        .map(|(metric, expression)| {
            let own: Vec<Option<bool>> = parts.iter().map(|part| part_result(part, &metric, &expression)).collect();
            let (passed, basis) = match expression.parse::<Condition>() {
                Ok(condition) => judge(&metric, condition, parts, &own, total, latencies),
                Err(_) => (None, Basis::Unread),
            };
            WholeThreshold { metric, expression, passed, basis, own }
        })
        .collect();
    all.sort_by_key(|one| one.passed.map_or(1, |passed| if passed { 2 } else { 0 }));
    all
}

/// Returns the result of a part's own k6.
fn part_result(part: &Summary, metric: &str, expression: &str) -> Option<bool> {
    let thresholds = &part.metrics.get(metric)?.thresholds;
    thresholds.iter().find(|one| one.expression == expression)?.passed
}

fn judge(
    name: &str,
    condition: Condition,
    parts: &[Summary],
    own: &[Option<bool>],
    total: &Summary,
    latencies: &Latencies,
) -> (Option<bool>, Basis) {
    let metrics = || parts.iter().map(|part| part.metrics.get(name));
    if metrics().flatten().all(Metric::is_empty) {
        return (None, Basis::Nothing);
    }
    let sum = total.metrics.get(name);
    if let Some(value) = sum.and_then(|sum| exact(condition.statistic, sum)) {
        return (Some(condition.holds(value)), Basis::Added);
    }
    let settled = match condition.statistic {
        // A sum is larger than any of its parts.
        Statistic::Count => None,
        Statistic::Rate if metrics().flatten().any(|metric| metric.kind == Kind::Counter) => None,
        _ if !condition.is_one_sided() => None,
        _ => {
            let results = metrics().zip(own).filter(|(metric, _)| metric.is_some_and(|metric| !metric.is_empty()));
            unanimous(results.map(|(_, passed)| *passed))
        }
    };
    let share = condition.statistic.share();
    let within = share
        .zip(sum)
        .and_then(|(share, sum)| Some(bounds(name, share, sum, latencies)?.map(|at| condition.holds(at))));
    match (within, settled) {
        (Some([a, b]), _) if a == b && condition.is_one_sided() => (Some(a), Basis::Histogram),
        (_, Some(settled)) => (Some(settled), Basis::Unanimous),
        (Some(_), None) => (None, Basis::WithinBucket),
        (None, None) => (None, Basis::Parts),
    }
}

/// Returns the common result, if all are equal.
fn unanimous(mut results: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = results.next()??;
    results.all(|result| result == Some(first)).then_some(first)
}

/// Returns a statistic of the total if it is known exactly.
fn exact(statistic: Statistic, sum: &Metric) -> Option<f64> {
    let name = match (statistic, sum.kind) {
        (Statistic::Count, Kind::Counter | Kind::Trend) => "count",
        (Statistic::Rate, Kind::Counter) => "rate",
        (Statistic::Rate, Kind::Rate) => {
            let (passes, fails) = (sum.values.get("passes")?, sum.values.get("fails")?);
            return Some(passes / (passes + fails));
        }
        (Statistic::Value, Kind::Gauge) => "value",
        (Statistic::Mean, Kind::Trend) => "avg",
        (Statistic::Min, Kind::Trend) => "min",
        (Statistic::Max, Kind::Trend) => "max",
        _ => return None,
    };
    sum.values.get(name).copied()
}

/// Returns the bounds of a percentile, ms; none unless the histogram contains all values.
fn bounds(name: &str, share: f64, sum: &Metric, latencies: &Latencies) -> Option<[f64; 2]> {
    let histogram = latencies.for_metric(name)?;
    if Some(histogram.total() as f64) != sum.values.get("count").copied() {
        return None;
    }
    let quantile = histogram.quantile(share)?;
    let min = sum.values.get("min").copied().unwrap_or(0.0);
    let max = sum.values.get("max").copied().unwrap_or(f64::MAX);
    Some([quantile.low.max(min), quantile.high.min(max)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_wire::{
        histogram::Histogram,
        reports::{
            read,
            summary::{Contains, Threshold},
        },
    };

    use super::*;
    use crate::distributed::merge_summaries::summed;

    /// A metric of a part: name, kind, values, and thresholds with the results of its k6.
    type PartMetric<'a> = (&'a str, Kind, &'a [(&'a str, f64)], &'a [(&'a str, bool)]);

    /// A real k6 summary with additional metrics.
    fn part(metrics: &[PartMetric<'_>]) -> Summary {
        let path = format!("{}/tests/fixtures/k6/summary-export-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        let mut summary = read::parse(&std::fs::read(path).expect("a fixture")).expect("k6's own");
        for (name, kind, values, thresholds) in metrics {
            let values: BTreeMap<_, _> = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let threshold =
                |(text, passed): &(&str, bool)| Threshold { expression: (*text).to_owned(), passed: Some(*passed) };
            let thresholds = thresholds.iter().map(threshold).collect();
            let metric = Metric { kind: *kind, contains: Contains::Default, values, thresholds };
            summary.metrics.insert((*name).to_owned(), metric);
        }
        summary
    }

    fn judged(parts: &[Summary], latencies: &Latencies) -> BTreeMap<String, (Option<bool>, Basis)> {
        let total =
            read::parse(summed(parts, parts[0].figures().measured_ms, latencies).as_bytes()).expect("a summary");
        let all = thresholds(parts, &total, latencies).into_iter();
        all.map(|one| (format!("{} {}", one.metric, one.expression), (one.passed, one.basis))).collect()
    }

    #[test]
    fn sums_are_judged_by_the_total_regardless_of_the_parts() {
        let orders = |count: f64, passed| {
            part(&[("orders", Kind::Counter, &[("count", count), ("rate", 1.0)], &[("count>100", passed)])])
        };
        let bad = |passes: f64, fails: f64, passed| {
            part(&[(
                "bad",
                Kind::Rate,
                &[("passes", passes), ("fails", fails), ("value", passes / (passes + fails))],
                &[("rate<0.01", passed)],
            )])
        };
        let none = Latencies::default();
        assert_eq!(
            judged(&[orders(60.0, false), orders(60.0, false)], &none)["orders count>100"],
            (Some(true), Basis::Added)
        );
        // Ten thousand requests without failures outweigh 99 failures in another part.
        let results = judged(&[bad(0.0, 10_000.0, true), bad(99.0, 1.0, false)], &none);
        assert_eq!(results["bad rate<0.01"], (Some(true), Basis::Added));
        let results = judged(&[bad(0.0, 1_000.0, true), bad(99.0, 1.0, false)], &none);
        assert_eq!(results["bad rate<0.01"], (Some(false), Basis::Added));
        assert_eq!(judged(&[bad(0.0, 0.0, true)], &none)["bad rate<0.01"], (None, Basis::Nothing));
    }

    #[test]
    fn a_percentile_without_a_histogram_is_judged_if_all_parts_agree() {
        let wait = |count: f64, own: &[(&str, bool)]| {
            part(&[("wait", Kind::Trend, &[("count", count), ("avg", 5.0), ("min", 1.0), ("max", 9.0)], own)])
        };
        let both =
            |a: &[(&str, bool)], b: &[(&str, bool)]| judged(&[wait(10.0, a), wait(10.0, b)], &Latencies::default());
        let results = both(
            &[
                ("p(95)<8", true),
                ("p(90)<8", true),
                ("med>9", false),
                ("p(99)!=3", true),
                ("avg<6", true),
                ("odd", true),
            ],
            &[
                ("p(95)<8", true),
                ("p(90)<8", false),
                ("med>9", false),
                ("p(99)!=3", true),
                ("avg<6", true),
                ("odd", true),
            ],
        );
        assert_eq!(results["wait p(95)<8"], (Some(true), Basis::Unanimous));
        assert_eq!(results["wait med>9"], (Some(false), Basis::Unanimous));
        assert_eq!(results["wait p(90)<8"], (None, Basis::Parts));
        assert_eq!(results["wait p(99)!=3"], (None, Basis::Parts), "parts of 1 and 5 may have a total of 3");
        assert_eq!(results["wait avg<6"], (Some(true), Basis::Added));
        assert_eq!(results["wait odd"], (None, Basis::Unread));
        // A part without values does not count.
        let results =
            judged(&[wait(10.0, &[("p(95)>2", true)]), wait(0.0, &[("p(95)>2", false)])], &Latencies::default());
        assert_eq!(results["wait p(95)>2"], (Some(true), Basis::Unanimous));
    }

    #[test]
    fn a_percentile_of_the_latency_is_judged_by_histograms_but_not_within_a_bucket() {
        // 1 to 1.09 ms, all of them.
        let histogram = |count: u64| Histogram::new(3, 0, count * 1_000_000, [(-79, count)]).expect("a histogram");
        let part = |own: &[(&str, bool)]| {
            let values = [("count", 100.0), ("avg", 1.0), ("min", 0.5), ("max", 2.0)];
            part(&[("http_req_duration", Kind::Trend, &values, own)])
        };
        let latencies = Latencies { succeeded: histogram(200), failed: Histogram::default() };
        let own = |passed| [("p(95)<2", true), ("p(95)<1.05", passed), ("p(95)>=1.5", true)];
        let results = judged(&[part(&own(true)), part(&own(false))], &latencies);
        assert_eq!(results["http_req_duration p(95)<2"], (Some(true), Basis::Histogram));
        assert_eq!(results["http_req_duration p(95)>=1.5"], (Some(false), Basis::Histogram));
        assert_eq!(results["http_req_duration p(95)<1.05"], (None, Basis::WithinBucket));
        let results = judged(&[part(&own(true)), part(&own(true))], &latencies);
        assert_eq!(results["http_req_duration p(95)<1.05"], (Some(true), Basis::Unanimous));
        let incomplete = Latencies { succeeded: histogram(199), failed: Histogram::default() };
        let results = judged(&[part(&own(true)), part(&own(false))], &incomplete);
        assert_eq!(results["http_req_duration p(95)<1.05"], (None, Basis::Parts), "some are missing");
    }
}
