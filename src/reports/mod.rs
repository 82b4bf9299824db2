//! A comparison as a file: self-contained HTML that works offline, Markdown for a pull request, CSV, JSON.

pub mod api;
pub mod csv;
pub mod format;
pub mod html;
pub mod markdown;
pub mod profiles;
pub mod site;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::report))
}
