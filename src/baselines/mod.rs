//! Named baselines: sets of runs to compare with, such as those of the main branch.
//!
//! A deleted run leaves its baselines; each reports how many runs it lost. [`resolve`] turns names of baselines and ids
//! of experiments and runs into runs.

pub mod api;
pub mod model;
pub mod pages;
pub mod resolve;
pub mod store;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list)).routes(routes!(api::show, api::set, api::remove))
}
