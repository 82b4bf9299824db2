//! What was measured and what it is worth: ingest, import, verdict, time series, re-judging.
//!
//! [`ingest`] has the rule for results that arrive late or twice, [`settlement`] applies it. [`finalize`] turns a result
//! into figures and a [`verdict`]; [`rejudge`] repeats that for stored runs. [`import`] stores results from elsewhere,
//! [`series`] is what happened second by second, and [`environment`] the machine.

pub mod api;
pub mod blob;
pub mod clock;
pub mod conditions;
pub mod cost;
pub mod environment;
pub mod evidence;
pub mod finalize;
pub mod generator_record;
pub mod import;
pub mod ingest;
pub mod logs;
pub mod pages;
pub mod rejudge;
pub mod series;
pub mod settlement;
pub mod store;
pub mod verdict;

use axum::{Router, extract::DefaultBodyLimit, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Pages. An upload may be as large as said.
pub fn pages(max_summary_bytes: usize) -> Router<AppState> {
    Router::new()
        .route("/runs/import", get(pages::form).post(pages::import))
        .layer(DefaultBodyLimit::max(max_summary_bytes))
        .route("/runs/imported", get(pages::imported))
}

/// JSON. Imports may be as large as said, everything else stays small.
pub fn api(max_summary_bytes: usize) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::import::one))
        .routes(routes!(api::import::folder))
        .layer(DefaultBodyLimit::max(max_summary_bytes))
        .routes(routes!(api::limits::show, api::limits::set, api::limits::reset))
        .routes(routes!(api::rejudge::rejudge))
        .routes(routes!(api::rejudge::judged_by))
        .routes(routes!(api::logs::show))
        .routes(routes!(api::series::series))
}
