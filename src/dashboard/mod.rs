//! `/`: results since the last visit, current runs, pinned trends, problems. Reads across modules and owns no table.

mod attention;
mod first_steps;
mod news;
pub mod pages;
mod pinned;
mod running;
pub mod store;

use axum::{Extension, Router, routing::get};

use crate::{app::state::AppState, fleet::presence::Presence, trends::pins::TrendCache};

/// Returns the page routes.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/", get(pages::index))
        .route("/dashboard/live", get(pages::live))
        .layer(Extension(presence))
        .layer(Extension(TrendCache::default()))
}
