//! `results.json` of TechEmpower's framework benchmarks: frameworks × tests × levels, each of them a run of wrk.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::Loose;
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::Time;

pub(super) const FORMAT: Format = Format {
    name: "techempower",
    title: "TechEmpower's results.json",
    tool: "wrk",
    limits: "Times have two decimals of their unit; there are no percentiles, and bytes are missing. The requests of a level are \
             divided by the duration of the test, as TechEmpower's site does.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| document.has(&["rawData", "concurrencyLevels", "frameworks"]).into(),
        read: |document| document.read::<Results>().map(Results::reports),
    },
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Results {
    raw_data: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    duration: Loose,
    #[serde(default)]
    concurrency_levels: Vec<u64>,
    #[serde(default)]
    pipeline_concurrency_levels: Vec<u64>,
    #[serde(default)]
    query_intervals: Vec<u64>,
    #[serde(default, alias = "cachedQueryLevels")]
    cached_query_intervals: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Level {
    #[serde(default)]
    latency_avg: Option<String>,
    #[serde(default)]
    latency_stdev: Option<String>,
    #[serde(default)]
    latency_max: Option<String>,
    total_requests: u64,
    #[serde(default)]
    start_time: Loose,
    #[serde(default)]
    end_time: Loose,
    #[serde(default)]
    timeout: u64,
    #[serde(default)]
    connect: u64,
    #[serde(default)]
    read: u64,
    #[serde(default)]
    write: u64,
    #[serde(default, rename = "5xx")]
    bad_statuses: u64,
}

impl Results {
    fn reports(self) -> Vec<Report> {
        let mut reports = Vec::new();
        for (test, frameworks) in &self.raw_data {
            let Some(frameworks) = frameworks.as_object() else { continue };
            for (framework, levels) in frameworks {
                for (index, level) in levels.as_array().into_iter().flatten().enumerate() {
                    // A level that failed is an empty object.
                    let Ok(level) = Level::deserialize(level) else { continue };
                    reports.push(self.report(test, framework, index, level));
                }
            }
        }
        reports
    }

    /// Returns how many connections a level has, and how many queries a request makes.
    fn load(&self, test: &str, index: usize) -> (Option<u64>, Option<u64>) {
        let highest = self.concurrency_levels.iter().max().copied();
        match test {
            "plaintext" => (self.pipeline_concurrency_levels.get(index).copied(), None),
            "query" | "update" => (highest, self.query_intervals.get(index).copied()),
            "cached-query" | "cached_query" => (highest, self.cached_query_intervals.get(index).copied()),
            _ => (self.concurrency_levels.get(index).copied(), None),
        }
    }

    fn report(&self, test: &str, framework: &str, index: usize, level: Level) -> Report {
        let (connections, queries) = self.load(test, index);
        let what = match (queries, connections) {
            (Some(queries), _) => format!("{queries} queries"),
            (None, Some(connections)) => format!("{connections} connections"),
            (None, None) => format!("level {}", index + 1),
        };
        let time = |text: Option<String>| text.as_deref().and_then(Time::printed);
        let seconds =
            self.duration.0.or_else(|| level.end_time.0.zip(level.start_time.0).map(|(end, start)| end - start));
        let seconds = seconds.filter(|seconds| *seconds > 0.0);
        let without = [level.connect, level.read, level.write].into_iter().fold(0, u64::saturating_add);
        let failures = [
            ("connect", level.connect),
            ("read", level.read),
            ("write", level.write),
            ("timeout", level.timeout),
            ("status", level.bad_statuses),
        ];
        let requests = level.total_requests.saturating_add(without);
        let failed = without.saturating_add(level.timeout).saturating_add(level.bad_statuses);
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let started = level.start_time.0.map(|seconds| (seconds * 1e3) as i64);
        Report {
            name: Some(format!("{test} / {framework} / {what}")),
            target: Some(framework.to_owned()),
            parameters: [("test", Some(test.to_owned())), ("queries", queries.map(|queries| queries.to_string()))]
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?)))
                .collect(),
            started_ms: started,
            duration: seconds.map(|seconds| Time::exact(seconds * 1e3)),
            load: Generated { connections, connect_errors: Some(level.connect), ..Generated::default() },
            requests: Some(requests),
            failed: Some(failed.min(requests)),
            failures: super::fields::counts(failures),
            rate_per_s: seconds.map(|seconds| level.total_requests as f64 / seconds),
            latency: Latencies {
                mean: time(level.latency_avg),
                stddev: time(level.latency_stdev),
                max: time(level.latency_max),
                of: Population::Responses,
                definition: Definition::Histogram,
                ..Latencies::default()
            },
            ..Report::default()
        }
    }
}
