//! The values of a summary by which runs are compared.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::values;
use crate::load_time::LoadTime;
use crate::reports::protocol::{Names, Protocol, SUCCESSFUL_CALLS};
use crate::reports::summary::{Group, Kind, Metric, Summary};
use crate::reports::warning::Warning;

/// The time of the load begins when a line of k6's log arrives, which takes longer on a busy machine. If k6's own time
/// of the test is hardly longer, the test had nothing but the load, and k6's time is the more exact one.
const LOG_DELAY_MS: f64 = 50.0;

/// The main metrics of one run. Unknown values are absent, never zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// What is counted as a request.
    #[serde(default)]
    pub protocol: Protocol,
    /// Requests made.
    pub requests: u64,
    /// Requests with an unexpected response or none.
    pub failed: Option<u64>,
    /// Requests per second of the measured time, as the tool counts them; for wrk only those with a response.
    pub rps: f64,
    /// Duration of the load, or of the test if only that is known.
    pub measured_ms: f64,
    /// Latency of all requests. Those without a response count as 0 ms: see `failed`.
    pub latency: Latency,
    /// Latency of successful requests.
    pub ok_latency: Latency,
    /// 95th percentile of the time from the end of sending to the first byte of the response, milliseconds.
    #[serde(default)]
    pub ttfb_p95_ms: Option<f64>,
    /// Mean wait for a connection, milliseconds; not part of the latency.
    pub blocked_ms: Option<f64>,
    /// Completed iterations of the script.
    pub iterations: Option<u64>,
    /// Mean duration of an iteration, milliseconds.
    pub iteration_ms: Option<f64>,
    /// Iterations dropped because no virtual user was free.
    pub dropped_iterations: Option<u64>,
    /// Requests that opened a connection.
    pub new_connections: Option<Between>,
    /// Bytes.
    pub data_received_bytes: Option<u64>,
    /// Bytes received per second, if the summary rounds it separately from the sum.
    pub received_per_s: Option<f64>,
    /// Bytes.
    pub data_sent_bytes: Option<u64>,
    /// Passed checks.
    pub checks_passed: Option<u64>,
    /// Failed checks.
    pub checks_failed: Option<u64>,
    /// The check that failed most often.
    #[serde(default)]
    pub worst_check: Option<FailedCheck>,
    /// Maximum number of allocated virtual users; for other tools the connections that were open.
    pub vus_max: Option<u64>,
    /// What became of the connections of other tools.
    #[serde(default)]
    pub connections: Option<Connections>,
    /// Open connections of wrk and the like, each of which sends its next request on a response; None for k6.
    pub closed_connections: Option<u64>,
    /// Crossed thresholds; only k6 has them.
    pub thresholds_failed: Option<u32>,
    /// All thresholds whose metrics have samples; k6's old text report counts one per metric.
    pub thresholds: Option<u32>,
    /// Times whose minimum is negative, so that it is unknown.
    #[serde(default)]
    pub negative_minima: Vec<String>,
    /// How far rounded values may be from those that were measured.
    #[serde(default)]
    pub resolution: Resolution,
    /// Warnings of the reader of the file.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// A check of the script that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedCheck {
    /// Its name, shortened; any text.
    pub name: String,
    /// How often it passed.
    pub passes: u64,
    /// How often it failed.
    pub fails: u64,
}

/// Maximum letters of the name of a check in a sentence.
const MAX_CHECK_NAME: usize = 80;

/// The connections of a load generator that is not k6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections {
    /// How many were requested.
    pub requested: u64,
    /// How often one could not be opened.
    pub failed: u64,
}

impl Connections {
    /// Share of the connections that may fail without making another load.
    pub const FEW_FAILED: f64 = 0.01;
}

/// Bounds of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Between {
    /// Minimum.
    pub least: u64,
    /// Maximum.
    pub most: u64,
}

/// `http_req_duration` in milliseconds: from sending the request to the end of the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
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

/// How far rounded values may be from those that were measured, each in its unit. Absent if that is less than a thousandth
/// of the value, or unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resolution {
    /// Of requests per second.
    pub rps: Option<f64>,
    /// Of the duration, milliseconds.
    pub measured_ms: Option<f64>,
    /// Of the latency of all requests.
    pub latency: Latency,
    /// Of the 95th percentile of the time to the first byte, milliseconds.
    pub ttfb_p95_ms: Option<f64>,
    /// Of bytes received per second.
    pub received_per_s: Option<f64>,
}

/// Share of a value from which on an error is stated.
const COARSE: f64 = 1e-3;

impl Resolution {
    /// Returns an error that is stated.
    pub fn of(value: f64, error: f64) -> Option<f64> {
        (error > COARSE * value.abs()).then_some(error)
    }
}

impl Summary {
    /// Returns the main metrics of a parsed summary (see [`parse`](crate::reports::read::parse)), by k6's time of the
    /// test.
    pub fn figures(&self) -> Figures {
        self.figures_over(None)
    }

    /// Returns the main metrics, with rates over the time of the load, if it is known.
    pub fn figures_over(&self, load_time: Option<LoadTime>) -> Figures {
        if let Some(figures) = &self.stated {
            return Figures::clone(figures);
        }
        let count = |metric, value| self.value(metric, value).map(values::to_integer);
        let protocol = self.protocol();
        let Names { requests, duration, succeeded } = protocol.names();
        let requests = count(requests, "count").unwrap_or_default();
        // In k6, `passes` of this rate counts failed requests.
        let failed = match protocol {
            Protocol::Http => count("http_req_failed", "passes"),
            Protocol::Grpc => count(SUCCESSFUL_CALLS, "count").map(|succeeded| requests.saturating_sub(succeeded)),
            Protocol::WebSocket => None,
        };
        let test_ms = self.measured_ms();
        let is_longer = |time: &LoadTime| test_ms.is_none_or(|test_ms| test_ms - time.ms as f64 > LOG_DELAY_MS);
        let is_other = |time: &LoadTime| time.late_requests > 0 || is_longer(time);
        let is_plausible = |time: &LoadTime| time.ms > 0 && time.late_requests <= requests;
        let load_time = load_time.filter(is_other).filter(is_plausible);
        let measured_ms = load_time.map(|time| time.ms as f64).or(test_ms).unwrap_or_default();
        let in_time = requests.saturating_sub(load_time.map_or(0, |time| time.late_requests));
        let thresholds = || self.metrics.values().flat_map(|metric| &metric.thresholds).filter_map(|one| one.passed);
        Figures {
            protocol,
            requests,
            failed,
            rps: if measured_ms > 0.0 { in_time as f64 / (measured_ms / 1000.0) } else { 0.0 },
            measured_ms,
            latency: self.latency(duration, requests),
            ok_latency: succeeded.map_or_else(Latency::default, |succeeded| {
                self.latency(succeeded, requests.saturating_sub(failed.unwrap_or_default()))
            }),
            ttfb_p95_ms: self.latency("http_req_waiting", requests).p95_ms,
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
            worst_check: worst_check(&self.root),
            vus_max: count("vus_max", "max").or_else(|| count("vus_max", "value")),
            connections: None,
            closed_connections: None,
            thresholds_failed: Some(number_of(thresholds().filter(|passed| !passed))),
            thresholds: Some(number_of(thresholds())),
            negative_minima: self.negative_minima.clone(),
            resolution: self.resolution,
            warnings: self.warnings.clone(),
        }
    }

    /// Returns the first protocol with requests; HTTP if there are none.
    pub fn protocol(&self) -> Protocol {
        let is_used =
            |protocol: &Protocol| self.value(protocol.names().requests, "count").is_some_and(|requests| requests > 0.0);
        Protocol::ALL.into_iter().find(is_used).unwrap_or_default()
    }

    /// Derives bounds from the percentiles of the connect time, which is zero for a request that reuses a connection.
    /// Text reports round small times to zero, so they are not used.
    fn new_connections(&self, requests: u64) -> Option<Between> {
        let metric = self.metrics.get("http_req_connecting").filter(|_| !self.shape.is_text() && requests > 0)?;
        let part = |share: f64| values::to_integer((requests as f64 * share).round());
        let mut bounds = Between { least: 0, most: requests };
        for (name, value) in &metric.values {
            // k6 interpolates between two ranks, so one request may be on either side.
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

    /// Returns the duration of the test in milliseconds: from the summary, else from a counter and its rate.
    pub(super) fn measured_ms(&self) -> Option<f64> {
        let from = |metric: &Metric| {
            let (count, rate) = (metric.values.get("count")?, metric.values.get("rate")?);
            (*count > 0.0 && *rate > 0.0).then(|| count / rate * 1000.0)
        };
        self.duration_ms
            .or_else(|| self.metrics.get("http_reqs").and_then(from))
            // Without requests, other counters cover the same time.
            .or_else(|| self.metrics.values().filter(|metric| metric.kind == Kind::Counter).find_map(from))
    }

    pub(super) fn value(&self, metric: &str, value: &str) -> Option<f64> {
        self.metrics.get(metric)?.values.get(value).copied()
    }

    /// k6 writes zeros for a metric without samples if it has a threshold; they are not latencies.
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

/// Returns the check that failed most often, in any group.
fn worst_check(group: &Group) -> Option<FailedCheck> {
    let own = group.checks.iter().filter(|check| check.fails > 0).map(|check| FailedCheck {
        name: check.name.chars().take(MAX_CHECK_NAME).collect(),
        passes: check.passes,
        fails: check.fails,
    });
    own.chain(group.groups.iter().filter_map(worst_check)).max_by_key(|check| check.fails)
}

fn number_of<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
