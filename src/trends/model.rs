//! A trend: a cell over versions and time, its changes and annotations. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::{ExperimentId, RunId},
    compare::metric::Metric,
    runs::verdict::Verdict,
    trends::cell::TrendCell,
};

/// The number of newest runs of a cell that are read.
pub(crate) const MAX_RUNS: usize = 1_000;

/// The number of newest points of a cell that are searched and shown.
pub const MAX_POINTS: usize = 200;

/// With fewer points no change can be significant.
pub const MIN_USEFUL: usize = 10;

/// The number of newest runs whose cells are listed without a target.
pub(crate) const RECENT: i64 = 20_000;

/// The maximum number of pins of a user.
pub const MAX_PINS: usize = 12;

/// The maximum number of cells in a list; a single target has fewer.
pub(crate) const MAX_LISTED: usize = 60;

/// The status of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeStatus {
    /// The change is real.
    Confirmed,
    /// The change is not real or does not matter.
    Dismissed,
}

impl ChangeStatus {
    /// Returns the name in columns and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Dismissed => "dismissed",
        }
    }
}

impl std::str::FromStr for ChangeStatus {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        [Self::Confirmed, Self::Dismissed]
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a status: use confirmed or dismissed"))
    }
}

/// What supports a change besides the points that showed it first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Support {
    /// Nothing yet: it is new. A series is searched with each new point, so some changes are noise.
    #[default]
    New,
    /// It was found again after each of two more points, and is too large for correlated noise.
    LaterPoints,
    /// Both versions were measured in the same blocks of an experiment, and differ in the same direction.
    SameBlocks,
    /// It was found before, and later points do not support it.
    Lost,
}

impl Support {
    /// Whether more supports it than the points that showed it first.
    pub fn is_enough(self) -> bool {
        matches!(self, Self::LaterPoints | Self::SameBlocks)
    }

    /// Describes a change without an annotation.
    pub fn describe(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::LaterPoints | Self::SameBlocks => "open",
            Self::Lost => "not confirmed",
        }
    }

    /// Explains it in a few words; none if there is nothing to explain.
    pub fn explain(self) -> Option<&'static str> {
        match self {
            Self::New => Some("may be noise until more points confirm it"),
            Self::LaterPoints => None,
            Self::SameBlocks => Some("both versions differ in one experiment, too"),
            Self::Lost => Some("later points do not show it"),
        }
    }
}

/// One point of a history: an experiment, or a run that belongs to none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Point {
    /// The experiment; null for a run without one. An experiment with several versions of the target has a point for
    /// each.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// When its first run began, unix ms; for imports, when they were uploaded.
    pub at_ms: i64,
    /// The version of the target.
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
    /// When it began, unix ms; for imports, when it was uploaded.
    pub at_ms: i64,
    /// Its value, in the unit of the metric.
    pub value: f64,
    /// `valid` or `suspect`.
    pub verdict: Verdict,
    /// The block of its experiment, if that is known to alternate between versions.
    #[serde(skip)]
    pub block: Option<u32>,
}

/// Consecutive points of one version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Span {
    /// The version.
    pub version: Option<String>,
    /// The index of its first point.
    pub first: usize,
    /// How many points it has.
    pub points: usize,
    /// How many runs the points have.
    pub runs: usize,
    /// How many of the runs are suspect.
    pub suspect: usize,
    /// The median of the points.
    pub median: f64,
    /// Lower end of the 95 % confidence interval of the median; null with fewer than six points.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
    /// When the first run began, unix ms.
    pub from_ms: i64,
    /// When the last run began, unix ms.
    pub to_ms: i64,
}

/// A change in a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Change {
    /// The first run after it, which identifies the change.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The experiment of that run; null if it has none or is older than the points.
    #[schema(value_type = Option<String>)]
    pub experiment: Option<ExperimentId>,
    /// The index of the first point after it; null if it is older than the points.
    pub at: Option<usize>,
    /// When that run began, unix ms.
    pub at_ms: i64,
    /// The version of the first point after it.
    pub version: Option<String>,
    /// The version of the point before it.
    pub previous_version: Option<String>,
    /// The end of an episode: the first point back at the previous level; null if the change lasts.
    pub returned: Option<Return>,
    /// The medians of the segments before and after it; null if it is only known from an annotation.
    pub medians: Option<[f64; 2]>,
    /// After ÷ before.
    pub ratio: f64,
    /// Whether it is an improvement; null if neither direction of the metric is better.
    pub improved: Option<bool>,
    /// Whether it is found in the current history.
    pub found: bool,
    /// What supports it.
    #[serde(default)]
    pub support: Support,
    /// Its annotation.
    pub annotation: Option<Annotation>,
    /// The command that finds the commit; null unless the target is worse since another commit of a repository.
    #[serde(default)]
    pub bisect: Option<String>,
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

/// A user's annotation of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Annotation {
    /// The first run after the change when it was annotated; later runs may have moved the change by a point or two.
    #[schema(value_type = String)]
    pub run: RunId,
    /// Whether the change is confirmed or dismissed.
    pub status: ChangeStatus,
    /// The reason.
    pub note: Option<String>,
    /// The user who annotated it.
    pub by: String,
    /// When it was annotated, unix ms.
    pub at_ms: i64,
}

/// The history of one metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Trend {
    /// The cell.
    pub cell: TrendCell,
    /// The metric.
    pub metric: Metric,
    /// The URL of its page.
    pub url: String,
    /// The points of the last 200 experiments, oldest first.
    pub points: Vec<Point>,
    /// The points grouped by version.
    pub spans: Vec<Span>,
    /// The changes, oldest first.
    pub changes: Vec<Change>,
}

impl Trend {
    /// Returns the changes that were neither dismissed nor lost, oldest first.
    pub fn changes_not_dismissed(&self) -> impl DoubleEndedIterator<Item = &Change> {
        let is_dismissed = |change: &Change| {
            change.annotation.as_ref().is_some_and(|annotated| annotated.status == ChangeStatus::Dismissed)
        };
        self.changes.iter().filter(move |change| !is_dismissed(change) && !change.is_lost())
    }

    /// Returns the last change that lasts.
    pub fn lasting_change(&self) -> Option<&Change> {
        self.changes_not_dismissed().rev().find(|change| change.returned.is_none())
    }
}

impl Change {
    /// Whether it was found before, later points do not support it, and nobody has annotated it.
    pub fn is_lost(&self) -> bool {
        self.support == Support::Lost && self.annotation.is_none()
    }

    /// Whether neither later points nor a user has confirmed it.
    pub fn is_new(&self) -> bool {
        self.support == Support::New && self.annotation.is_none()
    }

    /// Whether it is certain enough and nobody has annotated it.
    pub fn is_open(&self) -> bool {
        self.support.is_enough() && self.annotation.is_none()
    }
}

/// A cell in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrendInfo {
    /// The cell.
    pub cell: TrendCell,
    /// The URL of its page.
    pub url: String,
    /// How many valid runs it has.
    pub runs: usize,
    /// When the newest was submitted, unix ms.
    pub newest_at_ms: i64,
    /// The throughput of the newest version, requests/s: the median of its points.
    pub rps: Option<f64>,
    /// How many changes of throughput and p99 are confirmed by later points or in the same blocks, and not annotated.
    pub open: usize,
    /// How many others are new.
    #[serde(default)]
    pub new: usize,
}

/// A trend that a user has pinned to the dashboard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pin {
    /// Name of the target.
    pub target: String,
    /// The id of the cell.
    pub cell: String,
    /// Describes the cell.
    pub setting: String,
    /// The URL of the trend.
    pub url: String,
    /// When it was pinned, unix ms.
    pub pinned_at_ms: i64,
}

/// The pinned trends of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PinList {
    /// In the order in which they were pinned.
    pub pins: Vec<Pin>,
}

/// Cells with a history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrendList {
    /// The cell with the newest run first.
    pub trends: Vec<TrendInfo>,
}
