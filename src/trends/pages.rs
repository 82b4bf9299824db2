//! `/trends`: the list of cells. `/trends/{target}/{cell}`: the trend of one.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    response::Redirect,
};
use serde::Deserialize;

use super::{
    api::{AnnotationBody, MetricQuery, delete_annotation, store_annotation},
    charts,
};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::{
        caller::{Read, SignedIn, Submit},
        model::Scope,
    },
    runs::verdict::Verdict,
    trends::{
        load::{self, metric_named, trend},
        model::{Annotation, Change, ChangeStatus, Point, Return, RunPoint, Span, Trend, TrendInfo},
        pins,
    },
    web::{
        address::segment,
        chart::Chart,
        format::{self, Figure},
        series_style::{Mark, Marks},
        shell::{Section, Shell},
        time_ago::{self, RelativeTime},
    },
};

/// The list of cells.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "trends/index.html")]
pub struct TrendsPage {
    shell: Shell,
    lines: Vec<TrendInfo>,
    marks: Marks,
    target: String,
    /// How many cells are not listed because of the limit.
    excluded: usize,
}

/// The trend of a cell.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "trends/show.html")]
pub struct TrendPage {
    shell: Shell,
    trend: Trend,
    mark: Mark,
    chart: Option<Chart>,
    scope: Scope,
    /// Whether the caller is a user, who may have pins.
    may_pin: bool,
    is_pinned: bool,
}

/// Query parameters of the list.
#[derive(Debug, Deserialize)]
pub struct ListParams {
    /// Lists only cells of this target.
    #[serde(default)]
    target: String,
}

/// The form that annotates a change. An empty status deletes the annotation.
#[derive(Debug, Deserialize)]
pub struct AnnotationForm {
    metric: String,
    run: RunId,
    status: String,
    #[serde(default)]
    note: String,
}

/// `GET /trends?target=…`
pub async fn index(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(params): QueryParams<ListParams>,
) -> Result<TrendsPage> {
    let (lines, excluded) =
        load::list(&state, Some(params.target.as_str()).filter(|target| !target.is_empty())).await?;
    let targets: Vec<&str> = lines.iter().map(|line| line.cell.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let shell = Shell::signed_in("Trends", Section::Trends, &caller.name);
    Ok(TrendsPage { shell, lines, marks, target: params.target, excluded })
}

/// `GET /trends/{target}/{cell}?metric=…`
pub async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
    QueryParams(query): QueryParams<MetricQuery>,
) -> Result<TrendPage> {
    let trend = trend(&state, &target, &cell, metric_named(query.metric.as_deref())?).await?;
    let mark = crate::catalog::store::marks(&state.db.read, &[target.as_str()]).await?.of(&target);
    let shell = Shell::signed_in(format!("{target} over time"), Section::Trends, &caller.name);
    let chart = charts::chart(&trend, mark);
    let (may_pin, is_pinned) = (caller.session.is_some(), pins::is_pinned(&state, &caller, &target, &cell).await?);
    Ok(TrendPage { shell, chart, trend, mark, scope: caller.scope, may_pin, is_pinned })
}

/// The form that pins or unpins a trend.
#[derive(Debug, Deserialize)]
pub struct PinForm {
    /// The shown metric; none on the dashboard, to which the answer then leads.
    metric: Option<String>,
}

impl PinForm {
    fn answer(&self, target: &str, cell: &str) -> Result<Redirect> {
        let Some(metric) = &self.metric else { return Ok(Redirect::to("/")) };
        let metric = metric_named(Some(metric))?.key();
        Ok(Redirect::to(&format!("/trends/{}/{}?metric={metric}", segment(target), segment(cell))))
    }
}

/// `POST /trends/{target}/{cell}/pin`
pub async fn pin(
    SignedIn { caller, .. }: SignedIn,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
    Form(form): Form<PinForm>,
) -> Result<Redirect> {
    pins::pin(&state, &caller, &target, &cell).await?;
    form.answer(&target, &cell)
}

/// `POST /trends/{target}/{cell}/unpin`
pub async fn unpin(
    SignedIn { caller, .. }: SignedIn,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
    Form(form): Form<PinForm>,
) -> Result<Redirect> {
    pins::unpin(&state, &caller, &target, &cell).await?;
    form.answer(&target, &cell)
}

/// `POST /trends/{target}/{cell}/annotate`
pub async fn annotate(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
    Form(form): Form<AnnotationForm>,
) -> Result<Redirect> {
    let AnnotationForm { metric, run, status, note } = form;
    let metric = metric_named(Some(&metric))?;
    if status.is_empty() {
        delete_annotation(&state, &caller, (&target, &cell), metric, &run).await?;
    } else {
        let status: ChangeStatus = status.parse().map_err(Error::Invalid)?;
        let note = Some(note).filter(|note| !note.trim().is_empty());
        store_annotation(&state, &caller, (&target, &cell), metric, &run, AnnotationBody { status, note }).await?;
    }
    Ok(Redirect::to(&format!("/trends/{}/{}?metric={}#changes", segment(&target), segment(&cell), metric.key())))
}

impl TrendInfo {
    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.newest_at_ms))
    }

    fn path(&self) -> String {
        format!("/trends/{}/{}", segment(&self.cell.target), self.cell.id)
    }
}

impl TrendsPage {
    fn mark(&self, line: &TrendInfo) -> Mark {
        self.marks.of(&line.cell.target)
    }

    fn is_cut(&self) -> bool {
        self.excluded > 0
    }
}

impl TrendPage {
    fn path(&self) -> String {
        format!("/trends/{}/{}", segment(&self.trend.cell.target), self.trend.cell.id)
    }

    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Formats a value of the metric.
    pub fn figure(&self, value: &f64) -> Figure {
        self.trend.metric.figure(Some(*value))
    }

    fn run_count(&self) -> usize {
        self.trend.spans.iter().map(|span| span.runs).sum()
    }

    fn interval(&self, span: &Span) -> String {
        let figure = |value: f64| self.trend.metric.figure(Some(value)).text().to_owned();
        span.low.zip(span.high).map_or_else(String::new, |(low, high)| format!("{} to {}", figure(low), figure(high)))
    }

    /// Returns open changes, then confirmed ones.
    fn shown(&self) -> Vec<&Change> {
        let mut shown: Vec<&Change> = self.trend.changes.iter().filter(|change| !change.is_dismissed()).collect();
        shown.sort_by_key(|change| (change.annotation.is_some(), std::cmp::Reverse(change.at_ms)));
        shown
    }

    fn dismissed(&self) -> Vec<&Change> {
        self.trend.changes.iter().filter(|change| change.is_dismissed()).collect()
    }
}

impl Point {
    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.at_ms))
    }

    /// Returns the path of its experiment or its only run.
    fn path(&self) -> String {
        match (&self.experiment, self.runs.as_slice()) {
            (None, [run, ..]) => format!("/runs/{}", run.run),
            (experiment, _) => format!("/experiments/{}", experiment.as_ref().map_or("", ExperimentId::as_str)),
        }
    }
}

impl RunPoint {
    fn is_suspect(&self) -> bool {
        self.verdict == Verdict::Suspect
    }
}

impl Return {
    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.at_ms))
    }
}

impl Annotation {
    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.at_ms))
    }
}

impl Span {
    fn from(&self) -> RelativeTime {
        time_ago::ago(Some(self.from_ms))
    }

    fn to(&self) -> RelativeTime {
        time_ago::ago(Some(self.to_ms))
    }
}

impl Change {
    fn is_dismissed(&self) -> bool {
        self.annotation.as_ref().is_some_and(|annotation| annotation.status == ChangeStatus::Dismissed)
    }

    fn when(&self) -> RelativeTime {
        time_ago::ago(Some(self.at_ms))
    }

    fn size(&self) -> Figure {
        format::change(Some(self.ratio - 1.0))
    }

    /// Returns the direction as a word.
    pub fn word(&self) -> &'static str {
        match self.improved {
            Some(true) => "better",
            Some(false) => "worse",
            None => "other",
        }
    }

    fn class(&self) -> &'static str {
        match self.improved {
            Some(true) => "good",
            Some(false) => "bad",
            None => "plain",
        }
    }
}
