//! JSON of logs.

use axum::{
    Json,
    extract::{Path, State},
};

use crate::{
    app::{
        error::{ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    results::logs::RunLogs,
    runs::{api::environment::evidence, lookup::found},
};

/// The last output of a run's target and load generators.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunLogs), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<RunLogs>> {
    let run = found(&state, &id).await?;
    let evidence = evidence(&state, &run.id).await?;
    Ok(Json(RunLogs::new(&run, evidence.as_ref())))
}
