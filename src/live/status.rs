//! A run while it is under way, in words of the API: how far it is, how fast, and its points as they come. Pure.

use brewbench_agent::wire::{Phase, series::Part};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    live::feed::{News, Rate},
    results::series::model::{SecondBody, SideCores, UsageBody, seconds_after, usage_after},
    runs::{model::Run, progress},
};

/// What runs and waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Now {
    /// Runs that an agent works on.
    pub running: Vec<RunNow>,
    /// How many runs wait for an agent.
    pub queued: usize,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunNow {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// As in a run.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// The share of its time that has passed, 0 to 1; null if it can't be told.
    pub share: Option<f64>,
    /// How long it still takes, seconds; null if it can't be told.
    pub left_s: Option<f64>,
    /// Requests per second in its last second; null while there is none.
    pub rps: Option<f64>,
    /// Failed requests per second in its last second.
    pub failed_rps: Option<f64>,
}

impl RunNow {
    /// How far a run is at a time, judged by others of the same plan.
    pub fn new(run: &Run, others: &[&Run], rate: Option<Rate>, now_ms: i64) -> Self {
        Self {
            run: run.id.clone(),
            phase: run.phase,
            share: progress::share(run, others, now_ms),
            left_s: progress::left_s(run, others, now_ms),
            rps: rate.map(|rate| rate.rps),
            failed_rps: rate.map(|rate| rate.failed_rps),
        }
    }
}

/// Points of a run under way. Where there are `seconds`, they take the place of all that are later than
/// `seconds_after_s`, so that nothing is doubled and a last second that has grown is replaced; the same for `usage`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PointsBody {
    /// `warming_up` or `measuring`.
    #[schema(value_type = String)]
    pub phase: Phase,
    /// When the run's first second began, by the agent's clock, unix ms: all other times count from then.
    pub start_ms: i64,
    /// Seconds that end later go away; all, if null.
    pub seconds_after_s: Option<f64>,
    /// What the load did.
    pub seconds: Vec<SecondBody>,
    /// Samples that were taken later go away; all, if null.
    pub usage_after_s: Option<f64>,
    /// What was used.
    pub usage: Vec<UsageBody>,
}

impl PointsBody {
    /// What is new of a run whose sides have these cores.
    pub fn new(news: &News, cores: SideCores) -> Self {
        let in_seconds = |ms: i64| ms as f64 / 1e3;
        let phase = match news.part {
            Part::WarmUp => Phase::WarmingUp,
            Part::Measured => Phase::Measuring,
        };
        let (seconds, usage) = (&news.seconds, &news.usage);
        Self {
            phase,
            start_ms: news.start_ms,
            seconds_after_s: seconds.after_ms.map(in_seconds),
            seconds: seconds_after(news.offset_ms, seconds.before.unwrap_or(0), &seconds.points),
            usage_after_s: usage.after_ms.map(in_seconds),
            usage: usage_after(news.offset_ms, usage.before, &usage.points, cores),
        }
    }
}

/// [`PointsBody`] as JSON, made once for all who listen. There is nothing in it but numbers and words of ours, so it may
/// stand in HTML as it is.
pub fn written(news: &News, cores: SideCores) -> &str {
    news.written(|news| serde_json::to_string(&PointsBody::new(news, cores)).unwrap_or_default())
}
