//! The data of HttpArena's site: a list of frameworks of one test, or all tests of one framework.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, counts, sum};
use super::format::{Format, Reader, Recognised};
use crate::reports::input::document::Document;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report, Since};
use crate::reports::time::{Time, number, scaled};
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "httparena",
    title: "HttpArena's site data",
    tool: "httparena",
    limits: "Each entry is the best of several runs. Times are rounded; of percentiles there is the 99th and sometimes the 99.9th.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Json { is, read },
};

const KEYS: [&str; 4] = ["framework", "rps", "p99_latency", "connections"];

fn is(document: &Document<'_>) -> Recognised {
    let is_list = document.item(0).is_some_and(|first| first.has(&KEYS));
    let results = || {
        document
            .get("results")
            .is_some_and(|results| results.entries().next().is_some_and(|(_, text)| Document::new(text).has(&KEYS)))
    };
    (is_list || document.has(&["framework", "results"]) && results()).into()
}

#[derive(Deserialize)]
struct Entry {
    framework: String,
    rps: Loose,
    #[serde(default)]
    avg_latency: Option<String>,
    #[serde(default)]
    p99_latency: Option<String>,
    #[serde(default)]
    p99_9_latency: Option<String>,
    #[serde(default)]
    cpu: Option<String>,
    #[serde(default)]
    memory: Option<String>,
    connections: Option<u64>,
    #[serde(default)]
    threads: Option<u64>,
    #[serde(default)]
    duration: Option<String>,
    #[serde(default)]
    bandwidth: Option<String>,
    #[serde(default)]
    target_rate: Option<f64>,
    #[serde(default)]
    status_2xx: Option<u64>,
    #[serde(default)]
    status_3xx: u64,
    #[serde(default)]
    status_4xx: u64,
    #[serde(default)]
    status_5xx: u64,
}

#[derive(Deserialize)]
struct Framework {
    results: BTreeMap<String, Entry>,
}

fn read(document: &Document<'_>) -> Result<Vec<Report>, Fault> {
    if document.has(&["results"]) {
        let Framework { results } = document.read()?;
        return Ok(results.into_iter().map(|(test, entry)| entry.report(Some(&test))).collect());
    }
    let entries: Vec<Entry> = document.read()?;
    Ok(entries.into_iter().map(|entry| entry.report(None)).collect())
}

impl Entry {
    fn report(self, test: Option<&str>) -> Report {
        let time = |text: Option<String>| text.as_deref().and_then(Time::printed);
        let mut statuses = counts([("3xx", self.status_3xx), ("4xx", self.status_4xx), ("5xx", self.status_5xx)]);
        statuses.extend(self.status_2xx.map(|found| ("2xx".to_owned(), found)));
        let is_open = self.target_rate.is_some();
        let latency = Latencies {
            mean: time(self.avg_latency),
            of: Population::Responses,
            definition: Definition::Unknown,
            since: if is_open { Since::Due } else { Since::Sent },
            ..Latencies::default()
        };
        let cpu = self
            .cpu
            .as_deref()
            .and_then(|text| number(text.strip_suffix('%')?))
            .map(|percent| ("target_cpu_cores", percent / 100.0));
        let memory = self.memory.as_deref().and_then(|text| scaled(&text.replace("iB", "B"), "B", 1024.0));
        let memory = memory.map(|bytes| ("target_memory_bytes", bytes.value));
        let bandwidth = self.bandwidth.as_deref().and_then(|text| scaled(text.strip_suffix("/s")?, "B", 1024.0));
        let mut report = Report {
            name: Some(test.map_or_else(|| self.framework.clone(), |test| format!("{} / {test}", self.framework))),
            target: Some(self.framework),
            parameters: test.map(|test| ("test".to_owned(), test.to_owned())).into_iter().collect(),
            duration: time(self.duration).map(|time| Time::exact(time.ms)),
            load: Generated {
                connections: self.connections,
                threads: self.threads,
                rate_per_s: self.target_rate,
                ..Generated::default()
            },
            requests: self.status_2xx.map(|_| sum(statuses.values())),
            failed: self.status_2xx.map(|_| super::fields::bad_statuses(&statuses)),
            statuses,
            rate_per_s: self.rps.0.filter(|rate| *rate >= 0.0),
            latency: latency.with_percentiles([(99.0, time(self.p99_latency)), (99.9, time(self.p99_9_latency))]),
            others: cpu.into_iter().chain(memory).map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Report::default()
        };
        if let Some(rate) = bandwidth {
            report.set_received(rate);
        }
        report
    }
}
