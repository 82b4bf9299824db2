//! Figures over versions and time: the history of one cell, where it changed, and what people say of each change.
//!
//! The unit is the experiment: its runs share a day and whatever that day did to the machine, so they are one point, their
//! median. Shuffling runs would take every day's offset for a change. A run without an experiment is a point by itself:
//! nothing says which others it was measured with.
//!
//! In reading order: [`cell`] says which runs belong together, [`shifts`] where a series changes, [`history`] puts
//! points, changes and judgements together. All of that is pure; [`mod@pages`] and [`mod@api`] show it.

pub mod api;
pub mod cell;
pub mod charts;
pub mod history;
pub mod load;
pub mod model;
pub mod pages;
pub mod shifts;
pub mod store;

use axum::{
    Router,
    routing::{get, post},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Pages.
pub fn pages() -> Router<AppState> {
    Router::new()
        .route("/trends", get(pages::index))
        .route("/trends/{target}/{cell}", get(pages::show))
        .route("/trends/{target}/{cell}/judge", post(pages::judge))
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list))
        .routes(routes!(api::show))
        .routes(routes!(api::judge, api::withdraw))
}
