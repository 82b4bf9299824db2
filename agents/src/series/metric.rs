//! Which of k6's metrics a run records.

use super::messages::TimeSeries;

/// The metric of a k6 series; all others are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Histograms of `http_req_duration` in seconds, of requests with the expected response; of a script without HTTP
    /// requests those of `grpc_req_duration`, of calls with the status OK.
    Succeeded,
    /// The same, of all other requests: `http_req_failed` counts by this tag.
    Failed,
    /// Histograms of `http_req_connecting` in seconds.
    Connecting,
    /// Counter.
    Iterations,
    /// Counter.
    DroppedIterations,
    /// Counter.
    ReceivedBytes,
    /// Counter.
    SentBytes,
    /// Gauge.
    Vus,
}

/// HTTP requests.
const HTTP: &str = "k6_http_req_duration_seconds";

/// gRPC calls.
const CALL: &str = "k6_grpc_req_duration_seconds";

/// Whether a series is of HTTP requests.
pub fn is_http(series: &TimeSeries) -> bool {
    series.label("__name__") == Some(HTTP)
}

/// Whether a series is of gRPC calls.
pub fn is_call(series: &TimeSeries) -> bool {
    series.label("__name__") == Some(CALL)
}

impl Metric {
    /// Identifies a metric by name and tags. `http_reqs` is not used: each request has one latency, and `http_reqs` may
    /// lack the last ones (see the collector).
    pub fn identify(series: &TimeSeries) -> Option<Self> {
        Some(match series.label("__name__")? {
            HTTP => match series.label("expected_response") {
                Some("false") => Self::Failed,
                _ => Self::Succeeded,
            },
            CALL => match series.label("status") {
                Some("0") | None => Self::Succeeded,
                Some(_) => Self::Failed,
            },
            "k6_http_req_connecting_seconds" => Self::Connecting,
            "k6_iterations_total" => Self::Iterations,
            "k6_dropped_iterations_total" => Self::DroppedIterations,
            "k6_data_received_total" => Self::ReceivedBytes,
            "k6_data_sent_total" => Self::SentBytes,
            "k6_vus" => Self::Vus,
            _ => return None,
        })
    }
}
