//! What the requests of a run were, beside how long they took. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::web::format;

/// The work of a run. What is not known is null: a summary alone says nothing of statuses, protocols and connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunWork {
    /// Requests of an iteration of the script, redirects included.
    pub requests_per_iteration: Option<f64>,
    /// Bytes received for a request, headers included.
    pub bytes_per_request: Option<f64>,
    /// Requests that opened a connection of their own, where they were counted.
    pub new_connections: Option<u64>,
    /// At least so many did.
    pub least_new_connections: Option<u64>,
    /// At most so many did; a summary alone tells bounds only.
    pub most_new_connections: Option<u64>,
    /// Share of the requests that did, 0 to 1.
    pub new_connection_share: Option<f64>,
    /// Requests by the status of their response; `0` stands for none.
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Requests by the protocol of their response.
    pub protocols: Option<BTreeMap<String, u64>>,
}

impl RunWork {
    /// From counts of the measured phase.
    pub fn new(requests: Option<u64>, iterations: Option<u64>, received_bytes: Option<f64>) -> Self {
        let requests = requests.filter(|requests| *requests > 0).map(|requests| requests as f64);
        let iterations = iterations.filter(|iterations| *iterations > 0).map(|iterations| iterations as f64);
        Self {
            requests_per_iteration: requests.zip(iterations).map(|(requests, iterations)| requests / iterations),
            bytes_per_request: received_bytes.zip(requests).map(|(bytes, requests)| bytes / requests),
            ..Self::default()
        }
    }

    /// The same with how many of the requests opened a connection.
    #[must_use]
    pub fn with_connections(self, least: Option<u64>, most: Option<u64>, requests: Option<u64>) -> Self {
        let new_connections = least.filter(|_| least == most);
        let share = |(new, requests): (u64, u64)| (requests > 0).then(|| new as f64 / requests as f64);
        Self {
            new_connections,
            least_new_connections: least,
            most_new_connections: most,
            new_connection_share: new_connections.zip(requests).and_then(share),
            ..self
        }
    }

    /// The same with requests by status and by protocol.
    #[must_use]
    pub fn with_counts(
        self,
        statuses: Option<BTreeMap<String, u64>>,
        protocols: Option<BTreeMap<String, u64>>,
    ) -> Self {
        Self { statuses, protocols, ..self }
    }
}

/// Counts as shares of all: `200 98 %, 302 2 %`, the most frequent first; the value alone where there is but one.
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
    fn shares_come_of_counts_and_of_nothing_comes_nothing() {
        let work = RunWork::new(Some(200), Some(100), Some(24_000.0)).with_connections(Some(10), Some(10), Some(200));
        assert_eq!((work.requests_per_iteration, work.bytes_per_request), (Some(2.0), Some(120.0)));
        assert_eq!(work.new_connection_share, Some(0.05));
        let bounds = RunWork::default().with_connections(Some(1), Some(10), Some(200));
        assert_eq!((bounds.new_connections, bounds.most_new_connections), (None, Some(10)));
        assert_eq!(RunWork::new(Some(0), Some(0), Some(5.0)), RunWork::default());
        assert_eq!(RunWork::new(Some(9), None, None), RunWork::default());
    }

    #[test]
    fn a_mix_names_the_most_frequent_first() {
        let counts = |all: &[(&str, u64)]| all.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect();
        assert_eq!(mix(&counts(&[("200", 7)])), "200");
        let told = mix(&counts(&[("0", 1), ("200", 7), ("302", 8)])).replace('\u{a0}', " ");
        assert_eq!(told, "302 50 %, 200 43.8 %, no response 6.25 %");
    }
}
