//! Share links: each shows one comparison, and nothing else, without a login.
//!
//! A link always shows the runs that the comparison had when the link was created. Its secret is shown once and stored
//! as SHA-256. It can expire, and be revoked at any time.

pub mod api;
pub mod model;
pub mod pages;
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
    OpenApiRouter::new().routes(routes!(api::list, api::create)).routes(routes!(api::revoke))
}
