//! k6's built-in metrics, as registered by k6 1.8.1.

use super::names;
use crate::reports::summary::{Contains, Kind};

/// Returns kind and content of a built-in metric, ignoring tags; `None` for custom metrics.
pub fn lookup(name: &str) -> Option<(Kind, Contains)> {
    Some(match names::base(name) {
        "http_reqs" | "iterations" | "dropped_iterations" | "ws_sessions" | "ws_msgs_sent" | "ws_msgs_received" => {
            (Kind::Counter, Contains::Default)
        }
        "data_sent" | "data_received" | "browser_data_sent" | "browser_data_received" => {
            (Kind::Counter, Contains::Data)
        }
        "vus" | "vus_max" => (Kind::Gauge, Contains::Default),
        "checks" | "http_req_failed" | "browser_http_req_failed" => (Kind::Rate, Contains::Default),
        "http_req_duration"
        | "http_req_blocked"
        | "http_req_connecting"
        | "http_req_tls_handshaking"
        | "http_req_sending"
        | "http_req_waiting"
        | "http_req_receiving"
        | "iteration_duration"
        | "group_duration"
        | "ws_ping"
        | "ws_session_duration"
        | "ws_connecting"
        | "grpc_req_duration"
        | "browser_http_req_duration" => (Kind::Trend, Contains::Time),
        _ => return None,
    })
}
