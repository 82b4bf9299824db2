//! A trend: a cell over versions and time, its changes and annotations. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::{ExperimentId, RunId},
    compare::metric::Metric,
    runs::verdict::Verdict,
    trends::cell::Cell,
};

/// The newest runs of a cell that are read.
pub(crate) const MOST_RUNS: usize = 1_000;

/// The newest points of a cell that are searched and shown.
pub const MOST_POINTS: usize = 200;

/// With fewer points no order of them is so rare that it would count as a change.
pub const LEAST_USEFUL: usize = 10;

/// A list of all targets tells of the cells of so many runs, the newest.
pub(crate) const RECENT: i64 = 20_000;

/// More cells than this are no list; one target has less.
pub(crate) const MOST_LISTED: usize = 60;

/// What people say of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ruling {
    /// It is one.
    Confirmed,
    /// It is none, or none that matters.
    Dismissed,
}

impl Ruling {
    /// The word for columns and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Dismissed => "dismissed",
        }
    }
}

impl std::str::FromStr for Ruling {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        [Self::Confirmed, Self::Dismissed]
            .into_iter()
            .find(|ruling| ruling.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no judgement of a change: confirmed or dismissed"))
    }
}

/// One point of a history: an experiment, or a run that belongs to none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Point {
    /// The experiment; null where the point is a run without one. An experiment during which the target changed its version
    /// has a point for each version.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// When its first run began, unix ms; of an import when it was uploaded.
    pub at_ms: i64,
    /// Version of the target.
    pub version: Option<String>,
    /// The median of its runs, in the unit of the metric.
    pub value: f64,
    /// Its runs, oldest first; never empty. Invalid runs are excluded.
    pub runs: Vec<RunPoint>,
}

/// One run of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunPoint {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// When it began, unix ms; of an import when it was uploaded.
    pub at_ms: i64,
    /// Its figure, in the unit of the metric.
    pub value: f64,
    /// Valid or suspect.
    pub verdict: Verdict,
}

/// Consecutive points of one version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// The version.
    pub version: Option<String>,
    /// The index of its first point.
    pub first: usize,
    /// How many points there are.
    pub points: usize,
    /// How many runs they have.
    pub runs: usize,
    /// How many of the runs are suspect.
    pub suspect: usize,
    /// The median of the points.
    pub median: f64,
    /// Where the 95 % confidence interval of the median begins; null with fewer than six points.
    pub low: Option<f64>,
    /// Where it ends.
    pub high: Option<f64>,
    /// When the first run began, unix ms.
    pub from_ms: i64,
    /// When the last run began, unix ms.
    pub to_ms: i64,
}

/// A change in a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The first run after it, by which it is known.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The experiment of that run; null where it has none, or is older than the points.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// The index of the first point after it; null where it is older than the points.
    pub at: Option<usize>,
    /// When that run began, unix ms.
    pub at_ms: i64,
    /// The version of the first point after it.
    pub version: Option<String>,
    /// The version of the point before.
    pub version_before: Option<String>,
    /// Of an episode, the first point back at the level before it; null where the change lasts.
    pub returned: Option<Return>,
    /// The medians of the stretches before and after it; null where it is only known from a judgement.
    pub medians: Option<[f64; 2]>,
    /// After ÷ before.
    pub ratio: f64,
    /// Whether it is for the better; null where a metric has no better.
    pub improved: Option<bool>,
    /// Whether it is found in the history as it is now.
    pub found: bool,
    /// What people say of it.
    pub judgement: Option<Judgement>,
}

/// The end of an episode: a change that was undone within a few points.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Return {
    /// The index of the first point after it.
    pub at: usize,
    /// The first run after it.
    #[schema(value_type = String)]
    pub run: RunId,
    /// When that run began, unix ms.
    pub at_ms: i64,
}

/// What somebody said of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Judgement {
    /// The first run after the change when it was judged; more history may have moved that by a point or two.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Whether it is one.
    pub ruling: Ruling,
    /// Why.
    pub note: Option<String>,
    /// Who said it.
    pub by: String,
    /// When, unix ms.
    pub at_ms: i64,
}

/// The history of one metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trend {
    /// Whose.
    pub cell: Cell,
    /// Of what.
    pub metric: Metric,
    /// Its page.
    pub url: String,
    /// Oldest first, the last 200 experiments.
    pub points: Vec<Point>,
    /// The same by version.
    pub spans: Vec<Span>,
    /// Oldest first.
    pub changes: Vec<Change>,
}

/// A cell as lists show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrendInfo {
    /// Which.
    pub cell: Cell,
    /// Its page.
    pub url: String,
    /// How many runs count.
    pub runs: usize,
    /// When the newest was submitted, unix ms.
    pub newest_at_ms: i64,
    /// The throughput of the newest version, requests/s: the median of its points.
    pub rps: Option<f64>,
    /// Changes of throughput and p99 that nobody has judged.
    pub open: usize,
}

/// Cells with a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrendList {
    /// The one with the newest run first.
    pub trends: Vec<TrendInfo>,
}
