//! A submission: targets × sizes × repetitions of one scenario under one load, and its progress.

pub mod api;
pub mod command;
pub mod draft;
pub mod drawing;
pub mod fits;
pub mod forecast;
pub mod list;
pub mod new;
pub mod offer;
pub mod order;
pub mod pages;
pub mod progress;
pub mod queries;
pub mod remarks;
pub mod submission;
pub mod told;

use std::collections::BTreeMap;

use axum::{Extension, Router};
use brewbench_agent::wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use progress::Progress;

use crate::{
    fleet::Presence,
    runs::{
        Run,
        load::{self, LoadBody},
    },
    state::AppState,
};

/// What a user asks for. Durations are seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// What to call it; made up from the rest if absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Names of targets.
    pub targets: Vec<String>,
    /// Names of machine sizes, or short as `2/4GiB`.
    pub sizes: Vec<String>,
    /// Name of a scenario; its newest revision is taken.
    pub scenario: String,
    /// Parameters of the scenario that differ from its defaults.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// How hard, and for how long; as the script says, if absent.
    #[serde(default = "default_load", with = "load::json")]
    #[schema(value_type = LoadBody)]
    pub load: Load,
    /// Warm-up before each run: the load's highest level all the time.
    #[serde(default = "default_warm_up_s")]
    pub warm_up_s: f64,
    /// Runs of each target at each size.
    #[serde(default = "default_repetitions")]
    pub repetitions: u32,
    /// Only this agent; any that can, if absent.
    #[serde(default)]
    pub agent: Option<String>,
}

fn default_load() -> Load {
    Load::Script
}

/// Long enough for the caches and the allocator of a small server.
pub fn default_warm_up_s() -> f64 {
    2.0
}

/// The least with which two targets at one size can be told apart in all figures that are judged.
pub fn default_repetitions() -> u32 {
    5
}

/// An experiment as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Experiment {
    /// UUID.
    pub id: String,
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

/// Pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    pages::router().layer(Extension(presence))
}

/// JSON.
pub fn api(presence: Presence) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list, api::submit))
        .routes(routes!(api::show))
        .routes(routes!(api::cancel))
        .routes(routes!(remarks::add_label, remarks::remove_label))
        .routes(routes!(remarks::set_note))
        .routes(routes!(api::watch))
        .layer(Extension(presence))
}
