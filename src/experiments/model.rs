//! An experiment as stored, as lists show it, and with its runs. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    experiments::{knee::history::Search, plan::Plan, power, progress::Progress, stopping_rule::Narrowing},
    runs::model::Run,
};

/// An experiment as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// UUID.
    #[schema(value_type = String)]
    pub id: ExperimentId,
    /// As people call it.
    pub name: String,
    /// What was asked for.
    pub plan: Plan,
    /// Who submitted it.
    pub created_by: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// What people call it, by the alphabet.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What people say of it, as Markdown.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether it may still get runs of its own accord: until its differences are known, or its knee is found.
    #[serde(default)]
    pub is_open: bool,
    /// Since when none of its runs is begun, unix ms; null where nobody has paused it.
    #[serde(default)]
    pub paused_at_ms: Option<i64>,
    /// Who paused it.
    #[serde(default)]
    pub paused_by: Option<String>,
}

/// An experiment with all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentWithRuns {
    /// What was asked for.
    pub experiment: Experiment,
    /// Its page.
    pub url: String,
    /// How far it is.
    pub progress: Progress,
    /// Which runs were done again, and why the first; null where none was.
    #[serde(default)]
    pub repeated: Option<String>,
    /// How far the differences are known; null where the number of repetitions is fixed.
    #[serde(default)]
    pub narrowing: Option<Narrowing>,
    /// What its comparison will be able to tell; null where it compares nothing.
    #[serde(default)]
    pub power: Option<power::PlanPower>,
    /// The search for the knee of each target at each size; null where none is searched for.
    #[serde(default)]
    pub searches: Option<Vec<Search>>,
    /// In the order of submission.
    pub runs: Vec<Run>,
}

/// An experiment as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentInfo {
    /// What was asked for.
    pub experiment: Experiment,
    /// Its page.
    pub url: String,
    /// How far it is.
    pub progress: Progress,
    /// What came of it so far, in one line.
    pub verdict: String,
}

/// A list of experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentList {
    /// Newest first.
    pub experiments: Vec<ExperimentInfo>,
}

/// How many repetitions more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct More {
    /// Of every cell, at least 1.
    pub repetitions: u32,
}
