//! JSON of the queue.

use axum::{
    Extension, Json,
    extract::{Path, State},
};

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Caller, Read, Submit},
    },
    dispatch::queue::{list::look, model::QueueList},
    fleet::presence::Presence,
    runs::lookup,
};

/// What waits, in the order in which it will be done: for whom, why, and in how many seconds it begins, where that can be
/// told.
#[utoipa::path(get, path = "/api/v1/queue", tag = "queue", responses((status = 200, body = QueueList)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Json<QueueList>> {
    Ok(Json(look(&state, &presence).await?))
}

/// Put a run before all others that wait.
#[utoipa::path(post, path = "/api/v1/runs/{id}/next", tag = "queue", params(("id" = String, Path)),
    responses((status = 200, body = QueueList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn put_first(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(id): Path<RunId>,
) -> Result<Json<QueueList>> {
    run_next(&state, &id, &caller).await?;
    Ok(Json(look(&state, &presence).await?))
}

/// Puts a run first.
pub async fn run_next(state: &AppState, id: &RunId, by: &Caller) -> Result<()> {
    let run = lookup::found(state, id).await?;
    if !crate::dispatch::store::queue::put_first(&state.db.write, id, &by.does(Deed::RunPutFirst, id.as_str())).await? {
        return Err(Error::Conflict(format!("the run does not wait: it is {}", run.phase.words())));
    }
    lookup::tell(state, &run);
    state.work.notify_one();
    Ok(())
}

/// Put all runs of an experiment that wait before all others, in their own order.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/next", tag = "queue", params(("id" = String, Path)),
    responses((status = 200, body = QueueList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn put_experiment_first(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<QueueList>> {
    experiment_next(&state, &id, &caller).await?;
    Ok(Json(look(&state, &presence).await?))
}

/// Puts all of an experiment first.
pub async fn experiment_next(state: &AppState, id: &ExperimentId, by: &Caller) -> Result<()> {
    crate::experiments::lookup::found(state, id).await?;
    if !crate::dispatch::store::queue::put_all_first(&state.db.write, id, &by.does(Deed::RunPutFirst, id.as_str()))
        .await?
    {
        return Err(Error::Conflict("no run of the experiment waits".to_owned()));
    }
    // One is enough for whoever watches: everything is read anew.
    if let Some(run) = crate::runs::store::of_experiment(&state.db.rows, id).await?.first() {
        lookup::tell(state, run);
    }
    state.work.notify_one();
    Ok(())
}
