//! Assigns runs to agents, and decides what happens when an agent falls silent.
//!
//! - [`assign`] gives the first queued run that a free agent can do to that agent. Runs that were put first go before the
//!   rest; drained agents get none. The runs of an experiment stay on one machine, or those of each repetition do:
//!   [`crate::placement::affinity`]. Runs of a paused experiment are not assigned.
//! - [`queue`]: what waits for which agent, why, and when it will start.
//! - A run is *leased*. Each heartbeat of its agent renews the lease ([`renewal`]). When a lease expires, the run is
//!   `lost` and its repetition is queued again, as often as its plan allows. Late results follow the rule in
//!   [`crate::results::ingest`].
//! - A distributed run is given to all its agents at once or to none, so two of them never wait for each other;
//!   [`crate::distributed::coordinate`] lets them begin at one moment.
//! - [`mod@channel`]: the WebSocket of each agent; [`worker`]: the task that assigns runs; [`watch`]: what agents report of
//!   runs in progress.

pub mod api;
pub mod assign;
pub mod channel;
mod lease_expiry;
pub mod queue;
pub mod renewal;
pub mod store;
pub mod watch;
pub mod worker;

use axum::{Extension, Router, extract::DefaultBodyLimit, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, distributed::coordinate::Meetings, fleet::presence::Presence};

/// The agents' channel and the way home of results.
pub fn api(presence: Presence, meetings: Meetings, largest_body: usize) -> OpenApiRouter<AppState> {
    let limit = DefaultBodyLimit::max(largest_body);
    OpenApiRouter::new()
        .routes(routes!(api::result))
        .layer(limit)
        .routes(routes!(queue::api::list))
        .routes(routes!(queue::api::put_first))
        .routes(routes!(queue::api::put_experiment_first))
        .layer(Extension(presence))
        .layer(Extension(meetings))
}

/// Pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    queue::pages::router().layer(Extension(presence))
}

/// The agents' channel: a WebSocket, so it is no part of the JSON API.
pub fn channel(presence: Presence, meetings: Meetings) -> Router<AppState> {
    let channel = Router::new().route("/api/v1/agent/channel", get(channel::open));
    channel.layer(Extension(presence)).layer(Extension(meetings))
}
