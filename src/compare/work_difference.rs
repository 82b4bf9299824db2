//! Differences in the work of targets in one row. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    differences::{AcceptedDifference, WorkFact},
};

/// A difference in the work of two cells of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkDifference {
    /// The fact that differs.
    pub fact: WorkFact,
    /// Names of both targets.
    pub targets: [String; 2],
    /// Indexes of both cells in the row, from 0.
    #[serde(default)]
    pub cells: [usize; 2],
    /// The value of each target.
    #[serde(default)]
    pub values: [String; 2],
    /// Description with both values.
    pub text: String,
    /// Id of one run of each target.
    #[schema(value_type = [String; 2])]
    pub runs: [RunId; 2],
    /// Who accepted it and why; null if it is not accepted.
    #[serde(default)]
    pub accepted: Option<AcceptedDifference>,
}
