//! Labels and the note of an experiment: JSON API and forms.

use axum::{
    Form, Json,
    extract::{Path, State},
    http::HeaderMap,
    response::Response,
};

use crate::{
    app::{
        error::{ErrorBody, Result},
        ids::ExperimentId,
        input::Input,
        state::AppState,
    },
    auth::{
        caller::{Caller, Submit},
        model::Scope,
    },
    experiments::{
        self,
        lookup::{find, find_with_runs},
        model::{Experiment, ExperimentWithRuns},
    },
    runs::{
        model::NoteText,
        pages::remarks::{LabelForm, NoteForm, Remarks, answer},
        remarks::{checked_label, checked_note},
    },
};

/// Adds a label to an experiment.
#[utoipa::path(put, path = "/api/v1/experiments/{id}/labels/{label}", tag = "experiments",
    params(("id" = String, Path), ("label" = String, Path, description = "1 to 40 characters")),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn add_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(ExperimentId, String)>,
) -> Result<Json<ExperimentWithRuns>> {
    add(&state, &id, &label).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

/// Removes a label from an experiment.
#[utoipa::path(delete, path = "/api/v1/experiments/{id}/labels/{label}", tag = "experiments",
    params(("id" = String, Path), ("label" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn remove_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(ExperimentId, String)>,
) -> Result<Json<ExperimentWithRuns>> {
    remove(&state, &id, &label).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

/// Sets the note of an experiment; an empty note removes it.
#[utoipa::path(put, path = "/api/v1/experiments/{id}/note", tag = "experiments", params(("id" = String, Path)),
    request_body = NoteText,
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn set_note(
    _: Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    Input(note): Input<NoteText>,
) -> Result<Json<ExperimentWithRuns>> {
    write(&state, &id, &note.note).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

/// `POST /experiments/{id}/note`
pub async fn post_note(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    headers: HeaderMap,
    Form(form): Form<NoteForm>,
) -> Result<Response> {
    write(&state, &id, &form.note).await?;
    respond(&caller, &state, &id, &headers).await
}

/// `POST /experiments/{id}/labels`
pub async fn post_label(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    headers: HeaderMap,
    Form(form): Form<LabelForm>,
) -> Result<Response> {
    add(&state, &id, &form.label).await?;
    respond(&caller, &state, &id, &headers).await
}

/// `POST /experiments/{id}/labels/remove`
pub async fn post_removal(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    headers: HeaderMap,
    Form(form): Form<LabelForm>,
) -> Result<Response> {
    remove(&state, &id, &form.label).await?;
    respond(&caller, &state, &id, &headers).await
}

/// Returns labels and note for the page of an experiment.
pub fn of_experiment(experiment: &Experiment, scope: Scope) -> Remarks {
    let Experiment { id, labels, note, .. } = experiment;
    Remarks::at(format!("/experiments/{id}"), "/experiments", labels.clone(), note.clone(), scope)
}

async fn respond(caller: &Caller, state: &AppState, id: &ExperimentId, headers: &HeaderMap) -> Result<Response> {
    answer(headers, of_experiment(&find(state, id).await?, caller.scope))
}

async fn add(state: &AppState, id: &ExperimentId, label: &str) -> Result<()> {
    let label = checked_label(label)?;
    find(state, id).await?;
    Ok(experiments::store::add_label(&state.db.write, id, label).await?)
}

async fn remove(state: &AppState, id: &ExperimentId, label: &str) -> Result<()> {
    find(state, id).await?;
    Ok(experiments::store::remove_label(&state.db.write, id, label.trim()).await?)
}

async fn write(state: &AppState, id: &ExperimentId, text: &str) -> Result<()> {
    let note = checked_note(text)?;
    find(state, id).await?;
    Ok(experiments::store::set_note(&state.db.write, id, note.as_deref()).await?)
}
