//! The summary of brewbench's own load generator: `brewbench load --json`. Times are nanoseconds; histograms have buckets
//! that are 0.27 % wide.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::format::{Format, Reader};
use crate::histogram::{Histogram, sparse};
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report, Since};
use crate::reports::time::Time;

pub(super) const FORMAT: Format = Format {
    name: "native",
    title: "brewbench's own summary",
    tool: "native",
    limits: "It lacks the address.",
    is_rounded: false,
    timeout_ms: Some(60_000.0),
    reader: Reader::Json {
        is: |document| document.has(&["planned_ms", "elapsed_ms", "late_requests", "first_byte", "scheduling"]).into(),
        read: |document| Ok(vec![document.read::<Native>()?.report()]),
    },
};

/// Merges the summaries of several generators of one load; `None` unless all are of this format.
pub fn merged(texts: &[&str]) -> Option<String> {
    let all: Option<Vec<Native>> = texts.iter().map(|text| serde_json::from_str(text).ok()).collect();
    serde_json::to_string(&all?.into_iter().reduce(Native::plus)?).ok()
}

#[derive(Serialize, Deserialize)]
struct Native {
    planned_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    open_ms: Option<u64>,
    elapsed_ms: u64,
    #[serde(default)]
    connections: Option<u64>,
    #[serde(default)]
    open: bool,
    #[serde(default)]
    scheduling: Option<Distribution>,
    threads: u64,
    requests: u64,
    failed: u64,
    late_requests: u64,
    interrupted_requests: u64,
    dropped: u64,
    bytes_in: u64,
    bytes_out: u64,
    opened: u64,
    errors: BTreeMap<String, Errors>,
    statuses: Vec<(u16, u64)>,
    succeeded: Distribution,
    failed_durations: Distribution,
    first_byte: Distribution,
    connect: Distribution,
    busy: f64,
}

#[derive(Serialize, Deserialize)]
struct Errors {
    count: u64,
}

#[derive(Serialize, Deserialize)]
struct Distribution {
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    #[serde(with = "sparse")]
    histogram: Histogram,
}

impl Native {
    /// Adds another generator of the same load.
    fn plus(mut self, other: Self) -> Self {
        for (kind, errors) in other.errors {
            let own = self.errors.entry(kind).or_insert(Errors { count: 0 });
            own.count = own.count.saturating_add(errors.count);
        }
        let mut statuses: BTreeMap<u16, u64> = self.statuses.into_iter().collect();
        for (status, count) in other.statuses {
            let own = statuses.entry(status).or_default();
            *own = own.saturating_add(count);
        }
        Self {
            planned_ms: self.planned_ms.max(other.planned_ms),
            open_ms: self.open_ms.or(other.open_ms),
            elapsed_ms: self.elapsed_ms.max(other.elapsed_ms),
            // Each knows the connections of all generators.
            connections: self.connections.max(other.connections),
            open: self.open,
            scheduling: self.scheduling.zip(other.scheduling).map(|(one, other)| one.plus(&other)),
            threads: self.threads.saturating_add(other.threads),
            requests: self.requests.saturating_add(other.requests),
            failed: self.failed.saturating_add(other.failed),
            late_requests: self.late_requests.saturating_add(other.late_requests),
            interrupted_requests: self.interrupted_requests.saturating_add(other.interrupted_requests),
            dropped: self.dropped.saturating_add(other.dropped),
            bytes_in: self.bytes_in.saturating_add(other.bytes_in),
            bytes_out: self.bytes_out.saturating_add(other.bytes_out),
            opened: self.opened.saturating_add(other.opened),
            errors: self.errors,
            statuses: statuses.into_iter().collect(),
            succeeded: self.succeeded.plus(&other.succeeded),
            failed_durations: self.failed_durations.plus(&other.failed_durations),
            first_byte: self.first_byte.plus(&other.first_byte),
            connect: self.connect.plus(&other.connect),
            busy: self.busy.max(other.busy),
        }
    }

    fn report(self) -> Report {
        let all = self.succeeded.plus(&self.failed_durations);
        let since = if self.open { Since::Due } else { Since::Sent };
        let measured_ms = self.open_ms.unwrap_or(self.planned_ms.min(self.elapsed_ms));
        let in_time = self.requests.saturating_sub(self.late_requests);
        Report {
            duration: Some(Time::exact(measured_ms as f64)),
            load: Generated {
                connections: self.connections,
                threads: Some(self.threads),
                model: Some(if self.open { Model::Open } else { Model::Closed }),
                ..Generated::default()
            },
            requests: Some(self.requests),
            failed: Some(self.failed),
            failures: self.errors.into_iter().map(|(kind, errors)| (kind, errors.count)).collect(),
            statuses: self.statuses.into_iter().map(|(status, count)| (status.to_string(), count)).collect(),
            rate_per_s: (measured_ms > 0).then(|| in_time as f64 / (measured_ms as f64 / 1e3)),
            received_bytes: Some(self.bytes_in),
            sent_bytes: Some(self.bytes_out),
            starts: Some(self.requests.saturating_add(self.interrupted_requests)),
            dropped: Some(self.dropped),
            opened: Some(self.opened),
            blocked_ms: (self.requests > 0)
                .then(|| self.connect.histogram.sum_ns() as f64 / 1e6 / self.requests as f64),
            first_byte: self.first_byte.latencies(Population::Responses, Since::Sent),
            latency: all.latencies(Population::All, since),
            ok_latency: self.succeeded.latencies(Population::Successful, since),
            others: BTreeMap::from([
                ("late_requests".to_owned(), self.late_requests as f64),
                ("interrupted_requests".to_owned(), self.interrupted_requests as f64),
                ("busiest_thread_share".to_owned(), self.busy),
            ]),
            ..Report::default()
        }
    }
}

impl Distribution {
    fn plus(&self, other: &Self) -> Self {
        let mut histogram = self.histogram.clone();
        histogram.add(&other.histogram);
        let min_ns = self.min_ns.into_iter().chain(other.min_ns).min();
        Self { min_ns, max_ns: self.max_ns.max(other.max_ns), histogram }
    }

    fn latencies(&self, of: Population, since: Since) -> Latencies {
        let exact = |ns: Option<u64>| ns.map(|ns| Time::of(ns as f64, 1e-6));
        let ends = |ns: Option<u64>, or: f64| ns.map_or(or, |ns| ns as f64 / 1e6);
        let at = |percent: f64| {
            let quantile = self.histogram.quantile(percent / 100.0)?;
            let quantile = quantile.within(ends(self.min_ns, 0.0), ends(self.max_ns, f64::MAX));
            Some(Time { ms: quantile.estimate, error_ms: quantile.error() })
        };
        let base = Latencies {
            min: exact(self.min_ns),
            mean: self.histogram.mean_ms().map(Time::exact),
            max: exact(self.max_ns),
            of,
            definition: Definition::Histogram,
            since,
            ..Latencies::default()
        };
        base.with_percentiles([50.0, 90.0, 95.0, 99.0, 99.9].map(|percent| (percent, at(percent))))
    }
}
