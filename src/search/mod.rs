//! Search: targets, experiments, runs, pages and documentation by name or id. Reads across modules and owns no table.
//!
//! [`rank`] decides what matches and how well, [`site`] lists the pages, [`find`] collects the hits. `/search` serves
//! the command palette of every page, and is a page of its own without JavaScript.

pub mod api;
pub mod find;
pub mod model;
pub mod pages;
pub mod rank;
pub mod site;
pub mod store;

use axum::{Router, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    Router::new().route("/search", get(pages::search))
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::search))
}
