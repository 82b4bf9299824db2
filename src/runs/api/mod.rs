//! JSON of runs.

pub mod environment;
pub mod export;
pub mod limits;
pub mod live;
pub mod rejudge;
pub mod remarks;
pub mod series;
pub mod trash;
pub mod views;

use axum::{
    Json,
    body::Bytes,
    extract::{Path, State, rejection::BytesRejection},
    http::{HeaderName, StatusCode, header},
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::{
    Run, RunList, RunSize, blob,
    filter::Wanted,
    ingest::{self, ImportAbout},
    queries::{self, endings},
};
use crate::{
    auth::{Read, Submit, api::checked_name},
    catalog::{self, find_size},
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

/// k6's end-of-test JSON of a run, verbatim.
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
    let headers = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{}.json\"", id.replace(['"', '\\'], ""))),
    ];
    Ok((headers, blob::unpack(&body).map_err(Error::internal)?))
}

/// What is known of a summary besides itself.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// Name of the target.
    target: String,
    /// Its version.
    version: Option<String>,
    /// Name of a machine size, or short as `2/4GiB`.
    size: Option<String>,
    /// What was run.
    scenario: Option<String>,
    /// Which repetition, from 1.
    repetition: Option<u32>,
}

/// Import one of k6's end-of-test JSON files, as it is: `handleSummary` data, `--summary-export`, or the
/// machine-readable summary.
#[utoipa::path(post, path = "/api/v1/runs/import", tag = "runs", params(ImportQuery),
    request_body(content_type = "application/json", description = "the file, verbatim"),
    responses((status = 201, body = RunList), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn import(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Asked(query): Asked<ImportQuery>,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<RunList>)> {
    let limit = state.config.max_summary_bytes;
    let too_large = |_| Error::TooLarge(format!("the file is larger than the limit of {limit} bytes"));
    let bytes = bytes.map_err(too_large)?;
    let size = match query.size {
        None => None,
        Some(meant) => {
            let sizes = catalog::queries::sizes(&state.db.read).await?;
            let size =
                find_size(&sizes, &meant).ok_or_else(|| Error::Invalid(format!("size: there is no {meant:?}")))?;
            Some(RunSize { name: size.name.clone(), vcpus: size.vcpus, memory_bytes: size.memory_bytes })
        }
    };
    let plain = |text: Option<String>| text.map(|text| checked_name(&text).map(str::to_owned)).transpose();
    let about = ImportAbout {
        target: checked_name(&query.target)?.to_owned(),
        version: plain(query.version)?,
        size,
        scenario: plain(query.scenario)?,
        repetition: query.repetition.unwrap_or(1).max(1),
    };
    let run = ingest::import(&state.db, about, &bytes, &caller.name).await?;
    tell(&state, &run);
    Ok((StatusCode::CREATED, Json(RunList { runs: vec![run] })))
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
