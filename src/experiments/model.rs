//! Experiments: as stored, in lists, and with their runs. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    experiments::{knee::history::Search, plan::Plan, power, progress::Progress, stopping_rule::Narrowing},
    runs::model::Run,
};

/// A stored experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// UUID.
    #[schema(value_type = String)]
    pub id: ExperimentId,
    /// Name of the experiment.
    pub name: String,
    /// The requested plan.
    pub plan: Plan,
    /// The user who submitted it.
    pub created_by: String,
    /// Time of submission, Unix ms.
    pub created_at_ms: i64,
    /// Labels, sorted.
    #[serde(default)]
    pub labels: Vec<String>,
    /// Note in Markdown.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether it may still add runs itself: until its stopping rule is met or its knee is found.
    #[serde(default)]
    pub is_open: bool,
    /// Time when it was paused, Unix ms; null if it is not paused.
    #[serde(default)]
    pub paused_at_ms: Option<i64>,
    /// The user who paused it.
    #[serde(default)]
    pub paused_by: Option<String>,
}

/// An experiment with all its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentWithRuns {
    /// The experiment.
    pub experiment: Experiment,
    /// URL of its page.
    pub url: String,
    /// Its progress.
    pub progress: Progress,
    /// Describes the retried runs and why the first one was retried; null if there are none.
    #[serde(default)]
    pub repeated: Option<String>,
    /// State of the stopping rule; null if the number of repetitions is fixed.
    #[serde(default)]
    pub narrowing: Option<Narrowing>,
    /// Statistical power of its comparison; null if it compares nothing.
    #[serde(default)]
    pub power: Option<power::PlanPower>,
    /// Knee search of each target at each size; null if the plan has none.
    #[serde(default)]
    pub searches: Option<Vec<Search>>,
    /// Runs in the order of submission.
    pub runs: Vec<Run>,
}

/// An experiment in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentInfo {
    /// The experiment.
    pub experiment: Experiment,
    /// URL of its page.
    pub url: String,
    /// Its progress.
    pub progress: Progress,
    /// Its result so far, in one line.
    pub verdict: String,
}

/// A list of experiments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExperimentList {
    /// Experiments, newest first.
    pub experiments: Vec<ExperimentInfo>,
    /// Value of `after` for the next page; null on the last page.
    #[schema(value_type = Option<String>)]
    pub next: Option<ExperimentId>,
}

/// A request for more repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRepetitions {
    /// Number of repetitions to add to every cell, at least 1.
    pub repetitions: u32,
}
