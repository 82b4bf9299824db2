//! Links to one comparison that need no login and show nothing else.
//!
//! A link holds the runs that the comparison had when it was made, and never others. Its secret is shown once and stored
//! as SHA-256; it can be given an end, and be revoked at any time.

pub mod api;
pub mod model;
pub mod pages;
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
    OpenApiRouter::new().routes(routes!(api::list, api::create)).routes(routes!(api::revoke))
}
