//! A script's thresholds for all generators of a run together. Each k6 judges its own part and knows of no other, so what
//! it says is no answer for the whole. Pure.
//!
//! - Where the figure of the whole is known, it is compared: counts, rates, means, least and greatest values are exact.
//! - A percentile of the latency is known to be within a bucket of the added histograms: where the limit lies outside of
//!   that, this tells; where it lies inside, nobody knows.
//! - Of any other statistic that is not a sum (percentiles of other trends, a script's own gauges) the whole lies between
//!   the least and the greatest of the parts. So where all parts that have values say the same of a limit that is crossed
//!   upwards or downwards, the whole does too; percentiles of very few values may differ by the way from one to the next.
//! - Else it is not judged. What each generator's k6 says of its own part is kept besides in any case.

use std::collections::BTreeSet;

use brewbench_agent::reports::summary::{Kind, Metric, Summary};

use crate::{
    distributed::{
        merge_summaries::Latencies,
        threshold_condition::{Condition, Statistic},
    },
    results::evidence::{Basis, WholeThreshold},
};

/// All thresholds of a script; those that were crossed come first, then those of which that is not known. `whole` is the
/// sum of the parts, and the latencies are those that it was made with.
pub fn thresholds(parts: &[Summary], whole: &Summary, latencies: &Latencies) -> Vec<WholeThreshold> {
    let of = |part: &Summary| -> Vec<(String, String)> {
        let all = part.metrics.iter().flat_map(|(name, metric)| metric.thresholds.iter().map(move |one| (name, one)));
        all.map(|(name, one)| (name.clone(), one.expression.clone())).collect()
    };
    let names: BTreeSet<(String, String)> = parts.iter().flat_map(of).collect();
    let mut all: Vec<WholeThreshold> = names
        .into_iter()
        .map(|(metric, expression)| {
            let own: Vec<Option<bool>> = parts.iter().map(|part| said(part, &metric, &expression)).collect();
            let (passed, basis) = match expression.parse::<Condition>() {
                Ok(condition) => judge(&metric, condition, parts, &own, whole, latencies),
                Err(_) => (None, Basis::Unread),
            };
            WholeThreshold { metric, expression, passed, basis, own }
        })
        .collect();
    all.sort_by_key(|one| one.passed.map_or(1, |passed| if passed { 2 } else { 0 }));
    all
}

/// What a part's own k6 says.
fn said(part: &Summary, metric: &str, expression: &str) -> Option<bool> {
    let thresholds = &part.metrics.get(metric)?.thresholds;
    thresholds.iter().find(|one| one.expression == expression).map(|one| one.passed)
}

fn judge(
    name: &str,
    condition: Condition,
    parts: &[Summary],
    own: &[Option<bool>],
    whole: &Summary,
    latencies: &Latencies,
) -> (Option<bool>, Basis) {
    let metrics = || parts.iter().map(|part| part.metrics.get(name));
    if metrics().flatten().all(is_empty) {
        return (None, Basis::Nothing);
    }
    let sum = whole.metrics.get(name);
    if let Some(value) = sum.and_then(|sum| exact(condition.statistic, sum)) {
        return (Some(condition.holds(value)), Basis::Added);
    }
    let settled = match condition.statistic {
        // What is added up tells more, or less, than any part.
        Statistic::Count => None,
        Statistic::Rate if metrics().flatten().any(|metric| metric.kind == Kind::Counter) => None,
        _ if !condition.is_one_sided() => None,
        _ => {
            let voices = metrics().zip(own).filter(|(metric, _)| metric.is_some_and(|metric| !is_empty(metric)));
            same(voices.map(|(_, said)| *said))
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

/// What all of them say, if that is the same.
fn same(mut voices: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = voices.next()??;
    voices.all(|voice| voice == Some(first)).then_some(first)
}

/// k6 writes zeros for what had no values.
fn is_empty(metric: &Metric) -> bool {
    let is_zero = |names: &[&str]| names.iter().all(|name| metric.values.get(*name) == Some(&0.0));
    match metric.kind {
        Kind::Rate => is_zero(&["passes", "fails"]),
        Kind::Trend => is_zero(&["count"]),
        // No count is a count, too, and a gauge does not say how often it was set.
        Kind::Counter | Kind::Gauge => false,
    }
}

/// A figure of the whole, if it is known exactly.
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
        (Statistic::Least, Kind::Trend) => "min",
        (Statistic::Greatest, Kind::Trend) => "max",
        _ => return None,
    };
    sum.values.get(name).copied()
}

/// Between which values a percentile lies, ms; nothing without a histogram that has all values in it.
fn bounds(name: &str, share: f64, sum: &Metric, latencies: &Latencies) -> Option<[f64; 2]> {
    let histogram = latencies.of(name)?;
    if Some(histogram.total() as f64) != sum.values.get("count").copied() {
        return None;
    }
    let quantile = histogram.quantile(share)?;
    let least = sum.values.get("min").copied().unwrap_or(0.0);
    let greatest = sum.values.get("max").copied().unwrap_or(f64::MAX);
    Some([quantile.low.max(least), quantile.high.min(greatest)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_agent::{
        reports::{
            read,
            summary::{Contains, Threshold},
        },
        series::histogram::Histogram,
    };

    use super::*;
    use crate::distributed::merge_summaries::summed;

    /// A real summary of k6 with other metrics: name, kind, values, and thresholds with what that k6 says of them.
    type Told<'a> = (&'a str, Kind, &'a [(&'a str, f64)], &'a [(&'a str, bool)]);

    fn part(told: &[Told<'_>]) -> Summary {
        let path = format!("{}/tests/fixtures/k6/summary-export-v1.8.1.json", env!("CARGO_MANIFEST_DIR"));
        let mut summary = read::parse(&std::fs::read(path).expect("a fixture")).expect("k6's own");
        for (name, kind, values, thresholds) in told {
            let values: BTreeMap<_, _> = values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            let said = |(text, passed): &(&str, bool)| Threshold { expression: (*text).to_owned(), passed: *passed };
            let thresholds = thresholds.iter().map(said).collect();
            let metric = Metric { kind: *kind, contains: Contains::Default, values, thresholds };
            summary.metrics.insert((*name).to_owned(), metric);
        }
        summary
    }

    fn judged(parts: &[Summary], latencies: &Latencies) -> BTreeMap<String, (Option<bool>, Basis)> {
        let whole = read::parse(summed(parts, latencies).as_bytes()).expect("a summary");
        let all = thresholds(parts, &whole, latencies).into_iter();
        all.map(|one| (format!("{} {}", one.metric, one.expression), (one.passed, one.basis))).collect()
    }

    #[test]
    fn what_can_be_added_is_judged_by_the_sum_whatever_the_parts_say() {
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
        // One part of ten thousand hides a hundred failures of a hundred.
        let told = judged(&[bad(0.0, 10_000.0, true), bad(99.0, 1.0, false)], &none);
        assert_eq!(told["bad rate<0.01"], (Some(true), Basis::Added));
        let told = judged(&[bad(0.0, 1_000.0, true), bad(99.0, 1.0, false)], &none);
        assert_eq!(told["bad rate<0.01"], (Some(false), Basis::Added));
        assert_eq!(judged(&[bad(0.0, 0.0, true)], &none)["bad rate<0.01"], (None, Basis::Nothing));
    }

    #[test]
    fn a_percentile_that_has_no_histogram_is_judged_where_all_parts_agree() {
        let wait = |count: f64, said: &[(&str, bool)]| {
            part(&[("wait", Kind::Trend, &[("count", count), ("avg", 5.0), ("min", 1.0), ("max", 9.0)], said)])
        };
        let both =
            |a: &[(&str, bool)], b: &[(&str, bool)]| judged(&[wait(10.0, a), wait(10.0, b)], &Latencies::default());
        let told = both(
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
        assert_eq!(told["wait p(95)<8"], (Some(true), Basis::Unanimous));
        assert_eq!(told["wait med>9"], (Some(false), Basis::Unanimous));
        assert_eq!(told["wait p(90)<8"], (None, Basis::Parts));
        assert_eq!(told["wait p(99)!=3"], (None, Basis::Parts), "1 and 5 are not 3, and together they may be");
        assert_eq!(told["wait avg<6"], (Some(true), Basis::Added));
        assert_eq!(told["wait odd"], (None, Basis::Unread));
        // Who has no values has no say.
        let told = judged(&[wait(10.0, &[("p(95)>2", true)]), wait(0.0, &[("p(95)>2", false)])], &Latencies::default());
        assert_eq!(told["wait p(95)>2"], (Some(true), Basis::Unanimous));
    }

    #[test]
    fn a_percentile_of_the_latency_is_judged_by_the_histograms_but_not_within_a_bucket() {
        // 1 to 1.09 ms, all of them.
        let histogram = |count: u64| Histogram::new(3, 0, count * 1_000_000, [(-79, count)]).expect("a histogram");
        let part = |said: &[(&str, bool)]| {
            let values = [("count", 100.0), ("avg", 1.0), ("min", 0.5), ("max", 2.0)];
            part(&[("http_req_duration", Kind::Trend, &values, said)])
        };
        let latencies = Latencies { succeeded: histogram(200), failed: Histogram::default() };
        let said = |passed| [("p(95)<2", true), ("p(95)<1.05", passed), ("p(95)>=1.5", true)];
        let told = judged(&[part(&said(true)), part(&said(false))], &latencies);
        assert_eq!(told["http_req_duration p(95)<2"], (Some(true), Basis::Histogram));
        assert_eq!(told["http_req_duration p(95)>=1.5"], (Some(false), Basis::Histogram));
        assert_eq!(told["http_req_duration p(95)<1.05"], (None, Basis::WithinBucket));
        let told = judged(&[part(&said(true)), part(&said(true))], &latencies);
        assert_eq!(told["http_req_duration p(95)<1.05"], (Some(true), Basis::Unanimous));
        let lacking = Latencies { succeeded: histogram(199), failed: Histogram::default() };
        let told = judged(&[part(&said(true)), part(&said(false))], &lacking);
        assert_eq!(told["http_req_duration p(95)<1.05"], (None, Basis::Parts), "some are missing");
    }
}
