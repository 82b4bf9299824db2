//! fortio's result as JSON. Times are seconds.
//!
//! Its percentiles are interpolated between the edges of wide buckets.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{Loose, instant_ms, sum};
use super::format::{Format, Reader};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Place, shown};

pub(super) const FORMAT: Format = Format {
    name: "fortio",
    title: "fortio's result as JSON",
    tool: "fortio",
    limits: "Percentiles are interpolated within buckets of any width (-r).",
    is_rounded: false,
    timeout_ms: Some(3_000.0),
    reader: Reader::Json {
        is: |document| document.has(&["ActualQPS", "DurationHistogram", "RetCodes"]).into(),
        read: |document| {
            let fortio: Fortio = document.read()?;
            if !fortio.run_type.starts_with("HTTP") {
                let what = format!("\"{}\" of fortio is not HTTP: only HTTP is compared", shown(&fortio.run_type));
                return Err(Place::root("RunType").fault(what));
            }
            Ok(vec![fortio.report()])
        },
    },
};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Fortio {
    #[serde(default = "http")]
    run_type: String,
    #[serde(default)]
    labels: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    start_time: Option<String>,
    #[serde(default, rename = "URL")]
    url: Option<String>,
    #[serde(default, rename = "RequestedQPS")]
    requested_qps: Loose,
    #[serde(rename = "ActualQPS")]
    actual_qps: Loose,
    actual_duration: Loose,
    #[serde(default)]
    num_threads: Option<u64>,
    duration_histogram: Histogram,
    ret_codes: BTreeMap<String, u64>,
    #[serde(default)]
    bytes_received: Option<u64>,
    #[serde(default)]
    bytes_sent: Option<u64>,
    #[serde(default, rename = "HTTPReqTimeOut")]
    timeout_ns: Loose,
}

/// What a result is of that does not say so.
fn http() -> String {
    "HTTP".to_owned()
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Histogram {
    count: u64,
    min: Loose,
    max: Loose,
    avg: Loose,
    #[serde(default)]
    std_dev: Loose,
    #[serde(default)]
    percentiles: Option<Vec<Percentile>>,
    #[serde(default)]
    data: Option<Vec<Bucket>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Bucket {
    start: f64,
    end: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Percentile {
    percentile: f64,
    value: Loose,
}

impl Histogram {
    /// Returns a percentile, which is anywhere in its bucket.
    fn time(&self, percentile: Loose) -> Option<Time> {
        let (time, seconds) = (percentile.time(1e3)?, percentile.0?);
        let of = |bucket: &&Bucket| (bucket.start..=bucket.end).contains(&seconds);
        let bucket = self.data.iter().flatten().find(of);
        Some(time.at_least(bucket.map_or(0.0, |bucket| (seconds - bucket.start).max(bucket.end - seconds) * 1e3)))
    }
}

impl Fortio {
    fn report(self) -> Report {
        let Self { duration_histogram: histogram, ret_codes, .. } = self;
        // A code below zero stands for a request without a response.
        let is_status = |code: &str| code.parse::<u16>().is_ok_and(|code| (100..600).contains(&code));
        let (statuses, others): (BTreeMap<_, _>, BTreeMap<_, _>) =
            ret_codes.into_iter().partition(|(code, _)| is_status(code));
        let failures: BTreeMap<String, u64> =
            others.into_iter().map(|(code, found)| (format!("code {code}"), found)).collect();
        let bad = super::fields::bad_statuses(&statuses).saturating_add(sum(failures.values()));
        let percentiles: Vec<(f64, Option<Time>)> =
            histogram.percentiles.iter().flatten().map(|one| (one.percentile, histogram.time(one.value))).collect();
        let ends = Latencies {
            min: histogram.min.time(1e3),
            mean: histogram.avg.time(1e3),
            max: histogram.max.time(1e3),
            stddev: histogram.std_dev.time(1e3),
            of: Population::All,
            definition: Definition::Buckets,
            ..Latencies::default()
        };
        Report {
            name: Some(self.labels).filter(|labels| !labels.is_empty()),
            version: self.version,
            url: self.url,
            started_ms: self.start_time.as_deref().and_then(instant_ms),
            duration: self.actual_duration.time(1e-6),
            load: Generated {
                connections: self.num_threads,
                rate_per_s: self.requested_qps.0.filter(|rate| *rate > 0.0),
                // "max" requests as many as possible.
                model: Some(if self.requested_qps.0.is_some_and(|rate| rate > 0.0) {
                    Model::Open
                } else {
                    Model::Closed
                }),
                timeout_ms: self.timeout_ns.0.filter(|ns| *ns > 0.0).map(|ns| ns / 1e6),
                ..Generated::default()
            },
            requests: Some(histogram.count),
            failed: Some(bad),
            failures,
            statuses,
            rate_per_s: self.actual_qps.0,
            received_bytes: self.bytes_received,
            sent_bytes: self.bytes_sent,
            latency: ends.with_percentiles(percentiles),
            ..Report::default()
        }
    }
}
