//! Compares runs and decides which differences are significant.
//!
//! In reading order: [`selection`] groups comparable runs, [`cell`] has the figures, [`statistics`] the formulas.
//! [`pair`] applies them to two cells, [`past`] to their earlier experiments, and [`significance`] corrects all
//! questions of a page. [`comparability`] finds confounders, [`equal_work`] different work, [`excluded`] the runs
//! without usable figures. [`answer`] and [`trust`] say the result in sentences. [`view`] builds the comparison with these,
//! [`notes`] and [`charts`]. All of that is
//! pure, as is [`builder`], which chooses two sides: [`load`] reads the runs of a comparison, [`pages`] and [`api`] show it.

pub mod address;
pub mod anonymous;
pub mod answer;
pub mod api;
pub mod basis;
pub mod builder;
pub mod cache;
pub mod cell;
pub mod charts;
pub mod chosen;
pub mod ci;
pub mod commits;
pub mod comparability;
pub mod comparison_context;
pub mod context;
pub mod differences;
pub mod equal_work;
pub mod excluded;
pub mod finding;
pub mod gain;
pub mod headline;
pub mod knee;
pub mod load;
pub mod matrix;
pub mod metric;
pub mod metric_lines;
pub mod min_effect;
pub mod more;
pub mod note;
pub mod notes;
pub mod pages;
pub mod pair;
pub mod past;
pub mod proposal;
pub mod provenance;
pub mod rendered;
pub mod scatter;
pub mod script_metrics;
pub mod selection;
pub mod sentence;
pub mod setting;
pub mod significance;
pub mod stat;
pub mod statistics;
pub mod store;
pub mod sweep;
#[cfg(test)]
pub mod testing;
pub mod timeseries;
pub mod timeseries_charts;
pub mod trust;
pub mod view;
pub mod work_difference;

use axum::{Router, routing::get};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Route of the page.
pub fn router() -> Router<AppState> {
    Router::new().route("/compare", get(pages::compare)).route("/compare/metrics", get(pages::metrics))
}

/// Route of the JSON API.
pub fn api_router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::compare)).routes(routes!(api::metrics))
}
