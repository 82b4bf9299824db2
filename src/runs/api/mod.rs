//! JSON of runs.

pub mod environment;
pub mod export;
pub mod generators;
pub mod import;
pub mod limits;
pub mod live;
pub mod logs;
pub mod rejudge;
pub mod remarks;
pub mod series;
pub mod trash;
pub mod views;

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderName, header},
};
use brewbench_agent::wire::{now_ms, summary};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{
    Run, RunList, blob,
    filter::Wanted,
    queries::{self, endings},
};
use crate::{
    auth::{Read, Submit},
    error::{Asked, Error, ErrorBody, Result},
    state::{AppState, RunChanged},
};

const MOST_LISTED: u32 = 1_000;

/// How much of a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Length {
    /// At most so many, up to 1000; 100 unless said.
    limit: Option<u32>,
}

/// Runs: narrowed, ordered, page by page. All of them, the newest first, unless said.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(Wanted, Length),
    responses((status = 200, body = RunList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    Asked(wanted): Asked<Wanted>,
    Asked(length): Asked<Length>,
) -> Result<Json<RunList>> {
    let limit = length.limit.unwrap_or(100).clamp(1, MOST_LISTED);
    let filter = wanted.filter().map_err(Error::Invalid)?;
    Ok(Json(RunList { runs: queries::list(&state.db.read, &filter, limit.into()).await? }))
}

/// One run, as a list of one.
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<RunList>> {
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}

/// The run with this id, or a 404.
pub async fn found(state: &AppState, id: &str) -> Result<Run> {
    queries::one(&state.db.read, id).await?.ok_or_else(|| Error::NotFound(format!("run {id:?}")))
}

/// k6's end-of-test JSON of a run, or the text that was imported, verbatim. Of several generators it is their sum, in the
/// form of k6's `--summary-export`, without what can't be added up.
#[utoipa::path(get, path = "/api/v1/runs/{id}/summary", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, content_type = "application/json"), (status = 404, body = ErrorBody)))]
pub async fn summary(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<([(HeaderName, String); 2], Vec<u8>)> {
    found(&state, &id).await?;
    let body = queries::summary(&state.db.read, &id).await?;
    let body = body.ok_or_else(|| Error::NotFound(format!("summary of run {id:?}")))?;
    let body = blob::unpack(&body).map_err(Error::internal)?;
    let (kind, ending) =
        if summary::is_json(&body) { ("application/json", "json") } else { ("text/plain; charset=utf-8", "txt") };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}.{ending}\"", id.replace(['"', '\\'], ""))),
    ];
    Ok((headers, body))
}

/// Cancel a run that waits or runs.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    if !endings::cancel(&state.db.write, &id, &format!("cancelled by {}", caller.name), now_ms()).await? {
        return Err(Error::Conflict(format!("the run has ended already: {}", run.phase)));
    }
    tell(&state, &run);
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}

/// Tells everybody who watches that a run changed.
pub fn tell(state: &AppState, run: &Run) {
    let experiment = run.experiment.as_deref().and_then(|id| Uuid::parse_str(id).ok());
    if let Ok(run) = Uuid::parse_str(&run.id) {
        state.events.tell(RunChanged { run, experiment });
    }
}
