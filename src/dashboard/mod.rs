//! `/`: results since the last visit, current runs, problems. Reads across modules and owns no table.

pub mod pages;
pub mod store;

use axum::{Extension, Router, routing::get};

use crate::{app::state::AppState, fleet::presence::Presence};

/// Returns the page routes.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new().route("/", get(pages::index)).route("/dashboard/live", get(pages::live)).layer(Extension(presence))
}
