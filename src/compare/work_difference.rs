//! Targets of one row that did different work. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    differences::{AcceptedDifference, WorkFact},
};

/// A difference in the work of two cells of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkDifference {
    /// In what.
    pub fact: WorkFact,
    /// The targets of both, by name.
    pub targets: [String; 2],
    /// In a sentence, with both values.
    pub text: String,
    /// Ids of a run of each.
    #[schema(value_type = [String; 2])]
    pub runs: [RunId; 2],
    /// Who accepted it and why; null if nobody has.
    #[serde(default)]
    pub accepted: Option<AcceptedDifference>,
}
