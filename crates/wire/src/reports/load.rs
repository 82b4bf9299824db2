//! Separates the load from `setup()` and `teardown()` in a summary. Pure.
//!
//! k6 adds up the requests of all three. If a script may have these functions, the agent tags the scenarios of its load
//! and has k6 report every metric with that tag, too. Here these take the place of the totals, so that all that is read
//! from a summary is of the load, exactly.

use crate::reports::protocol::SUCCESSFUL_CALLS;
use crate::reports::summary::{Kind, Metric, Summary};

/// Name and value of the tag of the load.
pub const TAG: [&str; 2] = ["brewbench", "load"];

/// The metrics that `setup()` and `teardown()` count for, too, and that every summary of a load with requests has.
const USUAL: [&str; 12] = [
    "data_received",
    "data_sent",
    "http_req_blocked",
    "http_req_connecting",
    "http_req_duration",
    "http_req_failed",
    "http_req_receiving",
    "http_req_sending",
    "http_req_tls_handshaking",
    "http_req_waiting",
    "http_reqs",
    "iteration_duration",
];

/// Those that only some summaries have.
const OPTIONAL: [&str; 8] = [
    "checks",
    "grpc_req_duration",
    "ws_connecting",
    "ws_msgs_received",
    "ws_msgs_sent",
    "ws_sessions",
    SUCCESSFUL,
    SUCCESSFUL_CALLS,
];

/// k6 reports this part of a metric without being asked.
const SUCCESSFUL: &str = "http_req_duration{expected_response:true}";

/// Returns the names of the metrics of the load alone.
pub fn sub_metrics() -> impl Iterator<Item = String> {
    USUAL.into_iter().chain(OPTIONAL).map(sub_metric)
}

fn sub_metric(name: &str) -> String {
    let [tag, value] = TAG;
    match name.strip_suffix('}') {
        Some(name) => format!("{name},{tag}:{value}}}"),
        None => format!("{name}{{{tag}:{value}}}"),
    }
}

/// Puts the metrics of the load in place of the totals, if the summary has them. Thresholds remain: they are the
/// script's, and k6 has judged them by the totals.
pub(super) fn keep(summary: &mut Summary) {
    for name in USUAL.into_iter().chain(OPTIONAL) {
        let Some(load) = summary.metrics.remove(&sub_metric(name)) else { continue };
        let total = summary.metrics.remove(name);
        let thresholds = total.map(|total| total.thresholds).unwrap_or_default();
        // For a metric that is requested k6 writes zeros if it has no samples.
        if !(OPTIONAL.contains(&name) && thresholds.is_empty() && is_empty(&load)) {
            summary.metrics.insert(name.to_owned(), Metric { thresholds, ..load });
        }
    }
}

fn is_empty(metric: &Metric) -> bool {
    let is_zero = |value: &str| metric.values.get(value) == Some(&0.0);
    match metric.kind {
        Kind::Rate => is_zero("passes") && is_zero("fails"),
        Kind::Trend | Kind::Counter => is_zero("count"),
        Kind::Gauge => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::reports::read::parse;

    #[test]
    fn metrics_of_the_load_take_the_place_of_totals() {
        let summary = json!({"metrics": {
            "http_reqs": {"count": 50, "rate": 10.0, "thresholds": {"count>1": false}},
            "http_reqs{brewbench:load}": {"count": 40, "rate": 8.0},
            "http_reqs{name:seed}": {"count": 10, "rate": 2.0},
            "http_req_duration": {"avg": 9.0, "max": 99.0, "count": 50},
            "http_req_duration{brewbench:load}": {"avg": 1.0, "max": 2.0, "count": 40},
            "http_req_duration{expected_response:true}": {"avg": 9.5, "max": 99.0, "count": 49},
            "http_req_duration{expected_response:true,brewbench:load}": {"avg": 1.5, "max": 2.0, "count": 39},
            "http_req_failed": {"passes": 11, "fails": 39, "value": 0.22},
            "http_req_failed{brewbench:load}": {"passes": 1, "fails": 39, "value": 0.025},
            "checks": {"passes": 3, "fails": 0, "value": 1},
            "checks{brewbench:load}": {"passes": 0, "fails": 0, "value": 0},
            "ws_msgs_received{brewbench:load}": {"count": 0, "rate": 0},
            "grpc_req_duration{status:0,brewbench:load}": {"avg": 0, "count": 0},
        }});
        let summary = parse(summary.to_string().as_bytes()).expect("a summary");
        let figures = summary.figures();
        assert_eq!((figures.requests, figures.failed, figures.measured_ms), (40, Some(1), 5_000.0));
        assert_eq!((figures.latency.max_ms, figures.ok_latency.avg_ms), (Some(2.0), Some(1.5)));
        assert_eq!((figures.thresholds, figures.thresholds_failed), (Some(1), Some(0)));
        assert_eq!((figures.checks_passed, figures.checks_failed), (None, None), "no check of the load");
        let names: Vec<&str> = summary.metrics.keys().map(String::as_str).collect();
        let expected = [
            "http_req_duration",
            "http_req_duration{expected_response:true}",
            "http_req_failed",
            "http_reqs",
            "http_reqs{name:seed}",
        ];
        assert_eq!(names, expected);
    }
}
