//! A baseline: a named set of runs. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::RunId, runs::model::Run, web::address::segment};

/// A named set of runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// Ids of its runs.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
    /// Ids of its runs that were deleted since it was set.
    #[schema(value_type = Vec<String>)]
    pub gone: Vec<RunId>,
    /// The user who last set it.
    pub set_by: String,
    /// When it was last set, unix ms.
    pub set_at_ms: i64,
}

/// All baselines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BaselineList {
    /// Sorted by name.
    pub baselines: Vec<Baseline>,
}

/// A baseline with its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BaselineWithRuns {
    /// The baseline.
    pub baseline: Baseline,
    /// Its runs that still exist, in the order of submission.
    pub runs: Vec<Run>,
}

/// The runs of a new or replaced baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BaselineRuns {
    /// Ids of runs with valid results.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Ids of experiments, whose runs with valid results are added.
    #[serde(default)]
    pub experiments: Vec<String>,
}

impl Baseline {
    /// Returns the URL of the form that measures it again next to a candidate.
    pub fn measure_again(&self) -> String {
        format!("/experiments/new?against={}", segment(&self.name))
    }

    /// Returns the URL of the comparison of its runs.
    pub fn comparison(&self) -> String {
        format!("/compare?baselines={}", segment(&self.name))
    }
}
