//! Says what is counted as a request if it is no HTTP request. Pure.

use brewbench_wire::reports::{protocol::Protocol, summary::Figures};

use crate::runs::verdict::Reason;

pub(super) fn judge(figures: &Figures) -> Option<Reason> {
    figures.protocol.note().map(|text| Reason::note("protocol", text.to_owned()))
}

/// Whether the time series has the requests: k6 reports no latency of a WebSocket message.
pub(super) fn has_series(figures: &Figures) -> bool {
    figures.protocol != Protocol::WebSocket
}
