//! Distributed runs: one host runs the target, each generator makes a segment of the load. What each delivers is stored
//! as its part; when all are there they become one result, which is judged and stored as any other.
//!
//! - [`barrier`] lets participants wait for each other, [`coordinate`] carries it out;
//! - [`settle`]: what becomes of a part that arrives, and of a run that a participant has left;
//! - [`merge`]: all parts become one result; [`merge_series`], [`merge_summaries`] and [`merge_thresholds`] add up;
//! - [`crate::results::generator_record`]: what is stored of each generator, to judge and to show it; [`shares`]: that as
//!   JSON.
//!
//! Merging is exact for counts, sums, minima and maxima. A percentile is not a sum: those of the latency come from the
//! merged histograms, others are null.

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

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::show))
}
