//! Profiles of targets: which functions take the CPU time, and which of them differ between two cells.
//!
//! Agents profile the runs for which a plan requests it; [`crate::results`] stores the profiles. The unit of everything
//! is CPU time per request: each run contributes its CPU time per request, measured by the control group, and its
//! profile, which splits that time. [`normalize`] makes function names of different builds equal. [`tree::Tree`] is the
//! union of all runs' call trees and [`functions::Functions`] its table of functions. [`changes::Changes`] tests which
//! of both differ, corrected for all questions. [`headline::Headline`] says in a sentence where the difference is.
//! [`analysis`] puts this together for [`mod@pages`] and [`mod@api`]; [`graph`] is what a browser draws.
//!
//! The unit of the tests is the run, not the sample: samples of one run are not independent, and scatter between runs
//! is larger than that of sampling.

pub mod analysis;
pub mod api;
pub mod changes;
pub mod confounders;
pub mod explained;
pub mod functions;
pub mod graph;
pub mod headline;
pub mod links;
pub mod load;
pub mod markdown;
pub mod max_t;
mod mean;
pub mod model;
pub mod normalize;
pub mod overhead;
pub mod package;
pub mod pages;
pub mod permutation;
pub mod program;
#[cfg(test)]
mod simulation;
pub mod stacks;
pub mod store;
pub mod tree;
pub mod words;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::show))
        .routes(routes!(api::graph))
        .routes(routes!(api::compare))
        .routes(routes!(api::compare_graph))
        .routes(routes!(api::download))
}
