//! Named baselines: sets of runs to compare with, such as those of the main branch.
//!
//! A run that is deleted later leaves its baselines; each reports how many runs it lost. [`resolve`] reads whatever names
//! runs: baselines, experiments, run ids.

pub mod api;
pub mod model;
pub mod pages;
pub mod resolve;
pub mod store;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list)).routes(routes!(api::show, api::set, api::remove))
}
