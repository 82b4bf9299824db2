//! Deleting runs, the way back, and the clock that ends it.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{
        audit::{Act, deed::Deed},
        caller::{Caller, Submit},
    },
    runs::{
        lookup::{found, tell},
        model::{Run, RunList},
        store::trash,
    },
    web::format::plural,
};

/// How long a deleted run can be brought back.
pub const REGRET: Duration = Duration::from_mins(10);

/// What was deleted before this can't be brought back any more, unix ms.
pub fn regret_since() -> i64 {
    now_ms() - i64::try_from(REGRET.as_millis()).unwrap_or(i64::MAX)
}

/// Delete a run that has ended, with all its figures. It can be brought back for 10 minutes.
#[utoipa::path(delete, path = "/api/v1/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<StatusCode> {
    let run = found(&state, &id).await?;
    delete_all(&state, &caller, &[run]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes runs together; none of them if one has not ended.
pub async fn delete_all(state: &AppState, caller: &Caller, runs: &[Run]) -> Result<()> {
    if let Some(run) = runs.iter().find(|run| !run.has_ended()) {
        return Err(Error::Conflict(format!("the run is {}: cancel it first", run.phase)));
    }
    let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    trash::delete(&state.db.write, &ids, now_ms(), &act(caller, Deed::RunDeleted, &ids)).await?;
    for run in runs {
        tell(state, run);
    }
    Ok(())
}

fn act(caller: &Caller, deed: Deed, ids: &[RunId]) -> Act {
    match ids {
        [id] => caller.does(deed, id.as_str()),
        ids => caller.does(deed, &plural(ids.len(), "run")).with(json!({"runs": ids})),
    }
}

/// Bring back a run that was deleted within the last 10 minutes; the end of its id is enough.
#[utoipa::path(post, path = "/api/v1/runs/{id}/undelete", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn undelete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<RunList>> {
    let ids = trash::deleted_ending(&state.db.read, &id, regret_since()).await?;
    if ids.len() > 1 {
        return Err(Error::Conflict(format!("several deleted runs have ids that end with {id:?}; give more of it")));
    }
    let runs = restore(&state, &caller, &ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound(format!("run {id:?} that was deleted within the last 10 minutes")));
    }
    Ok(Json(RunList { runs }))
}

/// Brings runs back that were deleted not too long ago; gives them.
pub async fn restore(state: &AppState, caller: &Caller, ids: &[RunId]) -> Result<Vec<Run>> {
    let act = act(caller, Deed::RunRestored, ids);
    let runs = trash::restore(&state.db, ids, regret_since(), &act).await?;
    for run in &runs {
        tell(state, run);
    }
    Ok(runs)
}

/// Those of some runs that are there; a 404 if none is.
pub async fn found_all(state: &AppState, ids: &[RunId]) -> Result<Vec<Run>> {
    let runs = crate::runs::store::by_ids(&state.db.rows, ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound("run among those that were named".to_owned()));
    }
    Ok(runs)
}

/// Removes for good what nobody can bring back any more, until the server ends.
pub async fn sweep(state: AppState) {
    let mut clock = interval(Duration::from_secs(30));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            _ = clock.tick() => {}
        }
        if !state.clock.may_delete() {
            continue;
        }
        match trash::purge(&state.db.write, regret_since()).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "deleted runs are gone for good"),
            Err(fault) => tracing::warn!(%fault, "deleted runs could not be removed; trying again"),
        }
    }
}
