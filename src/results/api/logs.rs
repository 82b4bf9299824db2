//! JSON of logs.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    results::logs::{MAX_GREP, RunLogs},
    runs::{api::environment::evidence, lookup::found},
};

/// The search in logs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogsQuery {
    /// Return only lines that contain this text, in upper or lower case, with their numbers.
    grep: Option<String>,
}

/// The last output of a run's target and load generators.
#[utoipa::path(get, path = "/api/v1/runs/{id}/logs", tag = "runs", operation_id = "logs", params(("id" = String, Path), LogsQuery),
    responses((status = 200, body = RunLogs), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn show(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(LogsQuery { grep }): QueryParams<LogsQuery>,
) -> Result<Json<RunLogs>> {
    if grep.as_ref().is_some_and(|text| text.chars().count() > MAX_GREP) {
        return Err(Error::Invalid(format!("grep: must have at most {MAX_GREP} characters")));
    }
    let run = found(&state, &id).await?;
    let evidence = evidence(&state, &run.id).await?;
    let logs = RunLogs::new(&run, evidence.as_ref());
    Ok(Json(match grep.filter(|text| !text.is_empty()) {
        Some(text) => logs.grep(&text),
        None => logs,
    }))
}
