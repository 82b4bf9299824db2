//! What a load generator reports of one run, in neutral terms. Pure.
//!
//! Everything is optional: a value that the file does not have is `None`, never zero. Units are in the names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::reports::summary::Summary;
use crate::reports::time::{Printed, Time};
use crate::reports::warning::Warning;
use crate::series::Window;

/// The result of one run of a load generator, or of one entry of a collection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Report {
    /// The name of its [`Format`](crate::reports::formats::Format).
    #[serde(skip)]
    pub format: &'static str,
    /// The first line of the report in its file, from 1, if the file is text.
    pub line: Option<usize>,
    /// The heading, or else the text, above the report in its file.
    pub heading: Option<String>,
    /// What the file calls it: a label, a scenario, a framework.
    pub name: Option<String>,
    /// What was loaded, if the name says more than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Parameters of the run: what else distinguishes it in its collection, such as the test.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Version of the load generator.
    pub version: Option<String>,
    /// The address that was loaded.
    pub url: Option<String>,
    /// When it began, unix milliseconds.
    pub started_ms: Option<i64>,
    /// Duration of the load.
    pub duration: Option<Time>,
    /// How it was loaded.
    pub load: Generated,
    /// Requests made, with and without a response.
    pub requests: Option<u64>,
    /// Requests with an unexpected response or none.
    pub failed: Option<u64>,
    /// Failed share of the requests, from 0 to 1, if the file does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_share: Option<f64>,
    /// The failed requests by kind. A kind may be counted twice: a timeout with a status, for example.
    pub failures: BTreeMap<String, u64>,
    /// Responses by status, `200`, or by class, `2xx`.
    pub statuses: BTreeMap<String, u64>,
    /// Requests per second, as the tool reports them.
    pub rate_per_s: Option<f64>,
    /// The largest rounding error of the rate, requests per second.
    #[serde(skip_serializing_if = "is_zero")]
    pub rate_error_per_s: f64,
    /// Bytes received: bodies, and heads if the tool counts them.
    pub received_bytes: Option<u64>,
    /// Bytes sent.
    pub sent_bytes: Option<u64>,
    /// Bytes received per second, if the tool rounds it separately from the sum.
    pub received_per_s: Option<f64>,
    /// The largest rounding error of that rate, bytes per second.
    #[serde(skip_serializing_if = "is_zero")]
    pub received_error_per_s: f64,
    /// Requests or iterations that were started, if the tool counts those that were not.
    pub starts: Option<u64>,
    /// Intended starts that never happened.
    pub dropped: Option<u64>,
    /// Connections opened.
    pub opened: Option<u64>,
    /// Mean wait of a request for a connection, which its latency excludes, milliseconds.
    pub blocked_ms: Option<f64>,
    /// Times from the start of a request to the first byte of its response.
    pub first_byte: Latencies,
    /// Latency of the requests.
    pub latency: Latencies,
    /// Latency of the successful requests, if the tool reports both.
    pub ok_latency: Latencies,
    /// The load per second.
    #[serde(skip)]
    pub series: Option<Window>,
    /// Values that have no place above, by a name with its unit.
    pub others: BTreeMap<String, f64>,
    /// k6's own report, with its checks, thresholds and custom metrics.
    #[serde(skip)]
    pub summary: Option<Box<Summary>>,
    /// What a reader of the values has to know.
    pub warnings: Vec<Warning>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(error: &f64) -> bool {
    *error == 0.0
}

/// How the load was generated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Generated {
    /// Connections, virtual users or workers that were requested.
    pub connections: Option<u64>,
    /// How often a connection could not be opened.
    pub connect_errors: Option<u64>,
    /// Threads of the load generator.
    pub threads: Option<u64>,
    /// Requests per second that were requested.
    pub rate_per_s: Option<f64>,
    /// When it sends a request.
    pub model: Option<Model>,
    /// After which time the client gives up a request, milliseconds.
    pub timeout_ms: Option<f64>,
}

/// When a load generator sends the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Model {
    /// When the previous one of the same connection has ended.
    Closed,
    /// At a rate.
    Open,
}

impl Generated {
    /// Share of the connections that may fail without making another load.
    pub const FEW_FAILED: f64 = 0.01;

    /// Returns how many connections made the load; `None` if that is unknown.
    ///
    /// A connection that could not be opened is given up, or tried again. If more attempts failed than there are
    /// connections, it is unknown how many were open.
    pub fn open(&self) -> Option<u64> {
        let requested = self.connections?;
        match self.connect_errors.unwrap_or_default() {
            failed if failed as f64 <= Self::FEW_FAILED * requested as f64 => Some(requested),
            failed => requested.checked_sub(failed).filter(|open| *open > 0),
        }
    }
}

/// A distribution of latencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Latencies {
    /// Fastest.
    pub min: Option<Time>,
    /// Mean.
    pub mean: Option<Time>,
    /// Slowest.
    pub max: Option<Time>,
    /// Standard deviation.
    pub stddev: Option<Time>,
    /// Percentiles, ascending.
    pub percentiles: Vec<Percentile>,
    /// Which requests it covers.
    pub of: Population,
    /// How its percentiles were computed.
    pub definition: Definition,
    /// Where a latency begins.
    pub since: Since,
}

/// A percentile of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// From 0 to 100.
    pub percent: f64,
    /// Its value.
    pub time: Time,
}

/// The requests that a distribution covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Population {
    /// All requests, those without a response among them.
    All,
    /// Requests with a response, whatever its status.
    #[default]
    Responses,
    /// Requests with an expected response.
    Successful,
}

/// How a percentile was computed. Percentiles of different definitions differ for the same requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Definition {
    /// The file does not say.
    #[default]
    Unknown,
    /// The value of a request: the smallest one that is not below the given share of the requests, or the next.
    Rank,
    /// Between the values of two requests.
    Interpolated,
    /// From buckets of a histogram, with an error below a thousandth unless the times say more.
    Histogram,
    /// From buckets that are so wide that the error may be of any size.
    Buckets,
    /// Estimated by a sketch, such as t-digest.
    Estimated,
    /// Of a part of the requests.
    Sampled,
}

/// Where a latency begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    /// When the request was sent.
    #[default]
    Sent,
    /// When the request should have been sent, so that waiting for a free connection counts.
    Due,
}

impl Report {
    /// Sets the rate as the tool printed it.
    pub fn set_rate(&mut self, Printed { value, error }: Printed) {
        (self.rate_per_s, self.rate_error_per_s) = (Some(value), error);
    }

    /// Sets the bytes received per second as the tool printed them.
    pub fn set_received(&mut self, Printed { value, error }: Printed) {
        (self.received_per_s, self.received_error_per_s) = (Some(value), error);
    }
}

impl Latencies {
    /// Returns a percentile.
    pub fn percentile(&self, percent: f64) -> Option<Time> {
        self.percentiles.iter().find(|one| (one.percent - percent).abs() < 1e-9).map(|one| one.time)
    }

    /// Sets the percentiles, sorted; those that are unknown are left out.
    #[must_use]
    pub fn with_percentiles(mut self, percentiles: impl IntoIterator<Item = (f64, Option<Time>)>) -> Self {
        let known = percentiles.into_iter().filter_map(|(percent, time)| Some(Percentile { percent, time: time? }));
        self.percentiles.extend(known.filter(|one| (0.0..=100.0).contains(&one.percent)));
        self.percentiles.sort_by(|left, right| left.percent.total_cmp(&right.percent));
        self
    }

    /// Returns the latencies of requests whose times have at least this error. A mean of many has less.
    #[must_use]
    pub fn at_least(mut self, error_ms: f64) -> Self {
        let ends = [&mut self.min, &mut self.max].into_iter().flatten();
        let all = ends.chain(self.percentiles.iter_mut().map(|one| &mut one.time));
        all.for_each(|time| *time = time.at_least(error_ms));
        self
    }

    /// Whether no value is known.
    pub fn is_empty(&self) -> bool {
        let Self { min, mean, max, stddev, percentiles, .. } = self;
        [min, mean, max, stddev].into_iter().all(Option::is_none) && percentiles.is_empty()
    }
}
