//! Cancels and deletes a run, after a confirmation page.

use axum::extract::{Path, State};
use brewbench_wire::Phase;

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    runs::{lookup, model::Run, progress},
    web::{
        confirm::Confirm,
        shell::{Section, Shell},
    },
};

/// `GET /runs/{id}/cancel`
pub async fn ask_cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<Confirm> {
    let run = lookup::found(&state, &id).await?;
    if run.has_ended() {
        return Err(Error::Conflict(format!("the run has already ended: {}", run.phase)));
    }
    let consequences = if run.phase == Phase::Queued {
        vec!["The run leaves the queue and stays in the history as cancelled.".to_owned()]
    } else {
        vec![
            "The agent stops target and load generator immediately; measurements so far are lost.".to_owned(),
            "The run stays in the history as cancelled.".to_owned(),
        ]
    };
    Ok(confirm(&caller, "Cancel this run", &run, consequences))
}

/// `GET /runs/{id}/delete`
pub async fn ask_delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
) -> Result<Confirm> {
    let run = lookup::found(&state, &id).await?;
    if !run.has_ended() {
        return Err(Error::Conflict(format!("the run is {}: cancel it first", run.phase)));
    }
    let consequences = vec![
        "Its metrics, summary and logs are deleted, and it disappears from the history.".to_owned(),
        "Comparisons and links that include it no longer show it.".to_owned(),
        "You can restore it for 10 minutes; after that it is deleted permanently.".to_owned(),
    ];
    Ok(confirm(&caller, "Delete this run", &run, consequences))
}

fn confirm(caller: &Caller, action: &'static str, run: &Run, consequences: Vec<String>) -> Confirm {
    let shell = Shell::signed_in(action, Section::Runs, &caller.name);
    Confirm { shell, action, what: progress::describe(run), consequences, back: format!("/runs/{}", run.id) }
}
