//! A baseline: runs under a name. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{app::ids::RunId, runs::model::Run, web::address::segment};

/// A list of runs under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Baseline {
    /// As people call it.
    pub name: String,
    /// Ids of its runs.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
    /// Ids of runs that it had and that were deleted since.
    #[schema(value_type = Vec<String>)]
    pub gone: Vec<RunId>,
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
        format!("/experiments/new?against={}", segment(&self.name))
    }

    /// The address of the comparison of its runs.
    pub fn comparison(&self) -> String {
        format!("/compare?baselines={}", segment(&self.name))
    }
}
