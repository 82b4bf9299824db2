//! `/`: what happened since the last visit, what runs, what is broken. Reads across modules and owns no table.

pub mod pages;
pub mod store;

use axum::{Extension, Router, routing::get};

use crate::{app::state::AppState, fleet::presence::Presence};

/// The page.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new().route("/", get(pages::index)).route("/dashboard/live", get(pages::live)).layer(Extension(presence))
}
