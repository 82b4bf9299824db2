//! Cancelling and deleting a run: a question first, then a form.

use axum::{
    extract::{Path, State},
    response::Redirect,
};
use brewbench_agent::wire::Phase;

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    runs::{
        api::{self, show},
        lookup,
        model::Run,
        progress,
    },
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
        return Err(Error::Conflict(format!("the run has ended already: {}", run.phase)));
    }
    let consequences = if run.phase == Phase::Queued {
        vec!["It leaves the queue and is kept in the history as cancelled.".to_owned()]
    } else {
        vec![
            "The agent stops its target and k6 at once; what was measured so far is lost.".to_owned(),
            "The run is kept in the history as cancelled.".to_owned(),
        ]
    };
    Ok(question(&caller, "Cancel this run", &run, consequences))
}

/// `POST /runs/{id}/cancel`
pub async fn cancel(submit: Submit, state: State<AppState>, Path(id): Path<RunId>) -> Result<Redirect> {
    let _ = show::cancel(submit, state, Path(id.clone())).await?;
    Ok(Redirect::to(&format!("/runs/{id}")))
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
        "Its figures, its summary, its logs and its place in the history go.".to_owned(),
        "Comparisons and links that name it will do without it.".to_owned(),
        "It can be brought back for 10 minutes; then it is gone for good.".to_owned(),
    ];
    Ok(question(&caller, "Delete this run", &run, consequences))
}

/// `POST /runs/{id}/delete`
pub async fn delete(submit: Submit, state: State<AppState>, id: Path<RunId>) -> Result<Redirect> {
    api::trash::delete(submit, state, id).await?;
    Ok(Redirect::to("/runs"))
}

fn question(caller: &Caller, deed: &'static str, run: &Run, consequences: Vec<String>) -> Confirm {
    let shell = Shell::signed_in(deed, Section::Runs, &caller.name);
    Confirm { shell, deed, what: progress::describe(run), consequences, back: format!("/runs/{}", run.id) }
}
