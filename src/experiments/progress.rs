//! How far an experiment is and how long it will still take. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::runs::Run;

/// What a run takes besides warm-up and measurement, until some have been seen: two starts of k6 and one of a target.
const OVERHEAD_S: f64 = 1.5;

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
    let ended = counted.iter().filter(|run| is_over(run)).count();
    let without_figures = counted.iter().filter(|run| is_over(run) && run.phase != "finished").count();
    let active = counted.iter().find(|run| !is_over(run) && run.phase != "queued");
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

fn is_over(run: &Run) -> bool {
    matches!(run.phase.as_str(), "finished" | "failed" | "cancelled" | "lost")
}

fn repeated(run: &Run, runs: &[Run]) -> bool {
    run.phase == "lost" && runs.iter().any(|other| other.retry_of.as_deref() == Some(&run.id))
}

/// What a run is in one line.
pub fn describe(run: &Run) -> String {
    let size = run.size.as_ref().map_or(String::new(), |size| format!(" · {}", size.name));
    let phase = run.phase.replace('_', " ");
    format!("{}{size} · repetition {} · {phase}", run.target, run.repetition)
}

/// How long a run takes in all: as long as others of the same plan did, else as planned.
fn whole_s(run: &Run, others: &[&Run]) -> Option<f64> {
    let mut seen: Vec<_> = others
        .iter()
        .filter(|other| other.phase == "finished")
        .filter_map(|other| Some((other.finished_at_ms? - other.started_at_ms?) as f64 / 1_000.0))
        .collect();
    seen.sort_by(f64::total_cmp);
    let planned = || Some(run.duration_s? + run.warm_up_s? + OVERHEAD_S);
    seen.get(seen.len() / 2).copied().or_else(planned)
}

/// How long a run still takes.
pub fn left_s(run: &Run, others: &[&Run], now_ms: i64) -> Option<f64> {
    if is_over(run) {
        return Some(0.0);
    }
    let whole = whole_s(run, others)?;
    let since = run.started_at_ms.filter(|_| run.phase != "queued");
    Some(since.map_or(whole, |since| (whole - (now_ms - since) as f64 / 1_000.0).max(0.0)))
}
