//! Deletes and restores runs, and purges deleted runs after a grace period.

use std::time::Duration;

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, action::Action},
        caller::{Caller, Submit},
    },
    runs::{
        lookup::{announce, found},
        model::{Run, RunList},
        store::trash,
    },
    web::format::plural,
};

/// How long a deleted run can be restored.
pub const GRACE: Duration = Duration::from_mins(10);

/// Returns since when deleted runs can still be restored, unix ms.
pub fn restorable_since() -> i64 {
    now_ms() - i64::try_from(GRACE.as_millis()).unwrap_or(i64::MAX)
}

/// Delete a run that has ended, with all its data. It can be restored for 10 minutes.
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

/// Deletes runs in one transaction; none if one of them has not ended.
pub async fn delete_all(state: &AppState, caller: &Caller, runs: &[Run]) -> Result<()> {
    if let Some(run) = runs.iter().find(|run| !run.has_ended()) {
        return Err(Error::Conflict(format!("the run is {}: cancel it first", run.phase)));
    }
    let ids: Vec<RunId> = runs.iter().map(|run| run.id.clone()).collect();
    trash::delete(&state.db.write, &ids, now_ms(), &act(caller, Action::RunDeleted, &ids)).await?;
    for run in runs {
        announce(state, run);
    }
    Ok(())
}

fn act(caller: &Caller, action: Action, ids: &[RunId]) -> AuditEvent {
    match ids {
        [id] => caller.does(action, id.as_str()),
        ids => caller.does(action, &plural(ids.len(), "run")).with(json!({"runs": ids})),
    }
}

/// Restore a run that was deleted within the last 10 minutes; the end of its id is enough.
#[utoipa::path(post, path = "/api/v1/runs/{id}/undelete", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn undelete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<RunList>> {
    let ids = trash::deleted_ending(&state.db.read, &id, restorable_since()).await?;
    if ids.len() > 1 {
        return Err(Error::Conflict(format!("several deleted runs have ids ending in {id:?}; use more characters")));
    }
    let runs = restore(&state, &caller, &ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound(format!("run {id:?} that was deleted within the last 10 minutes")));
    }
    Ok(Json(RunList { runs }))
}

/// Restores recently deleted runs and returns them.
pub async fn restore(state: &AppState, caller: &Caller, ids: &[RunId]) -> Result<Vec<Run>> {
    let act = act(caller, Action::RunRestored, ids);
    let runs = trash::restore(&state.db, ids, restorable_since(), &act).await?;
    for run in &runs {
        announce(state, run);
    }
    Ok(runs)
}

/// Returns the existing runs among these ids, or a 404 if there are none.
pub async fn found_all(state: &AppState, ids: &[RunId]) -> Result<Vec<Run>> {
    let runs = crate::runs::store::by_ids(&state.db.rows, ids).await?;
    if runs.is_empty() {
        return Err(Error::NotFound("run with any of these ids".to_owned()));
    }
    Ok(runs)
}

/// Purges runs that can no longer be restored, until the server shuts down.
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
        match trash::purge(&state.db.write, restorable_since()).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "purged deleted runs"),
            Err(fault) => tracing::warn!(%fault, "failed to purge deleted runs; retrying"),
        }
    }
}
