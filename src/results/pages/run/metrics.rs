//! Tables of all metrics of a summary. Template: `runs/_summary.html`. Pure.

use brewbench_wire::reports::summary::{Contains, Kind, Metric, Summary};

use crate::web::format::{self, Figure};

/// Maximum number of metrics of one kind; the raw summary has all.
const MAX_METRICS: usize = 300;

/// All metrics of a summary.
#[derive(Clone, Debug, PartialEq)]
pub struct Metrics {
    /// Column headings of the distributions.
    pub statistics: Vec<String>,
    /// Distributions.
    pub trends: Vec<Section<Trend>>,
    /// Counters, rates and gauges.
    pub totals: Vec<Section<Total>>,
    /// Number of metrics that are not shown.
    pub excluded: usize,
}

/// A group of metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<T> {
    /// The title.
    pub title: &'static str,
    /// The metrics, by name.
    pub rows: Vec<T>,
}

/// A counter, a rate or a gauge.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The name in the summary: any text.
    pub name: String,
    /// The count, the rate or the last value.
    pub value: Figure,
    /// A detail: count per second, counts of a rate, or range of a gauge.
    pub detail: String,
}

/// A distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Trend {
    /// The name in the summary: any text.
    pub name: String,
    /// `ms`, or empty.
    pub unit: &'static str,
    /// One value for each of [`Metrics::statistics`].
    pub cells: Vec<Figure>,
}

const SECTIONS: [&str; 6] = ["HTTP", "Execution", "Network", "Other protocols", "Custom", "By tag"];

/// Returns all metrics of a summary.
pub fn metrics(summary: &Summary) -> Metrics {
    let (mut trends, mut totals): (Vec<_>, Vec<_>) =
        summary.metrics.iter().partition(|(_, metric)| metric.kind == Kind::Trend);
    let excluded = trends.len().saturating_sub(MAX_METRICS) + totals.len().saturating_sub(MAX_METRICS);
    trends.truncate(MAX_METRICS);
    totals.truncate(MAX_METRICS);
    let statistics = statistics(&trends);
    Metrics {
        trends: sections(&trends, |name, metric| trend(name, metric, &statistics)),
        totals: sections(&totals, total),
        statistics: statistics.iter().map(|name| head(name)).collect(),
        excluded,
    }
}

type Named<'a> = (&'a String, &'a Metric);

/// Groups metrics into sections; skips empty sections.
fn sections<T>(all: &[Named], row: impl Fn(&str, &Metric) -> T) -> Vec<Section<T>> {
    let section = |title| {
        let own = all.iter().filter(|(name, _)| section_of(name) == title);
        Section { title, rows: own.map(|(name, metric)| row(name, metric)).collect() }
    };
    SECTIONS.into_iter().map(section).filter(|section| !section.rows.is_empty()).collect()
}

fn section_of(name: &str) -> &'static str {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    match name {
        _ if name.contains('{') => "By tag",
        "http_reqs" | "http_req_failed" | "requests" | "failed" => "HTTP",
        _ if begins(&["http_req_", "latency", "failed_", "status_", "connect"]) => "HTTP",
        "iterations" | "iteration_duration" | "dropped_iterations" | "vus" | "vus_max" | "checks"
        | "group_duration" => "Execution",
        "data_sent" | "data_received" | "bytes_sent" | "bytes_received" => "Network",
        _ if begins(&["ws_", "grpc_", "browser_"]) => "Other protocols",
        _ => "Custom",
    }
}

/// All statistics of these metrics: average, minimum, percentiles in order, maximum, count.
fn statistics(trends: &[Named]) -> Vec<String> {
    let mut names: Vec<String> = trends.iter().flat_map(|(_, metric)| metric.values.keys().cloned()).collect();
    names.sort_by(|a, b| rank(a).total_cmp(&rank(b)).then_with(|| a.cmp(b)));
    names.dedup();
    names
}

fn rank(name: &str) -> f64 {
    match name {
        "avg" => -2.0,
        "min" => -1.0,
        "med" => 50.0,
        "max" => 101.0,
        "count" => 102.0,
        _ => percentile(name).unwrap_or(103.0),
    }
}

fn percentile(name: &str) -> Option<f64> {
    name.strip_prefix("p(")?.strip_suffix(')')?.trim().parse().ok()
}

/// The column heading of a statistic: `p99.9` for `p(99.9)`.
fn head(name: &str) -> String {
    match name {
        "med" => "p50".to_owned(),
        _ => percentile(name).map_or_else(|| name.to_owned(), |percent| format!("p{percent}")),
    }
}

fn trend(name: &str, metric: &Metric, statistics: &[String]) -> Trend {
    // k6 writes zeros for a metric that has no samples.
    let empty = metric.values.get("count") == Some(&0.0);
    let cell = |statistic: &String| {
        let value = metric.values.get(statistic).copied();
        match statistic.as_str() {
            "count" => amount(value, Contains::Default),
            _ => amount(value.filter(|_| !empty), metric.contains),
        }
    };
    let unit = if metric.contains == Contains::Time { "ms" } else { "" };
    Trend { name: name.to_owned(), unit, cells: statistics.iter().map(cell).collect() }
}

fn total(name: &str, metric: &Metric) -> Total {
    let value = |name: &str| metric.values.get(name).copied();
    let text = |value: Option<f64>| amount(value, metric.contains).text().to_owned();
    let (value, detail) = match metric.kind {
        Kind::Counter => {
            let rate = match metric.contains {
                Contains::Data => format::rate(value("rate")).text().to_owned(),
                _ => format!("{} per second", format::number(value("rate")).text()),
            };
            (with_unit(value("count"), metric.contains), rate)
        }
        Kind::Rate => {
            let (passes, fails) = (value("passes"), value("fails"));
            let total = passes.zip(fails).map(|(passes, fails)| passes + fails);
            // In k6, a pass of this metric is a failed request.
            let word = if name.starts_with("http_req_failed") { "failed" } else { "true" };
            // Without samples there is no rate.
            let rate = value("rate").filter(|_| total != Some(0.0));
            (format::percent(rate), format!("{} of {} {word}", integer_text(passes), integer_text(total)))
        }
        Kind::Gauge | Kind::Trend => {
            let range = value("min").zip(value("max"));
            let range = range.map(|(min, max)| format!("{} to {}", text(Some(min)), text(Some(max))));
            (with_unit(value("value"), metric.contains), range.unwrap_or_default())
        }
    };
    Total { name: name.to_owned(), value, detail }
}

fn amount(value: Option<f64>, contains: Contains) -> Figure {
    match contains {
        Contains::Data => format::bytes(value),
        Contains::Time | Contains::Default | Contains::Unknown => exact_if_whole(value),
    }
}

fn with_unit(value: Option<f64>, contains: Contains) -> Figure {
    if contains == Contains::Time { format::latency(value) } else { amount(value, contains) }
}

/// Formats whole numbers exactly and others with four digits.
fn exact_if_whole(value: Option<f64>) -> Figure {
    match value {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
        Some(count) if count.fract() == 0.0 && (0.0..9e15).contains(&count) => format::count(Some(count as u64)),
        _ => format::number(value),
    }
}

fn integer_text(value: Option<f64>) -> String {
    exact_if_whole(value).text().to_owned()
}

#[cfg(test)]
mod tests {
    use brewbench_wire::reports::read::parse;

    use super::*;

    fn real(name: &str) -> Summary {
        let path = format!("{}/tests/fixtures/k6/{name}", env!("CARGO_MANIFEST_DIR"));
        parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
    }

    #[test]
    fn every_metric_of_a_summary_is_in_one_section() {
        let summary = real("handle-summary-v1.8.1.json");
        let metrics = metrics(&summary);
        let trends: usize = metrics.trends.iter().map(|section| section.rows.len()).sum();
        let totals: usize = metrics.totals.iter().map(|section| section.rows.len()).sum();
        assert_eq!((trends + totals, metrics.excluded), (summary.metrics.len(), 0));
    }

    #[test]
    fn statistics_are_in_reading_order() {
        for name in ["handle-summary-v1.8.1.json", "summary-export-v1.8.1.json", "machine-readable-v1.8.1.json"] {
            let metrics = metrics(&real(name));
            let heads: Vec<_> = metrics.statistics.iter().map(String::as_str).collect();
            let place = |head| heads.iter().position(|other| *other == head);
            assert_eq!((place("avg"), place("min")), (Some(0), Some(1)), "{name}");
            assert!(place("p90") < place("p95") && place("p95") < place("max"), "{name}: {heads:?}");
            let http = &metrics.trends[0];
            assert_eq!(http.title, "HTTP");
            assert!(http.rows.iter().all(|trend| trend.unit == "ms" && trend.cells.len() == heads.len()));
        }
    }

    #[test]
    fn a_metric_without_samples_shows_no_zeros() {
        let metric = |count| Metric {
            kind: Kind::Trend,
            contains: Contains::Time,
            values: [("avg", 0.0), ("count", count)].map(|(name, value)| (name.to_owned(), value)).into(),
            thresholds: Vec::new(),
        };
        let names = ["avg".to_owned(), "count".to_owned()];
        let texts = |metric: &Metric| {
            trend("x", metric, &names).cells.iter().map(|cell| cell.text().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&metric(0.0)), ["–", "0"]);
        assert_eq!(texts(&metric(2.0)), ["0", "2"]);
    }

    #[test]
    fn counters_rates_and_gauges_have_units() {
        let metrics = metrics(&real("handle-summary-v1.8.1.json"));
        let total = |name: &str| {
            let mut totals = metrics.totals.iter().flat_map(|section| &section.rows);
            totals.find(|total| total.name == name).expect("there").clone()
        };
        assert!(total("http_reqs").detail.ends_with("per second"));
        assert!(total("data_received").detail.ends_with("B/s"), "{:?}", total("data_received"));
        assert!(total("http_req_failed").detail.ends_with("failed"), "{:?}", total("http_req_failed"));
    }
}
