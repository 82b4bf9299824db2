//! How far an experiment is and how long it will still take. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::{
    Run,
    progress::{describe, left_s, whole_s},
};

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// Runs in all; one that was lost and its repetition count once.
    pub total: usize,
    /// Runs that have ended.
    pub ended: usize,
    /// Runs that ended without figures.
    pub without_figures: usize,
    /// What is being done now, e.g. `go-nethttp · 1 vCPU / 256 MiB · repetition 2 · measuring`.
    pub now: Option<String>,
    /// Seconds left, if they can be told.
    pub left_s: Option<f64>,
    /// Share of the time that has passed, 0 to 1.
    pub share: f64,
}

/// How far these runs are at a time.
pub fn progress(runs: &[Run], now_ms: i64) -> Progress {
    let counted: Vec<_> = runs.iter().filter(|run| !repeated(run, runs)).collect();
    let ended = counted.iter().filter(|run| run.has_ended()).count();
    let without_figures = counted.iter().filter(|run| run.has_ended() && run.phase != "finished").count();
    let active = counted.iter().find(|run| !run.has_ended() && run.phase != "queued");
    let times: Vec<_> = counted.iter().map(|run| left_s(run, &counted, now_ms)).collect();
    let left_s: Option<f64> = times.into_iter().sum();
    let whole: Option<f64> = counted.iter().map(|run| whole_s(run, &counted)).sum();
    let share = match (left_s, whole) {
        _ if counted.is_empty() || ended == counted.len() => 1.0,
        (Some(left), Some(whole)) if whole > 0.0 => (1.0 - left / whole).clamp(0.0, 1.0),
        _ => ended as f64 / counted.len() as f64,
    };
    Progress { total: counted.len(), ended, without_figures, now: active.map(|run| describe(run)), left_s, share }
}

/// Whether a run was lost and another does it again.
pub fn repeated(run: &Run, runs: &[Run]) -> bool {
    run.phase == "lost" && runs.iter().any(|other| other.retry_of.as_deref() == Some(&run.id))
}
