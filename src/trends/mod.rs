//! Trends: the history of one cell over versions and time, its changes and their annotations.
//!
//! The unit is the experiment: its runs share the state of the machine on that day, so they are one point, their
//! median. With runs as the unit, a permutation test would report every day's offset as a change. A run without an
//! experiment is a point by itself.
//!
//! In reading order: [`cell`] groups runs, [`shifts`] finds changes in a series, [`in_turn`] asks whether both versions
//! were measured in turn, [`history`] combines points, changes and annotations. All of these are pure. [`mod@pages`] and [`mod@api`] show the result. [`pins`] has the trends that
//! a user wants on the dashboard.

pub mod api;
pub mod bisect;
pub mod cell;
pub mod charts;
pub mod history;
pub mod in_turn;
pub mod largest;
pub mod load;
pub mod model;
pub mod pages;
pub mod pins;
pub mod shifts;
pub mod store;

use axum::{
    Router,
    routing::{get, post},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    Router::new()
        .route("/trends", get(pages::index))
        .route("/trends/{target}/{cell}", get(pages::show))
        .route("/trends/{target}/{cell}/annotate", post(pages::annotate))
        .route("/trends/{target}/{cell}/pin", post(pages::pin))
        .route("/trends/{target}/{cell}/unpin", post(pages::unpin))
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list))
        .routes(routes!(api::show))
        .routes(routes!(api::annotate, api::reopen))
        .routes(routes!(api::pins))
        .routes(routes!(api::pin, api::unpin))
}
