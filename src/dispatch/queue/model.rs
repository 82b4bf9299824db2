//! The queue as pages and the API show it. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{placement::wait_reason::Reason, runs::model::Run};

/// A run that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    /// Its place in the queue, from 1.
    pub position: usize,
    /// The run.
    pub run: Run,
    /// What its experiment is called.
    pub experiment_name: Option<String>,
    /// The only agent that may do it; null where any may.
    pub wanted_agent: Option<String>,
    /// Only agents with this label may begin its experiment; null where any may.
    #[serde(default)]
    pub agent_label: Option<String>,
    /// Who can do it and takes runs, by name.
    pub agents: Vec<String>,
    /// What it waits for, in a word.
    pub reason: Reason,
    /// What it waits for, in a sentence.
    pub why: String,
    /// In how many seconds it begins; null where that can't be told.
    pub starts_in_s: Option<f64>,
    /// Above 0 where somebody has put it first; higher ones go before.
    pub priority: i64,
}

/// The queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueList {
    /// How many wait; only the first 500 are listed.
    pub total: usize,
    /// In the order in which they will be done.
    pub waiting: Vec<Waiting>,
    /// What is being done.
    pub working: Vec<Run>,
}
