//! JSON of the generators of a run.

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
    distributed::shares::GeneratorList,
    results::{evidence::Evidence, store::parts},
    runs::{api::environment::evidence, lookup::found, model::Run},
};

/// Returns each generator's share of a distributed run. A run on one machine has no generators.
#[utoipa::path(get, path = "/api/v1/runs/{id}/generators", tag = "runs", operation_id = "generators", params(("id" = String, Path)),
    responses((status = 200, body = GeneratorList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<RunId>) -> Result<Json<GeneratorList>> {
    let run = found(&state, &id).await?;
    let evidence = evidence(&state, &run.id).await?;
    Ok(Json(read(&state, &run, evidence.as_ref()).await?))
}

/// Returns the shares of a run, from its evidence if it has a result.
pub async fn read(state: &AppState, run: &Run, evidence: Option<&Evidence>) -> Result<GeneratorList> {
    let states =
        if run.spec.generators.is_empty() { Vec::new() } else { parts::states(&state.db.read, &run.id).await? };
    Ok(GeneratorList::new(run, evidence, &states))
}
