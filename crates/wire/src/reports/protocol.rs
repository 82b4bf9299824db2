//! What of a k6 script is measured: its HTTP requests, its gRPC calls, or its WebSocket messages. Pure.

use serde::{Deserialize, Serialize};

/// The gRPC calls with the status OK, which k6 reports if it is asked to.
pub const SUCCESSFUL_CALLS: &str = "grpc_req_duration{status:0}";

/// The protocol whose requests are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// HTTP requests.
    #[default]
    Http,
    /// gRPC calls, of a script without HTTP requests.
    Grpc,
    /// WebSocket messages that were received, of a script without either. Latency is the time to connect: k6 measures no
    /// other time of a WebSocket.
    WebSocket,
}

/// The metrics of a protocol, and the value that counts.
pub(super) struct Names {
    /// The metric that counts requests.
    pub requests: &'static str,
    /// Latencies.
    pub duration: &'static str,
    /// Latencies of successful requests, if k6 tells them apart.
    pub succeeded: Option<&'static str>,
}

impl Protocol {
    pub(super) const ALL: [Self; 3] = [Self::Http, Self::Grpc, Self::WebSocket];

    pub(super) fn names(self) -> Names {
        match self {
            Self::Http => Names {
                requests: "http_reqs",
                duration: "http_req_duration",
                succeeded: Some("http_req_duration{expected_response:true}"),
            },
            Self::Grpc => Names {
                requests: "grpc_req_duration",
                duration: "grpc_req_duration",
                succeeded: Some(SUCCESSFUL_CALLS),
            },
            Self::WebSocket => Names { requests: "ws_msgs_received", duration: "ws_connecting", succeeded: None },
        }
    }

    /// Says what is called a request; `None` for HTTP.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Http => None,
            Self::Grpc => Some("requests are gRPC calls"),
            Self::WebSocket => Some(
                "requests are WebSocket messages received, and latency is the time to connect; k6 reports neither \
                 failures nor the time of a message",
            ),
        }
    }
}
