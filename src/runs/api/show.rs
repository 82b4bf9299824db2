//! JSON of one run: itself, its summary, and how to cancel it.

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderName, header},
};
use brewbench_agent::wire::now_ms;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::{Read, Submit},
    results::{blob, store::endings},
    runs::{
        lookup::{found, tell},
        model::RunList,
    },
};

/// One run, as a list of one.
#[utoipa::path(get, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<RunList>> {
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}

/// k6's end-of-test JSON of a run, or the text that was imported, verbatim. Of several generators it is their sum, in the
/// form of k6's `--summary-export`, without what can't be added up.
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
    let (kind, ending) = if brewbench_agent::reports::read::is_json(&body) {
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

/// Cancel a run that waits or runs.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    if !endings::cancel(&state.db.write, &id, &format!("cancelled by {}", caller.name), now_ms()).await? {
        return Err(Error::Conflict(format!("the run has ended already: {}", run.phase)));
    }
    tell(&state, &run);
    Ok(Json(RunList { runs: vec![found(&state, &id).await?] }))
}
