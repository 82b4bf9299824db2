//! JSON of trends, of the annotations of their changes, and of pins.

use axum::{
    Json,
    extract::{Path, State},
};
use brewbench_wire::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::RunId,
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, action::Action},
        caller::{Caller, Read, Submit},
    },
    compare::metric::Metric,
    runs::remarks::checked_note,
    trends::{
        load::{self, metric_named, trend},
        model::{Annotation, Change, ChangeStatus, PinList, Trend, TrendList},
        pins,
        store::{self, AnnotatedChange},
    },
};

/// Query parameters of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Lists only cells of this target.
    target: Option<String>,
}

/// Query parameters of a trend.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct MetricQuery {
    /// The metric: `rps` (default), `avg_ms`, `p50_ms`, `p90_ms`, `p95_ms`, `p99_ms`, `max_ms`, `received_per_s`, …
    pub(super) metric: Option<String>,
}

/// An annotation of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnnotationBody {
    /// Whether the change is confirmed or dismissed.
    pub status: ChangeStatus,
    /// The reason, as text.
    #[serde(default)]
    pub note: Option<String>,
}

/// Lists cells with valid runs and the number of their open changes, the cell with the newest run first.
#[utoipa::path(get, path = "/api/v1/trends", tag = "trends", params(ListQuery), operation_id = "list_trends",
    responses((status = 200, body = TrendList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<TrendList>> {
    let (trends, _) = load::list(&state, query.target.as_deref().filter(|target| !target.is_empty())).await?;
    Ok(Json(TrendList { trends }))
}

/// Returns the history of a metric of a cell: its last 200 experiments with valid runs, its versions and its changes.
#[utoipa::path(get, path = "/api/v1/trends/{target}/{cell}", tag = "trends", operation_id = "show_trend",
    params(("target" = String, Path), ("cell" = String, Path), MetricQuery),
    responses((status = 200, body = Trend), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn show(
    _: Read,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
    QueryParams(query): QueryParams<MetricQuery>,
) -> Result<Json<Trend>> {
    Ok(Json(trend(&state, &target, &cell, metric_named(query.metric.as_deref())?).await?))
}

/// Confirms or dismisses a change, identified by the first run after it. The annotation persists as more runs arrive.
#[utoipa::path(put, path = "/api/v1/trends/{target}/{cell}/changes/{run}", tag = "trends", operation_id = "annotate_change",
    params(("target" = String, Path), ("cell" = String, Path), ("run" = String, Path), MetricQuery),
    request_body = AnnotationBody,
    responses((status = 200, body = Trend), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn annotate(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path((target, cell, run)): Path<(String, String, RunId)>,
    QueryParams(query): QueryParams<MetricQuery>,
    Input(body): Input<AnnotationBody>,
) -> Result<Json<Trend>> {
    let metric = metric_named(query.metric.as_deref())?;
    store_annotation(&state, &caller, (&target, &cell), metric, &run, body).await?;
    Ok(Json(trend(&state, &target, &cell, metric).await?))
}

/// Deletes the annotation of a change, which opens it again.
#[utoipa::path(delete, path = "/api/v1/trends/{target}/{cell}/changes/{run}", tag = "trends", operation_id = "delete_annotation",
    params(("target" = String, Path), ("cell" = String, Path), ("run" = String, Path), MetricQuery),
    responses((status = 200, body = Trend), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn reopen(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path((target, cell, run)): Path<(String, String, RunId)>,
    QueryParams(query): QueryParams<MetricQuery>,
) -> Result<Json<Trend>> {
    let metric = metric_named(query.metric.as_deref())?;
    delete_annotation(&state, &caller, (&target, &cell), metric, &run).await?;
    Ok(Json(trend(&state, &target, &cell, metric).await?))
}

/// Lists the trends that the user has pinned to the dashboard, the oldest pin first.
#[utoipa::path(get, path = "/api/v1/pins", tag = "trends", operation_id = "list_pins",
    responses((status = 200, body = PinList), (status = 409, body = ErrorBody, description = "the token belongs to no user")))]
pub async fn pins(Read(caller): Read, State(state): State<AppState>) -> Result<Json<PinList>> {
    Ok(Json(PinList { pins: pins::list(&state, &caller).await? }))
}

/// Pins a trend to the user's dashboard.
#[utoipa::path(put, path = "/api/v1/trends/{target}/{cell}/pin", tag = "trends", operation_id = "pin_trend",
    params(("target" = String, Path), ("cell" = String, Path)),
    responses((status = 200, body = PinList), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the user has 12 pins, or the token belongs to no user")))]
pub async fn pin(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
) -> Result<Json<PinList>> {
    pins::pin(&state, &caller, &target, &cell).await?;
    Ok(Json(PinList { pins: pins::list(&state, &caller).await? }))
}

/// Removes a trend from the user's dashboard.
#[utoipa::path(delete, path = "/api/v1/trends/{target}/{cell}/pin", tag = "trends", operation_id = "unpin_trend",
    params(("target" = String, Path), ("cell" = String, Path)),
    responses((status = 200, body = PinList), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "the token belongs to no user")))]
pub async fn unpin(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path((target, cell)): Path<(String, String)>,
) -> Result<Json<PinList>> {
    pins::unpin(&state, &caller, &target, &cell).await?;
    Ok(Json(PinList { pins: pins::list(&state, &caller).await? }))
}

/// Stores an annotation of a change and replaces an earlier one.
pub(super) async fn store_annotation(
    state: &AppState,
    caller: &Caller,
    (target, cell): (&str, &str),
    metric: Metric,
    run: &RunId,
    body: AnnotationBody,
) -> Result<()> {
    let note = body.note.as_deref().map(checked_note).transpose()?.flatten();
    let trend = trend(state, target, cell, metric).await?;
    let change = change_at(&trend, run)?;
    let before = change.annotation.as_ref().map(|before| &before.run);
    let event = audited(caller, &trend, change, Some(body.status));
    let annotation =
        Annotation { run: change.run.clone(), status: body.status, note, by: caller.name.clone(), at_ms: now_ms() };
    let annotated = AnnotatedChange::new(change, annotation);
    Ok(store::annotate(&state.db.write, &trend.cell, metric.key(), &annotated, before, &event).await?)
}

/// Deletes the annotation of a change. Fails with a 404 if there is none.
pub(super) async fn delete_annotation(
    state: &AppState,
    caller: &Caller,
    (target, cell): (&str, &str),
    metric: Metric,
    run: &RunId,
) -> Result<()> {
    let trend = trend(state, target, cell, metric).await?;
    let missing = || Error::NotFound(format!("annotation of a change at run {:?}", run.as_str()));
    let change = change_at(&trend, run)?;
    let before = change.annotation.as_ref().ok_or_else(missing)?;
    let event = audited(caller, &trend, change, None);
    if store::delete(&state.db.write, &trend.cell, metric.key(), &before.run, &event).await? {
        return Ok(());
    }
    Err(missing())
}

/// The audit entry of an annotation; without a status, of its deletion.
fn audited(caller: &Caller, trend: &Trend, change: &Change, status: Option<ChangeStatus>) -> AuditEvent {
    let status = status.map_or("open", ChangeStatus::as_str);
    let detail = json!({"cell": trend.cell.id, "metric": trend.metric.key(), "run": change.run, "status": status});
    caller.does(Action::ChangeAnnotated, &trend.cell.target).with(detail)
}

/// Finds a change by any run of the first point after it, or by the run of its annotation.
fn change_at<'a>(trend: &'a Trend, run: &RunId) -> Result<&'a Change> {
    let begins_at = |change: &Change| {
        let point = change.at.filter(|_| change.found).and_then(|at| trend.points.get(at));
        change.run == *run || point.is_some_and(|point| point.has(run))
    };
    let was_annotated_at =
        |change: &Change| change.annotation.as_ref().is_some_and(|annotation| annotation.run == *run);
    trend
        .changes
        .iter()
        .filter(|change| !change.is_lost())
        .find(|change| begins_at(change) || was_annotated_at(change))
        .ok_or_else(|| Error::NotFound(format!("change of {} at run {:?}", trend.metric.key(), run.as_str())))
}
