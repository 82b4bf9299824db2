//! Runs in progress: the feed of what agents report, and the pages and streams that show it.

pub mod api;
pub mod chart;
pub mod feed;
pub mod pages;
pub mod participants;
pub mod series_buffer;
pub mod status;

use axum::{Extension, Router, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// The page of a run in progress.
pub fn pages() -> Router<AppState> {
    Router::new().route("/runs/{id}/live", get(pages::live)).layer(Extension(pages::LivePages::default()))
}

/// JSON API of runs in progress.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::now)).routes(routes!(api::follow))
}
