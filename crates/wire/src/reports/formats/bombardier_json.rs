//! bombardier's output as JSON (`-o json`). Latencies are microseconds.
//!
//! Its latencies are of all requests, those without a response among them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, counts};
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};

pub(super) const FORMAT: Format = Format {
    name: "bombardier",
    title: "bombardier's output as JSON",
    tool: "bombardier",
    limits: "The rate is the mean of samples. Percentiles are only there with --latencies.",
    is_rounded: false,
    timeout_ms: Some(2_000.0),
    reader: Reader::Json {
        is: |document| {
            (document.has_in("spec", &["numberOfConnections"]) && document.has_in("result", &["timeTakenSeconds"]))
                .into()
        },
        read: |document| Ok(vec![document.read::<Bombardier>()?.report()]),
    },
};

#[derive(Deserialize)]
struct Bombardier {
    spec: Spec,
    result: Outcome,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    number_of_connections: u64,
    url: Option<String>,
    timeout_seconds: Option<f64>,
    rate: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outcome {
    bytes_read: Option<u64>,
    bytes_written: Option<u64>,
    time_taken_seconds: Loose,
    req1xx: u64,
    req2xx: u64,
    req3xx: u64,
    req4xx: u64,
    req5xx: u64,
    others: u64,
    #[serde(default)]
    errors: Option<Vec<Error>>,
    latency: Option<Statistics>,
    rps: Option<Statistics>,
}

#[derive(Deserialize)]
struct Error {
    description: String,
    count: u64,
}

#[derive(Deserialize)]
struct Statistics {
    mean: Loose,
    stddev: Loose,
    max: Loose,
    #[serde(default)]
    percentiles: BTreeMap<String, Loose>,
}

impl Bombardier {
    fn report(self) -> Report {
        let Self { spec, result } = self;
        let Outcome { req1xx, req2xx, req3xx, req4xx, req5xx, others, .. } = result;
        let statuses = counts([("1xx", req1xx), ("2xx", req2xx), ("3xx", req3xx), ("4xx", req4xx), ("5xx", req5xx)]);
        let failed = [req4xx, req5xx, others].into_iter().fold(0, u64::saturating_add);
        let errors = result.errors.unwrap_or_default().into_iter().map(|error| (error.description, error.count));
        let latency = result.latency.map_or_else(Latencies::default, |found| {
            let percentiles: Vec<_> = found
                .percentiles
                .iter()
                .filter_map(|(name, value)| Some((name.parse().ok()?, value.time(1e-3))))
                .collect();
            let ends = Latencies {
                mean: found.mean.time(1e-3),
                stddev: found.stddev.time(1e-3),
                max: found.max.time(1e-3),
                of: Population::All,
                definition: Definition::Rank,
                ..Latencies::default()
            };
            ends.with_percentiles(percentiles)
        });
        Report {
            url: spec.url,
            duration: result.time_taken_seconds.time(1e3),
            load: Generated {
                connections: Some(spec.number_of_connections),
                rate_per_s: spec.rate,
                timeout_ms: spec.timeout_seconds.map(|seconds| seconds * 1e3),
                model: Some(if spec.rate.is_some() { Model::Open } else { Model::Closed }),
                ..Generated::default()
            },
            requests: Some(super::fields::sum(statuses.values()).saturating_add(others)),
            failed: Some(failed),
            failures: errors.collect(),
            statuses,
            rate_per_s: result.rps.and_then(|rps| rps.mean.0),
            received_bytes: result.bytes_read,
            sent_bytes: result.bytes_written,
            latency,
            ..Report::default()
        }
    }
}
