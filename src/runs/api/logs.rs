//! JSON of logs.

use axum::{
    Json,
    extract::{Path, State},
};

use crate::{
    auth::Read,
    error::{ErrorBody, Result},
    runs::{
        api::{environment::evidence, found},
        logs::RunLogs,
    },
    state::AppState,
};

/// The last output of a run's target and load generators.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunLogs), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<RunLogs>> {
    let run = found(&state, &id).await?;
    let evidence = evidence(&state, &run.id).await?;
    Ok(Json(RunLogs::new(&run, evidence.as_ref())))
}
