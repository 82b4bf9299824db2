//! Labels and notes of runs.

use axum::{
    Json,
    extract::{Path, State},
};

use crate::{
    app::{
        error::{ErrorBody, Result},
        ids::RunId,
        input::Input,
        state::AppState,
    },
    auth::caller::Submit,
    runs::{
        lookup::{announce, found},
        model::{NoteText, Run, RunList},
        remarks::{checked_label, checked_note},
        store::remarks,
    },
};

/// Add a label to a run.
#[utoipa::path(put, path = "/api/v1/runs/{id}/labels/{label}", tag = "runs",
    params(("id" = String, Path), ("label" = String, Path, description = "1 to 40 characters")),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(RunId, String)>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    add_label_to(&state, &[run], &label).await?;
    run_list(&state, &id).await
}

/// Remove a label from a run.
#[utoipa::path(delete, path = "/api/v1/runs/{id}/labels/{label}", tag = "runs",
    params(("id" = String, Path), ("label" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody)))]
pub async fn remove_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(RunId, String)>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    remove_label_from(&state, &[run], &label).await?;
    run_list(&state, &id).await
}

/// Set the note of a run; an empty text removes it.
#[utoipa::path(put, path = "/api/v1/runs/{id}/note", tag = "runs", params(("id" = String, Path)),
    request_body = NoteText,
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set_note(
    _: Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    Input(note): Input<NoteText>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    set_note_of(&state, &run, &note.note).await?;
    run_list(&state, &id).await
}

async fn run_list(state: &AppState, id: &RunId) -> Result<Json<RunList>> {
    Ok(Json(RunList { runs: vec![found(state, id).await?] }))
}

/// Adds a label to runs.
pub async fn add_label_to(state: &AppState, runs: &[Run], label: &str) -> Result<()> {
    let label = checked_label(label)?;
    remarks::add_label(&state.db.write, &ids(runs), label).await?;
    for run in runs {
        announce(state, run);
    }
    Ok(())
}

/// Removes a label from runs.
pub async fn remove_label_from(state: &AppState, runs: &[Run], label: &str) -> Result<()> {
    remarks::remove_label(&state.db.write, &ids(runs), label.trim()).await?;
    for run in runs {
        announce(state, run);
    }
    Ok(())
}

/// Sets the note of a run.
pub async fn set_note_of(state: &AppState, run: &Run, text: &str) -> Result<()> {
    let note = checked_note(text)?;
    remarks::set_note(&state.db.write, &run.id, note.as_deref()).await?;
    announce(state, run);
    Ok(())
}

fn ids(runs: &[Run]) -> Vec<RunId> {
    runs.iter().map(|run| run.id.clone()).collect()
}
