//! Operating a server: backup, restore, integrity check, health checks, Prometheus metrics and retention of series.
//!
//! A backup is one SQLite file that is complete and on disk before it gets its name. [`backup::of_folder`], [`restore`]
//! and [`integrity_check`] work on a data folder without a server; a backup also works while one is running.

pub mod api;
pub mod backup;
pub mod health;
pub mod integrity_check;
pub mod metrics;
pub mod quick_check;
pub mod restore;
pub mod retention;
pub mod store;

use axum::{Extension, Router, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, fleet::presence::Presence};

/// Routes of the JSON API and of the backup download.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::download))
        .routes(routes!(api::rule, api::set_rule, api::remove_rule))
        .layer(Extension(api::BackupLock::default()))
}

/// Routes for monitoring: health, readiness and metrics.
pub fn probes(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(metrics::metrics))
        .layer(Extension(presence))
}
