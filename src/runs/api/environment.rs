//! JSON of environments.

use axum::{
    Json,
    extract::{Path, State},
};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    results::{
        blob,
        environment::{difference::EnvironmentDifference, facts::RunEnvironment},
        evidence::Evidence,
    },
    runs::lookup::found,
};

/// Under what a run was measured: machine, settings, target. Without facts where nothing is known.
#[utoipa::path(get, path = "/api/v1/runs/{id}/environment", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunEnvironment), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<RunEnvironment>> {
    Ok(Json(read(&state, &id).await?))
}

/// The other of two runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Other {
    /// Id of the run to hold it against.
    #[param(value_type = String)]
    with: RunId,
}

/// In what the environments of two runs differ, and whether that matters.
#[utoipa::path(get, path = "/api/v1/runs/{id}/environment/difference", tag = "runs",
    params(("id" = String, Path), Other),
    responses((status = 200, body = EnvironmentDifference), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn difference(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    Asked(other): Asked<Other>,
) -> Result<Json<EnvironmentDifference>> {
    Ok(Json(EnvironmentDifference::new(read(&state, &id).await?, read(&state, &other.with).await?)))
}

/// The environment of the run with this id, or a 404.
pub async fn read(state: &AppState, id: &RunId) -> Result<RunEnvironment> {
    let run = found(state, id).await?;
    let evidence = evidence(state, &run.id).await?;
    Ok(RunEnvironment::new(&run, evidence.as_ref()))
}

/// What the agent saw of a run, if it has told that.
pub async fn evidence(state: &AppState, id: &RunId) -> Result<Option<Evidence>> {
    let Some(body) = crate::runs::store::evidence(&state.db.read, id).await? else { return Ok(None) };
    let body = blob::unpack(&body).map_err(Error::internal)?;
    serde_json::from_slice(&body).map(Some).map_err(Error::internal)
}
