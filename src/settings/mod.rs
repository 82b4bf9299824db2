//! `/settings`: configuration of this server, retention, alert rules, and the theme of its pages.

pub mod alerts;
pub mod disk;
pub mod pages;
pub mod retention;

use axum::{
    Extension, Router,
    routing::{get, post},
};

use crate::{app::state::AppState, fleet::presence::Presence};

/// Returns the routes of the page and its forms.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/settings", get(pages::index))
        .route("/settings/series", post(retention::set_series))
        .route("/settings/alerts", post(alerts::set_rule))
        .route("/settings/theme", post(pages::choose_theme))
        .layer(Extension(presence))
}
