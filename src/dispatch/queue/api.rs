//! JSON API of the queue.

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
        audit::action::Action,
        caller::{Caller, Read, Submit},
    },
    dispatch::queue::{list::load_queue, model::QueueList},
    fleet::presence::Presence,
    runs::lookup,
};

/// Lists the waiting runs in queue order, with the agents and the reason that each waits for, and its estimated start.
#[utoipa::path(get, path = "/api/v1/queue", tag = "queue", responses((status = 200, body = QueueList)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Json<QueueList>> {
    Ok(Json(load_queue(&state, &presence).await?))
}

/// Moves a run to the front of the queue.
#[utoipa::path(post, path = "/api/v1/runs/{id}/next", tag = "queue", params(("id" = String, Path)),
    responses((status = 200, body = QueueList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn put_first(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(id): Path<RunId>,
) -> Result<Json<QueueList>> {
    run_next(&state, &id, &caller).await?;
    Ok(Json(load_queue(&state, &presence).await?))
}

/// Moves a run to the front of the queue.
pub async fn run_next(state: &AppState, id: &RunId, by: &Caller) -> Result<()> {
    let run = lookup::found(state, id).await?;
    if !crate::dispatch::store::queue::put_first(&state.db.write, id, &by.does(Action::RunPutFirst, id.as_str()))
        .await?
    {
        return Err(Error::Conflict(format!("the run is not waiting: it is {}", run.phase.describe())));
    }
    lookup::announce(state, &run);
    state.work.notify_one();
    Ok(())
}

/// Moves all waiting runs of an experiment to the front of the queue, in their own order.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/next", tag = "queue", params(("id" = String, Path)),
    responses((status = 200, body = QueueList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn put_experiment_first(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<QueueList>> {
    experiment_next(&state, &id, &caller).await?;
    Ok(Json(load_queue(&state, &presence).await?))
}

/// Moves all waiting runs of an experiment to the front of the queue.
pub async fn experiment_next(state: &AppState, id: &ExperimentId, by: &Caller) -> Result<()> {
    crate::experiments::lookup::find(state, id).await?;
    if !crate::dispatch::store::queue::put_all_first(&state.db.write, id, &by.does(Action::RunPutFirst, id.as_str()))
        .await?
    {
        return Err(Error::Conflict("no run of the experiment is waiting".to_owned()));
    }
    // One event is enough: listeners read everything again.
    if let Some(run) = crate::runs::store::of_experiment(&state.db.rows, id).await?.first() {
        lookup::announce(state, run);
    }
    state.work.notify_one();
    Ok(())
}
