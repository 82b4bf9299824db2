//! The queue as shown by pages and the API. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{placement::wait_reason::WaitCode, runs::model::Run};

/// A waiting run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueEntry {
    /// Position in the queue, from 1.
    pub position: usize,
    /// The run.
    pub run: Run,
    /// Name of its experiment.
    pub experiment_name: Option<String>,
    /// The only agent that may do it; null if any may.
    pub required_agent: Option<String>,
    /// The label that an agent must have to start its experiment; null if none is required.
    #[serde(default)]
    pub agent_label: Option<String>,
    /// Names of the agents that can do it and accept runs.
    pub agents: Vec<String>,
    /// Why it waits, as a code.
    pub reason: WaitCode,
    /// Why it waits, as a sentence.
    pub message: String,
    /// Estimated seconds until it starts; null if unknown.
    pub starts_in_s: Option<f64>,
    /// Above 0 if a user moved it to the front; runs with a higher priority go first.
    pub priority: i64,
}

/// The queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct QueueList {
    /// Number of waiting runs; only the first 500 are listed.
    pub total: usize,
    /// Waiting runs in queue order.
    pub waiting: Vec<QueueEntry>,
    /// Runs in progress.
    pub working: Vec<Run>,
}
