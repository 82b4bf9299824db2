//! JSON types of a run in progress: its progress, its rate, and its points as they arrive. Pure.

use brewbench_wire::{Phase, series::WindowKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    live::feed::{Rate, Update},
    results::series::model::{SecondBody, SideCores, UsageBody, seconds_after, usage_after},
    runs::{model::Run, progress},
};

/// Runs in progress and queued runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Now {
    /// Runs in progress.
    pub running: Vec<RunNow>,
    /// Number of queued runs.
    pub queued: usize,
}

/// Progress of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunNow {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Its phase, as in `Run`.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// Elapsed share of its expected duration, 0 to 1; null if unknown.
    pub share: Option<f64>,
    /// Expected remaining time, seconds; null if unknown.
    pub remaining_s: Option<f64>,
    /// Requests per second in its last second; null before the first.
    pub rps: Option<f64>,
    /// Failed requests per second in its last second.
    pub failed_rps: Option<f64>,
    /// What takes long in its preparation, such as pulling an image; null otherwise.
    pub step: Option<String>,
}

impl RunNow {
    /// Returns the progress of a run, estimated from other runs of the same plan.
    pub fn new(run: &Run, others: &[&Run], rate: Option<Rate>, now_ms: i64) -> Self {
        Self {
            run: run.id.clone(),
            phase: run.phase,
            share: progress::share(run, others, now_ms),
            remaining_s: progress::remaining_s(run, others, now_ms),
            rps: rate.map(|rate| rate.rps),
            failed_rps: rate.map(|rate| rate.failed_rps),
            step: None,
        }
    }
}

/// Points of a run in progress. If `seconds` is not empty, it replaces all seconds after `seconds_after_s`, so that
/// none is doubled and a last second that has grown is replaced; the same for `usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointsBody {
    /// `warming_up` or `measuring`.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// Start of the run's first second by the agent's clock, unix ms: all other times count from it.
    pub start_ms: i64,
    /// Seconds that end later are replaced; all, if null.
    pub seconds_after_s: Option<f64>,
    /// Load and latencies per second.
    pub seconds: Vec<SecondBody>,
    /// Samples that were taken later are replaced; all, if null.
    pub usage_after_s: Option<f64>,
    /// Samples of resource use.
    pub usage: Vec<UsageBody>,
}

impl PointsBody {
    /// Converts an update of a run with these cores.
    pub fn new(update: &Update, cores: SideCores) -> Self {
        let in_seconds = |ms: i64| ms as f64 / 1e3;
        let phase = match update.part {
            WindowKind::WarmUp => Phase::WarmingUp,
            WindowKind::Measured => Phase::Measuring,
        };
        let (seconds, usage) = (&update.seconds, &update.usage);
        Self {
            phase,
            start_ms: update.start_ms,
            seconds_after_s: seconds.after_ms.map(in_seconds),
            seconds: seconds_after(update.offset_ms, seconds.before.unwrap_or(0), &seconds.points),
            usage_after_s: usage.after_ms.map(in_seconds),
            usage: usage_after(update.offset_ms, usage.before, &usage.points, cores),
        }
    }
}

/// Returns [`PointsBody`] as JSON, serialized once for all subscribers.
///
/// It contains only numbers and fixed words, so it is safe in HTML without escaping.
pub fn to_json(update: &Update, cores: SideCores) -> &str {
    update.json(|update| serde_json::to_string(&PointsBody::new(update, cores)).unwrap_or_default())
}
