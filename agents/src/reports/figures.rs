//! What runs are compared by, taken from a summary.

use serde::{Deserialize, Serialize};

use super::values;
use crate::reports::summary::{Kind, Metric, Shape, Summary};

/// The headline figures of one run. What its summary doesn't have is absent, never zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// HTTP requests made.
    pub requests: u64,
    /// Requests whose response was not expected, or that got none.
    pub failed: Option<u64>,
    /// Requests per second of the measured time; of wrk's, those that got an answer.
    pub rps: f64,
    /// How long the test ran.
    pub measured_ms: f64,
    /// Latency of all requests. Those that never got an answer count with 0 ms: see `failed`.
    pub latency: Latency,
    /// Latency of the successful requests alone.
    pub ok_latency: Latency,
    /// How long a request waited for its connection on average, milliseconds; no latency has it in it.
    pub blocked_ms: Option<f64>,
    /// Iterations of the script that were completed.
    pub iterations: Option<u64>,
    /// How long one of them took on average, milliseconds.
    pub iteration_ms: Option<f64>,
    /// Iterations that were due, but that no virtual user was free for.
    pub dropped_iterations: Option<u64>,
    /// How many requests opened a connection of their own.
    pub new_connections: Option<Between>,
    /// Bytes.
    pub data_received_bytes: Option<u64>,
    /// Bytes received per second, where the summary says so apart from the sum because it rounds both.
    pub received_per_s: Option<f64>,
    /// Bytes.
    pub data_sent_bytes: Option<u64>,
    /// How often a check was true, all checks together.
    pub checks_passed: Option<u64>,
    /// How often a check was not true, all checks together.
    pub checks_failed: Option<u64>,
    /// The most virtual users that were allocated at a time.
    pub vus_max: Option<u64>,
    /// Thresholds that were crossed; wrk knows none.
    pub thresholds_failed: Option<u32>,
    /// Thresholds that the summary speaks of; k6's old text report tells them by metric.
    pub thresholds: Option<u32>,
}

/// A count that is known within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// At least.
    pub least: u64,
    /// At most.
    pub most: u64,
}

/// `http_req_duration` in milliseconds: from sending the request to the end of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Mean.
    pub avg_ms: Option<f64>,
    /// Fastest.
    pub min_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// Slowest.
    pub max_ms: Option<f64>,
}

impl Summary {
    /// The figures of a summary from [`parse`](crate::reports::read::parse).
    pub fn figures(&self) -> Figures {
        let count = |metric, value| self.value(metric, value).map(values::whole);
        let requests = count("http_reqs", "count").unwrap_or_default();
        // k6's own quirk: for this rate, to pass is to fail.
        let failed = count("http_req_failed", "passes");
        let measured_ms = self.measured_ms().unwrap_or_default();
        let has_thresholds = self.shape != Shape::Wrk;
        let thresholds = || self.metrics.values().flat_map(|metric| &metric.thresholds);
        Figures {
            requests,
            failed,
            rps: match self.shape {
                // Of its requests many may have got no answer, which would look fast.
                Shape::Wrk => self.value("http_reqs", "rate").unwrap_or_default(),
                _ if measured_ms > 0.0 => requests as f64 / (measured_ms / 1000.0),
                _ => 0.0,
            },
            measured_ms,
            latency: self.latency("http_req_duration", requests),
            ok_latency: self.latency(
                "http_req_duration{expected_response:true}",
                requests.saturating_sub(failed.unwrap_or_default()),
            ),
            blocked_ms: self.value("http_req_blocked", "avg"),
            iterations: count("iterations", "count"),
            iteration_ms: self.value("iteration_duration", "avg"),
            dropped_iterations: count("dropped_iterations", "count"),
            new_connections: self.new_connections(requests),
            data_received_bytes: count("data_received", "count"),
            received_per_s: self.value("data_received", "rate").filter(|_| self.shape.is_text()),
            data_sent_bytes: count("data_sent", "count"),
            checks_passed: count("checks", "passes"),
            checks_failed: count("checks", "fails"),
            vus_max: count("vus_max", "max").or_else(|| count("vus_max", "value")),
            thresholds_failed: has_thresholds.then(|| number_of(thresholds().filter(|threshold| !threshold.passed))),
            thresholds: has_thresholds.then(|| number_of(thresholds())),
        }
    }

    /// Connecting takes no time at all for a request that finds a connection, so each percentile of that time says whether
    /// more or fewer requests than it leaves opened one. Texts round small times to nothing.
    fn new_connections(&self, requests: u64) -> Option<Between> {
        let metric = self.metrics.get("http_req_connecting").filter(|_| !self.shape.is_text() && requests > 0)?;
        let part = |share: f64| values::whole((requests as f64 * share).round());
        let mut bounds = Between { least: 0, most: requests };
        for (name, value) in &metric.values {
            // Between two ranks k6 interpolates, so one request may lie on either side.
            match (name.as_str(), *value > 0.0) {
                ("min", true) => bounds.least = requests,
                ("max", false) => bounds.most = 0,
                ("max", true) => bounds.least = bounds.least.max(1),
                (name, opened) => {
                    let Some(percent) = values::percentile(name) else { continue };
                    let beyond = part(1.0 - percent / 100.0);
                    if opened {
                        bounds.least = bounds.least.max(beyond.saturating_sub(1));
                    } else {
                        bounds.most = bounds.most.min(beyond.saturating_add(1));
                    }
                }
            }
        }
        Some(bounds).filter(|bounds| bounds.least <= bounds.most && (bounds.least > 0 || bounds.most < requests))
    }

    /// How long the test ran, in milliseconds: as the summary says, else from a counter and its rate per second.
    pub(super) fn measured_ms(&self) -> Option<f64> {
        let from = |metric: &Metric| {
            let (count, rate) = (metric.values.get("count")?, metric.values.get("rate")?);
            (*count > 0.0 && *rate > 0.0).then(|| count / rate * 1000.0)
        };
        self.duration_ms
            .or_else(|| self.metrics.get("http_reqs").and_then(from))
            // Where no request was made, iterations or bytes were counted over the same time.
            .or_else(|| self.metrics.values().filter(|metric| metric.kind == Kind::Counter).find_map(from))
    }

    pub(super) fn value(&self, metric: &str, value: &str) -> Option<f64> {
        self.metrics.get(metric)?.values.get(value).copied()
    }

    /// k6 writes zeros for a metric that has no samples but a threshold; they are no latency.
    fn latency(&self, metric: &str, samples: u64) -> Latency {
        let Some(metric) = self.metrics.get(metric) else { return Latency::default() };
        if samples == 0 || metric.values.get("count") == Some(&0.0) {
            return Latency::default();
        }
        let value = |name| metric.values.get(name).copied();
        let percentile = |percent: f64| {
            // k6 keeps the spelling of the script: `p(99.90)` is p(99.9).
            let named = |name: &str| values::percentile(name).is_some_and(|p| (p - percent).abs() < 1e-9);
            metric.values.iter().find(|(name, _)| named(name)).map(|(_, value)| *value)
        };
        Latency {
            avg_ms: value("avg"),
            min_ms: value("min"),
            p50_ms: percentile(50.0),
            p90_ms: percentile(90.0),
            p95_ms: percentile(95.0),
            p99_ms: percentile(99.0),
            p999_ms: percentile(99.9),
            max_ms: value("max"),
        }
    }
}

fn number_of<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
