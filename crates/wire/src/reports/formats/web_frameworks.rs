//! `data.min.json` and `data.json` of the-benchmarker/web-frameworks: metrics × levels × frameworks, as wrk measured them.
//!
//! Times are microseconds, even `duration_ms`. A value of −1 or below is unknown.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::Loose;
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::Time;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "web-frameworks",
    title: "data.json of web-frameworks",
    tool: "wrk",
    limits: "Each value is a mean over several routes, percentiles among them: they are not percentiles of anything.",
    is_rounded: false,
    timeout_ms: None,
    reader: Reader::Json {
        is: |document| {
            let first = document.get("metrics").and_then(|metrics| metrics.item(0));
            (document.has(&["frameworks"]) && first.is_some_and(|first| first.has(&["level", "label", "framework_id"])))
                .into()
        },
        read: |document| Ok(reports(document.read()?)),
    },
};

#[derive(Deserialize)]
struct Data {
    metrics: Vec<Cell>,
    frameworks: Vec<Framework>,
}

#[derive(Deserialize)]
struct Cell {
    level: u64,
    label: String,
    #[serde(default)]
    value: Loose,
    #[serde(rename = "framework_id")]
    framework: u64,
}

#[derive(Deserialize)]
struct Framework {
    id: u64,
    label: String,
    #[serde(default)]
    language: Option<String>,
}

fn reports(data: Data) -> Vec<Report> {
    let names: BTreeMap<u64, Framework> =
        data.frameworks.into_iter().map(|framework| (framework.id, framework)).collect();
    let mut found: BTreeMap<(u64, u64), BTreeMap<String, f64>> = BTreeMap::new();
    for Cell { level, label, value, framework } in data.metrics {
        if let Some(value) = value.0.filter(|value| *value >= 0.0) {
            found.entry((framework, level)).or_default().insert(label, value);
        }
    }
    let report = |((id, level), values): ((u64, u64), BTreeMap<String, f64>)| {
        let name = names.get(&id).map_or_else(
            || format!("framework {id}"),
            |Framework { label, language, .. }| match language {
                Some(language) => format!("{language} / {label}"),
                None => label.clone(),
            },
        );
        one(name, level, &values)
    };
    found.into_iter().map(report).collect()
}

fn one(framework: String, level: u64, values: &BTreeMap<String, f64>) -> Report {
    let get = |label: &str| values.get(label).copied();
    let count = |label: &str| Loose(get(label)).count();
    let us = |label: &str| get(label).map(|value| Time::of(value, 1e-3));
    let kinds = [
        ("connect", "socket_connection_errors"),
        ("read", "socket_read_errors"),
        ("write", "socket_write_errors"),
        ("timeout", "request_timeouts"),
        ("status", "http_errors"),
    ];
    let failures: BTreeMap<String, u64> =
        kinds.into_iter().filter_map(|(kind, label)| Some((kind.to_owned(), count(label)?))).collect();
    let without = ["connect", "read", "write"].iter().filter_map(|kind| failures.get(*kind));
    let requests = count("total_requests").map(|responses| responses.saturating_add(super::fields::sum(without)));
    let failed = super::fields::sum(failures.values());
    // A total without responses has zeros instead of latencies.
    let has_latency = count("total_requests").is_none_or(|responses| responses > 0);
    let ends = Latencies {
        min: us("minimum_latency"),
        mean: us("average_latency"),
        max: us("maximum_latency"),
        stddev: us("standard_deviation"),
        of: Population::Responses,
        definition: Definition::Unknown,
        ..Latencies::default()
    };
    let percentiles = values.iter().filter_map(|(label, value)| {
        let percent = label.strip_prefix("percentile_")?.parse().ok()?;
        Some((percent, Some(Time::of(*value, 1e-3))))
    });
    let what = "each value is a mean over several routes, the percentiles among them";
    Report {
        name: Some(format!("{framework} / {level} connections")),
        target: Some(framework),
        duration: us("duration_ms").filter(|time| time.ms > 0.0),
        load: Generated {
            connections: Some(level),
            connect_errors: failures.get("connect").copied(),
            ..Generated::default()
        },
        requests,
        failed: (!failures.is_empty()).then(|| requests.map_or(failed, |requests| failed.min(requests))),
        failures,
        rate_per_s: get("total_requests_per_s"),
        received_bytes: count("total_bytes_received"),
        latency: if has_latency { ends.with_percentiles(percentiles) } else { Latencies::default() },
        warnings: vec![Warning::Note(what.to_owned())],
        ..Report::default()
    }
}
