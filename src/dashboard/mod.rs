//! `/`: what runs now, the latest results, problems, and trends. Reads across modules and owns no table.

mod attention;
mod first_steps;
mod news;
pub mod pages;
mod pinned;
mod running;
pub mod store;

use axum::{Extension, Router, routing::get};

use self::pinned::Caches;
use crate::{app::state::AppState, fleet::presence::Presence};

/// Returns the page routes.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/", get(pages::index))
        .route("/dashboard/live", get(pages::live))
        .layer(Extension(presence))
        .layer(Extension(Caches::default()))
}
