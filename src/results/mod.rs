//! Results of runs: ingest, import, verdict, time series, re-judging.
//!
//! [`ingest`] has the rule for results that arrive late or twice, [`settlement`] applies it. [`finalize`] turns a
//! result into metrics and a [`verdict`], [`cells`] judges the repetitions of a cell together, and [`rejudge`] repeats
//! both for stored runs. [`import`] stores results from elsewhere, [`series`] has the time series, and [`environment`]
//! describes the machine.

pub mod api;
pub mod blob;
pub mod cells;
pub mod clock;
pub mod cost;
pub mod environment;
pub mod evidence;
pub mod finalize;
pub mod generator_record;
pub mod import;
pub mod ingest;
pub mod logs;
pub mod pages;
pub mod profiles;
pub mod rejudge;
mod resolution;
pub mod series;
pub mod settlement;
pub mod store;
pub mod verdict;

use axum::{Router, extract::DefaultBodyLimit, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Pages. Uploads may have up to `max_summary_bytes`.
pub fn pages(max_summary_bytes: usize) -> Router<AppState> {
    Router::new()
        .route("/runs/import", get(pages::form).post(pages::upload))
        .layer(DefaultBodyLimit::max(max_summary_bytes))
        .route("/runs/import/{id}", get(pages::preview::preview).post(pages::preview::import))
        .route("/runs/imported", get(pages::imported))
        .merge(pages::run::router())
}

/// JSON. Imports may have up to `max_summary_bytes`; all other bodies keep the default limit.
pub fn api(max_summary_bytes: usize) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::import::import))
        .routes(routes!(api::import::preview))
        .layer(DefaultBodyLimit::max(max_summary_bytes))
        .routes(routes!(api::limits::show, api::limits::set, api::limits::reset))
        .routes(routes!(api::rejudge::rejudge))
        .routes(routes!(api::rejudge::judged_by))
        .routes(routes!(api::logs::show))
        .routes(routes!(api::series::series))
}
