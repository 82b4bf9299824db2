//! Who does which run, and what happens when they fall silent.
//!
//! Connected agents take the first queued run that they can do, one at a time; what somebody has put first goes before the
//! rest, who is drained takes nothing, and an experiment stays on one machine, or each of its repetitions does ([`homes`]);
//! [`queue`] says what waits for whom. A run is *leased*: each sign of life of
//! its agent prolongs the lease, silence past it makes the run `lost` and queues its repetition anew, as often as its plan
//! says. A run whose load comes from other agents is given to all of them at once or to nobody, so that two of them never
//! wait for each other; [`together`] lets them begin at one moment. What a late result counts for is settled by the rule in [`crate::results::ingest`]. Runs of an experiment that is
//! paused are not handed out.

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
