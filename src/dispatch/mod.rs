//! Assigns runs to agents, and handles agents that stop responding.
//!
//! - [`assign`] assigns the first queued run that it can do to each free agent. Prioritized runs come first; drained
//!   agents get no runs. All runs of an experiment, or of each of its repetitions, stay on one machine:
//!   [`crate::placement::affinity`]. Runs of a paused experiment are not assigned.
//! - [`queue`] lists the waiting runs: for which agent, why, and when each will start.
//! - An assigned run is *leased*. Each heartbeat of its agent renews the lease ([`renewal`]). When the lease expires,
//!   the run is `lost`, and its repetition is queued again as often as its plan allows. [`crate::results::ingest`]
//!   defines what happens to late results.
//! - A distributed run is assigned to all its agents at once or to none, so that runs never deadlock.
//!   [`crate::distributed::coordinate`] starts the participants at the same time.
//! - [`mod@channel`]: the WebSocket of each agent; [`worker`]: the task that assigns runs; [`watch`]: live data of runs
//!   in progress.

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

use crate::{app::state::AppState, distributed::coordinate::Barriers, fleet::presence::Presence};

/// Returns the JSON API: upload of results, and the queue.
pub fn api(presence: Presence, barriers: Barriers, largest_body: usize) -> OpenApiRouter<AppState> {
    let limit = DefaultBodyLimit::max(largest_body);
    OpenApiRouter::new()
        .routes(routes!(api::result))
        .layer(limit)
        .routes(routes!(api::file))
        .routes(routes!(queue::api::list))
        .routes(routes!(queue::api::put_first))
        .routes(routes!(queue::api::put_experiment_first))
        .layer(Extension(presence))
        .layer(Extension(barriers))
}

/// Returns the HTML pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    queue::pages::router().layer(Extension(presence))
}

/// Returns the agents' WebSocket, which is not part of the JSON API.
pub fn channel(presence: Presence, barriers: Barriers) -> Router<AppState> {
    let channel = Router::new().route("/api/v1/agent/channel", get(channel::open));
    channel.layer(Extension(presence)).layer(Extension(barriers))
}
