//! Keeping a server running: backups and the way back, looking for damage, being asked how it is, and how long series
//! are kept.
//!
//! A backup is one SQLite file, whole and on disk before it has its name. What works on a data folder
//! ([`backup::of_folder`], [`restore`], [`integrity_check`]) needs no server; a backup goes on beside one.

pub mod api;
pub mod backup;
pub mod health;
pub mod integrity_check;
pub mod metrics;
pub mod restore;
pub mod retention;
pub mod store;

use axum::{Extension, Router, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, fleet::presence::Presence};

/// JSON, and backups as a file.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::download))
        .routes(routes!(api::rule, api::set_rule, api::remove_rule))
        .layer(Extension(api::AtWork::default()))
}

/// What machines ask: whether it is alive, whether it can work, how it does.
pub fn probes(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .layer(Extension(presence))
}
