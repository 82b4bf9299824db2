//! A comparison as a file: HTML that needs neither this server nor a network, Markdown for a pull request, CSV, JSON.

pub mod api;
pub mod csv;
pub mod format;
pub mod html;
pub mod markdown;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::report))
}
