//! Figures over versions and time: the history of one cell, where it changed, and what people say of each change.
//!
//! The unit is the experiment: its runs share a day and whatever that day did to the machine, so they are one point, their
//! median. Shuffling runs would take every day's offset for a change. A run without an experiment is a point by itself:
//! nothing says which others it was measured with.
//!
//! In reading order: [`cell`] says which runs belong together, [`shifts`] where a series changes, [`history`] puts
//! points, changes and judgements together. All of that is pure; [`mod@pages`] and [`mod@api`] show it.

pub mod api;
pub mod cell;
pub mod charts;
pub mod history;
pub mod pages;
pub mod queries;
pub mod shifts;

use axum::{
    Router,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    compare::metric::Metric,
    error::{Error, Result},
    runs::{self, Verdict},
    state::AppState,
};
use cell::{Cell, Known};

/// The newest runs of a cell that are read.
const MOST_RUNS: usize = 1_000;

/// The newest points of a cell that are searched and shown.
pub const MOST_POINTS: usize = 200;

/// With fewer points no order of them is so rare that it would count as a change.
pub const LEAST_USEFUL: usize = 10;

/// A list of all targets tells of the cells of so many runs, the newest.
const RECENT: i64 = 20_000;

/// More cells than this are no list; one target has less.
const MOST_LISTED: usize = 60;

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
    pub experiment: Option<String>,
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
    pub run: String,
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
    pub run: String,
    /// The experiment of that run; null where it has none, or is older than the points.
    pub experiment: Option<String>,
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
    pub run: String,
    /// When that run began, unix ms.
    pub at_ms: i64,
}

/// What somebody said of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Judgement {
    /// The first run after the change when it was judged; more history may have moved that by a point or two.
    pub run: String,
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

/// The metrics that have a history here.
pub fn metrics() -> impl Iterator<Item = Metric> {
    // A share is zero in most runs, and a change from zero has no ratio.
    crate::metrics::compared().filter(|metric| !metric.is_share())
}

/// The metric of this name; throughput where none is named.
pub fn metric_named(name: Option<&str>) -> Result<Metric> {
    let Some(name) = name.filter(|name| !name.is_empty()) else { return Ok(Metric::Rps) };
    let all = || metrics().map(Metric::key).collect::<Vec<_>>().join(", ");
    metrics()
        .find(|metric| metric.key() == name)
        .ok_or_else(|| Error::Invalid(format!("metric: {name:?} has no history; there is {}", all())))
}

/// Pages.
pub fn pages() -> Router<AppState> {
    Router::new()
        .route("/trends", get(pages::index))
        .route("/trends/{target}/{cell}", get(pages::show))
        .route("/trends/{target}/{cell}/judge", post(pages::judge))
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list))
        .routes(routes!(api::show))
        .routes(routes!(api::judge, api::withdraw))
}

/// Cells with a history, those of a target or of the newest runs, and how many there were no room for.
async fn list(state: &AppState, target: Option<&str>) -> Result<(Vec<TrendInfo>, usize)> {
    let mut cells = cell::known(runs::queries::cells::cells(&state.db.read, target, RECENT).await?);
    let left_out = cells.len().saturating_sub(MOST_LISTED);
    cells.truncate(MOST_LISTED);
    let mut trends = Vec::with_capacity(cells.len());
    for known in cells {
        let runs = runs_of(state, &known).await?;
        let mut open = 0;
        for metric in [Metric::Rps, Metric::P99Ms] {
            let judged = queries::of_cell(&state.db.read, &known.cell.id, metric.key()).await?;
            let runs = runs.clone();
            let work = move || history::changes(&history::points(&runs, metric), metric, &judged);
            let changes = tokio::task::spawn_blocking(work).await.map_err(Error::internal)?;
            open += changes.iter().filter(|change| change.judgement.is_none()).count();
        }
        let spans = history::spans(&history::points(&runs, Metric::Rps));
        trends.push(TrendInfo {
            url: address(state, &known.cell)?,
            runs: known.runs,
            newest_at_ms: known.newest_at_ms,
            rps: spans.last().map(|span| span.median),
            open,
            cell: known.cell,
        });
    }
    Ok((trends, left_out))
}

/// The history of a metric of a cell, or a 404.
async fn trend(state: &AppState, target: &str, cell: &str, metric: Metric) -> Result<Trend> {
    let known = found(state, target, cell).await?;
    let runs = runs_of(state, &known).await?;
    let judged = queries::of_cell(&state.db.read, &known.cell.id, metric.key()).await?;
    let url = format!("{}?metric={}", address(state, &known.cell)?, metric.key());
    let work = move || {
        let points = history::points(&runs, metric);
        let (spans, changes) = (history::spans(&points), history::changes(&points, metric, &judged));
        Trend { cell: known.cell, metric, url, points, spans, changes }
    };
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)
}

/// The cell of this id, or a 404.
async fn found(state: &AppState, target: &str, id: &str) -> Result<Known> {
    let cells = cell::known(runs::queries::cells::cells(&state.db.read, Some(target), RECENT).await?);
    let known = cells.into_iter().find(|known| known.cell.id == id);
    known.ok_or_else(|| Error::NotFound(format!("cell {id:?} of {target:?}")))
}

async fn runs_of(state: &AppState, known: &Known) -> Result<Vec<runs::Run>> {
    let limit = i64::try_from(MOST_RUNS).map_err(Error::internal)?;
    let runs = runs::queries::cells::in_cells(&state.db.read, &known.keys, known.cell.agent.as_deref(), limit).await?;
    Ok(if runs.len() < MOST_RUNS { runs } else { history::without_cut_experiment(runs) })
}

fn address(state: &AppState, cell: &Cell) -> Result<String> {
    let path = format!("trends/{}/{}", crate::web::address::segment(&cell.target), cell.id);
    Ok(state.public_url.join(&path).map_err(Error::internal)?.into())
}
