//! Hyperfoil's statistics as JSON. Latencies are nanoseconds, and begin when a request was due.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, counts};
use super::format::{Format, Reader, Recognised};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report, Since};
use crate::reports::time::Time;

pub(super) const FORMAT: Format = Format {
    name: "hyperfoil",
    title: "Hyperfoil's statistics as JSON",
    tool: "hyperfoil",
    limits: "Each phase and metric is a report. It lacks the address and the requested rate.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json { is, read: |document| document.read::<Hyperfoil>().map(Hyperfoil::reports) },
};

/// Relative width of the buckets of its histograms, which have two digits.
const BUCKET: f64 = 1.0 / 128.0;

fn is(document: &crate::reports::input::document::Document<'_>) -> Recognised {
    let is_all =
        document.get("stats").and_then(|stats| stats.item(0)).is_some_and(|first| first.has_in("total", &["summary"]));
    let is_total = document.get("statistics").and_then(|stats| stats.item(0));
    (is_all || is_total.is_some_and(|first| first.has_in("summary", &["percentileResponseTime"]))).into()
}

#[derive(Deserialize)]
struct Hyperfoil {
    #[serde(default)]
    info: Option<Info>,
    #[serde(default)]
    stats: Vec<Stats>,
    #[serde(default)]
    statistics: Vec<Total>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    benchmark: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    total: Total,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    metric: Option<String>,
}

#[derive(Deserialize)]
struct Total {
    summary: Summary,
    #[serde(default)]
    phase: Option<String>,
    #[serde(default)]
    metric: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    start_time: Loose,
    end_time: Loose,
    #[serde(default)]
    min_response_time: Loose,
    #[serde(default)]
    mean_response_time: Loose,
    #[serde(default)]
    std_dev_response_time: Loose,
    #[serde(default)]
    max_response_time: Loose,
    #[serde(default)]
    percentile_response_time: BTreeMap<String, Loose>,
    request_count: u64,
    response_count: u64,
    #[serde(default)]
    invalid: u64,
    #[serde(default)]
    connection_errors: u64,
    #[serde(default)]
    request_timeouts: u64,
    #[serde(default)]
    internal_errors: u64,
    #[serde(default)]
    extensions: BTreeMap<String, BTreeMap<String, Loose>>,
}

impl Hyperfoil {
    fn reports(self) -> Vec<Report> {
        let name = |parts: [Option<String>; 3]| {
            let parts: Vec<String> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
            (!parts.is_empty()).then(|| parts.join(" / "))
        };
        let benchmark = self.info.and_then(|info| info.benchmark);
        let named = self.stats.into_iter().map(|stats| {
            let phase = stats.phase.or(stats.name).or(stats.total.phase);
            (name([benchmark.clone(), phase, stats.metric.or(stats.total.metric)]), stats.total.summary)
        });
        let totals = self.statistics.into_iter().map(|total| (name([None, total.phase, total.metric]), total.summary));
        // Phases without requests only wait, or warm up.
        let all = named.chain(totals).filter(|(_, summary)| summary.request_count > 0);
        all.map(|(name, summary)| Report { name, ..summary.report() }).collect()
    }
}

impl Summary {
    fn report(self) -> Report {
        let ns = |value: Loose| value.time(1e-6);
        let percentiles: Vec<_> = self
            .percentile_response_time
            .iter()
            .filter_map(|(name, value)| Some((name.parse().ok()?, ns(*value).map(|time| time.within(BUCKET)))))
            .collect();
        let ends = Latencies {
            min: ns(self.min_response_time),
            mean: ns(self.mean_response_time),
            max: ns(self.max_response_time),
            stddev: ns(self.std_dev_response_time),
            of: Population::Responses,
            definition: Definition::Histogram,
            since: Since::Due,
            ..Latencies::default()
        };
        let http = self.extensions.get("http");
        let class =
            |name: &str| http.and_then(|http| http.get(&format!("status_{name}"))).and_then(|found| found.count());
        let statuses =
            counts(["2xx", "3xx", "4xx", "5xx", "other"].map(|name| (name, class(name).unwrap_or_default())));
        let failures = counts([
            ("connect", self.connection_errors),
            ("timeout", self.request_timeouts),
            ("internal", self.internal_errors),
            ("invalid", self.invalid),
        ]);
        let without = self.request_count.saturating_sub(self.response_count);
        let bad = super::fields::bad_statuses(&statuses).max(self.invalid);
        let duration =
            self.start_time.0.zip(self.end_time.0).map(|(start, end)| Time { ms: end - start, error_ms: 1.0 });
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let started = self.start_time.0.map(|ms| ms as i64);
        Report {
            started_ms: started,
            duration: duration.filter(|time| time.ms > 0.0),
            load: Generated { model: Some(Model::Open), ..Generated::default() },
            requests: Some(self.request_count),
            failed: Some(without.saturating_add(bad).min(self.request_count)),
            failures,
            statuses,
            latency: if self.response_count > 0 { ends.with_percentiles(percentiles) } else { Latencies::default() },
            ..Report::default()
        }
    }
}
