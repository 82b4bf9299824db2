//! Distributed runs: one host runs the target, each generator makes a segment of the load. Each result is stored as a
//! part. When all parts are stored they are merged into one result, which is judged and stored like any other.
//!
//! - [`barrier`] synchronizes the participants, [`coordinate`] carries out its steps;
//! - [`settle`] handles parts that arrive, and runs that a participant has left;
//! - [`merge`] merges all parts, with [`merge_series`], [`merge_summaries`] and [`merge_thresholds`];
//! - [`crate::results::generator_record`] is the stored record of each generator, [`shares`] returns it as JSON.
//!
//! Merging is exact for counts, sums, minima and maxima. Percentiles of the latency come from the merged histograms;
//! others are null.

pub mod api;
pub mod barrier;
pub mod coordinate;
pub mod ingest;
pub mod merge;
pub mod merge_series;
pub mod merge_summaries;
pub mod merge_thresholds;
pub mod model;
pub mod pages;
pub mod settle;
pub mod shares;
pub mod store;
#[cfg(test)]
pub mod tests;
pub mod threshold_condition;

use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::show))
}
