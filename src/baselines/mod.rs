//! Named baselines: lists of runs that others are held against, such as those of the main branch.
//!
//! A run that is deleted later leaves its baselines; they tell how many are gone. [`meant`] reads whatever names runs:
//! baselines, experiments, runs.

pub mod api;
pub mod meant;
pub mod pages;
pub mod queries;

use axum::Router;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{runs::Run, state::AppState, web::address::segment};

/// A list of runs under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Baseline {
    /// As people call it.
    pub name: String,
    /// Ids of its runs.
    pub runs: Vec<String>,
    /// Ids of runs that it had and that were deleted since.
    pub gone: Vec<String>,
    /// Who set it last.
    pub set_by: String,
    /// When, unix ms.
    pub set_at_ms: i64,
}

/// All baselines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BaselineList {
    /// By name.
    pub baselines: Vec<Baseline>,
}

/// A baseline with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BaselineWithRuns {
    /// The list.
    pub baseline: Baseline,
    /// Those of its runs that are there, in the order of submission.
    pub runs: Vec<Run>,
}

/// What a baseline is to be made of. It takes the place of what was there under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineRuns {
    /// Ids of runs whose figures count.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Ids of experiments: those of their runs whose figures count.
    #[serde(default)]
    pub experiments: Vec<String>,
}

impl Baseline {
    /// The form that measures it again next to a candidate.
    pub fn measure_again(&self) -> String {
        format!("/runs/new?against={}", segment(&self.name))
    }

    /// The address of the comparison of its runs.
    pub fn comparison(&self) -> String {
        format!("/compare?baselines={}", segment(&self.name))
    }
}

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list)).routes(routes!(api::show, api::set, api::remove))
}
