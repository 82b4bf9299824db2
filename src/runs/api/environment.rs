//! JSON of environments: machine, settings and target of a run.

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
    results::{
        blob,
        environment::{difference::EnvironmentDifference, facts::RunEnvironment},
        evidence::Evidence,
    },
    runs::lookup::found,
};

/// Return the environment of a run: machine, settings and target. Without facts if nothing is known.
#[utoipa::path(get, path = "/api/v1/runs/{id}/environment", tag = "runs", operation_id = "environment", params(("id" = String, Path)),
    responses((status = 200, body = RunEnvironment), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<RunEnvironment>> {
    Ok(Json(read(&state, &id).await?))
}

/// The other run of a comparison.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Other {
    /// Id of the run to compare with.
    #[param(value_type = String)]
    with: RunId,
}

/// Compare the environments of two runs: the differences, and whether they matter.
#[utoipa::path(get, path = "/api/v1/runs/{id}/environment/difference", tag = "runs",
    params(("id" = String, Path), Other),
    responses((status = 200, body = EnvironmentDifference), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn difference(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(other): QueryParams<Other>,
) -> Result<Json<EnvironmentDifference>> {
    Ok(Json(EnvironmentDifference::new(read(&state, &id).await?, read(&state, &other.with).await?)))
}

/// Returns the environment of the run with this id, or a 404.
pub async fn read(state: &AppState, id: &RunId) -> Result<RunEnvironment> {
    let run = found(state, id).await?;
    let evidence = evidence(state, &run.id).await?;
    Ok(RunEnvironment::new(&run, evidence.as_ref()))
}

/// Returns the agent's evidence of a run, if there is any.
pub async fn evidence(state: &AppState, id: &RunId) -> Result<Option<Evidence>> {
    let Some(body) = crate::runs::store::evidence(&state.db.read, id).await? else { return Ok(None) };
    let body = blob::unpack(&body).map_err(Error::internal)?;
    serde_json::from_slice(&body).map(Some).map_err(Error::internal)
}
