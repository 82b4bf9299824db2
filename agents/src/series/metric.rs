//! Which of k6's metrics are figures of a run.

use super::messages::TimeSeries;

/// What a series of k6 is about; the others are of no interest here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Histograms of `http_req_duration` in seconds, of requests that were answered as expected.
    Succeeded,
    /// The same, of those that were not: the tag that `http_req_failed` is counted by.
    Failed,
    /// Histograms of `http_req_connecting` in seconds.
    Connecting,
    /// A count.
    Iterations,
    /// A count.
    DroppedIterations,
    /// A count.
    ReceivedBytes,
    /// A count.
    SentBytes,
    /// A level.
    Vus,
}

impl Metric {
    /// By its name and tags; nothing, if it is another one. Requests are not among them: there are as many as
    /// latencies, and `http_reqs` may be short of the last ones (see the collector).
    pub fn of(series: &TimeSeries) -> Option<Self> {
        Some(match series.label("__name__")? {
            "k6_http_req_duration_seconds" => match series.label("expected_response") {
                Some("false") => Self::Failed,
                _ => Self::Succeeded,
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
