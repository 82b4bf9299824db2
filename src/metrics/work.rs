//! Properties of the requests of a run, such as status codes and connections. Pure.

use std::collections::BTreeMap;

use brewbench_wire::work_done::WorkDone;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::format;

/// Properties of a run's requests; unknown values are null. A summary alone has no statuses, protocols and connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunWork {
    /// Requests per iteration of the script, including redirects.
    pub requests_per_iteration: Option<f64>,
    /// Bytes received per request, including headers.
    pub bytes_per_request: Option<f64>,
    /// Bytes sent per request, including headers; less than others if a target does not read its requests.
    #[serde(default)]
    pub sent_bytes_per_request: Option<f64>,
    /// Number of requests that opened a new connection, if counted.
    pub new_connections: Option<u64>,
    /// Lower bound of `new_connections`.
    pub min_new_connections: Option<u64>,
    /// Upper bound of `new_connections`; a summary alone has only bounds.
    pub max_new_connections: Option<u64>,
    /// Share of the requests that opened a new connection, 0 to 1.
    pub new_connection_share: Option<f64>,
    /// Number of requests by response status; `0` means no response.
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Number of requests by response protocol.
    pub protocols: Option<BTreeMap<String, u64>>,
}

impl RunWork {
    /// Creates it from counts of the measurement.
    pub fn new(requests: Option<u64>, iterations: Option<u64>, received_bytes: Option<f64>) -> Self {
        let requests = requests.filter(|requests| *requests > 0).map(|requests| requests as f64);
        let iterations = iterations.filter(|iterations| *iterations > 0).map(|iterations| iterations as f64);
        Self {
            requests_per_iteration: requests.zip(iterations).map(|(requests, iterations)| requests / iterations),
            bytes_per_request: received_bytes.zip(requests).map(|(bytes, requests)| bytes / requests),
            ..Self::default()
        }
    }

    /// Adds the bytes sent.
    #[must_use]
    pub fn with_sent(self, sent_bytes: Option<f64>, requests: Option<u64>) -> Self {
        let requests = requests.filter(|requests| *requests > 0);
        Self {
            sent_bytes_per_request: sent_bytes.zip(requests).map(|(bytes, requests)| bytes / requests as f64),
            ..self
        }
    }

    /// Adds the bounds of new connections.
    #[must_use]
    pub fn with_connections(self, least: Option<u64>, most: Option<u64>, requests: Option<u64>) -> Self {
        let new_connections = least.filter(|_| least == most);
        let share = |(new, requests): (u64, u64)| (requests > 0).then(|| new as f64 / requests as f64);
        Self {
            new_connections,
            min_new_connections: least,
            max_new_connections: most,
            new_connection_share: new_connections.zip(requests).and_then(share),
            ..self
        }
    }

    /// Adds what k6's tags report: statuses, protocols and the exact number of new connections, if it is known.
    #[must_use]
    pub fn with_tags(self, tags: WorkDone, requests: Option<u64>) -> Self {
        let WorkDone { statuses, protocols, new_connections: new, failures: _ } = tags;
        let counted = if new.is_some() { self.with_connections(new, new, requests) } else { self };
        Self { statuses, protocols, ..counted }
    }
}

/// Counts as shares, most frequent first: `200 98 %, 302 2 %`; only the value if there is just one.
pub fn mix(counts: &BTreeMap<String, u64>) -> String {
    let total: f64 = counts.values().map(|count| *count as f64).sum();
    let mut parts: Vec<(&String, u64)> = counts.iter().map(|(value, count)| (value, *count)).collect();
    parts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = |value: &str| if value == "0" { "no response".to_owned() } else { value.to_owned() };
    if let [(value, _)] = parts.as_slice() {
        return named(value);
    }
    let part = |(value, count): &(&String, u64)| {
        format!("{} {}", named(value), format::percent(Some(*count as f64 / total.max(1.0))).text())
    };
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_need_counts_above_zero() {
        let work = RunWork::new(Some(200), Some(100), Some(24_000.0)).with_connections(Some(10), Some(10), Some(200));
        assert_eq!((work.requests_per_iteration, work.bytes_per_request), (Some(2.0), Some(120.0)));
        assert_eq!(work.new_connection_share, Some(0.05));
        assert_eq!(RunWork::default().with_sent(Some(9_000.0), Some(90)).sent_bytes_per_request, Some(100.0));
        assert_eq!(RunWork::default().with_sent(Some(9_000.0), Some(0)), RunWork::default());
        let bounds = RunWork::default().with_connections(Some(1), Some(10), Some(200));
        assert_eq!((bounds.new_connections, bounds.max_new_connections), (None, Some(10)));
        assert_eq!(RunWork::new(Some(0), Some(0), Some(5.0)), RunWork::default());
        assert_eq!(RunWork::new(Some(9), None, None), RunWork::default());
    }

    #[test]
    fn a_mix_names_the_most_frequent_first() {
        let counts = |all: &[(&str, u64)]| all.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect();
        assert_eq!(mix(&counts(&[("200", 7)])), "200");
        let text = mix(&counts(&[("0", 1), ("200", 7), ("302", 8)])).replace('\u{a0}', " ");
        assert_eq!(text, "302 50 %, 200 43.8 %, no response 6.25 %");
    }
}
