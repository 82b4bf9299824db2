//! JSON of one run and its summary, and cancelling a run.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderName, header},
};
use brewbench_wire::now_ms;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::{Read, Submit},
    results::{blob, store::endings},
    runs::{
        lookup::{announce, found},
        model::RunList,
    },
};

/// Return one run, as a list with one entry.
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<RunList>> {
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}

/// Download the summary of a run: k6's end-of-test JSON, or the imported text, verbatim.
/// For a distributed run: the merged summary as by k6's `--summary-export`, without metrics that can't be merged.
#[utoipa::path(get, path = "/api/v1/runs/{id}/summary", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, content_type = "application/json"), (status = 404, body = ErrorBody)))]
pub async fn summary(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<([(HeaderName, String); 2], Vec<u8>)> {
    found(&state, &id).await?;
    let body = crate::runs::store::summary(&state.db.read, &id).await?;
    let body = body.ok_or_else(|| Error::NotFound(format!("summary of run {:?}", id.as_str())))?;
    let body = blob::unpack(&body).map_err(Error::internal)?;
    let (kind, ending) = if brewbench_wire::reports::read::is_json(&body) {
        ("application/json", "json")
    } else {
        ("text/plain; charset=utf-8", "txt")
    };
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"{}.{ending}\"", id.as_str().replace(['"', '\\'], "")),
        ),
    ];
    Ok((headers, body))
}

/// Cancel a queued or running run.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    let cancelled = endings::cancel(&state.db.write, &id, &format!("cancelled by {}", caller.name), now_ms()).await?;
    if cancelled.is_empty() {
        return Err(Error::Conflict(format!("the run has already ended: {}", run.phase)));
    }
    for id in &cancelled {
        announce(&state, &found(&state, id).await?);
    }
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}
