//! Labels and the note on a run's page. Without a script its forms lead back to the page; with it the part is patched.

use std::convert::Infallible;

use askama::Template;
use axum::{
    Form,
    extract::{Path, State},
    http::HeaderMap,
    response::{IntoResponse, Redirect, Response, Sse, sse::Event},
};
use futures_util::stream;
use serde::Deserialize;

use crate::{
    app::{error::Result, ids::RunId, state::AppState},
    auth::{caller::Submit, model::Scope},
    runs::{api, lookup, model::Run},
    web::{
        live,
        markdown::{self, Markdown},
    },
};

/// What people say of one thing. Template: `runs/_remarks.html`, variable `remarks`; its root is `#remarks`.
#[derive(Clone, Debug)]
pub struct Remarks {
    /// Where its forms post to, e.g. `/runs/ID`.
    pub place: String,
    /// Where a label leads to: the list at this address, narrowed to it.
    list: &'static str,
    /// By the alphabet.
    pub labels: Vec<String>,
    /// As it was written.
    pub note: String,
    scope: Scope,
    /// The page around it is sent anew as it changes, and must not close an open editor.
    pub moves: bool,
}

impl Remarks {
    /// Of a run.
    pub fn of(run: &Run, scope: Scope) -> Self {
        Self {
            place: format!("/runs/{}", run.id),
            list: "/runs",
            labels: run.labels.clone(),
            note: run.note.clone().unwrap_or_default(),
            scope,
            moves: !run.has_ended(),
        }
    }

    /// Of something else that has labels and a note.
    pub fn at(place: String, list: &'static str, labels: Vec<String>, note: Option<String>, scope: Scope) -> Self {
        Self { place, list, labels, note: note.unwrap_or_default(), scope, moves: false }
    }

    /// Whether who looks may change them.
    pub fn may_write(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// The note as HTML.
    pub fn rendered(&self) -> Markdown {
        markdown::render(&self.note)
    }

    /// The list narrowed to a label.
    pub fn labelled(&self, label: &str) -> String {
        crate::runs::filter::address(self.list, &[("label", label)])
    }
}

/// The part alone.
#[derive(Debug, Template)]
#[template(path = "runs/_remarks.html")]
struct RemarksPart<'a> {
    remarks: &'a Remarks,
}

/// The part for who asked by script, the page for everybody else.
pub fn answer(headers: &HeaderMap, mut remarks: Remarks) -> Result<Response> {
    if !headers.contains_key("datastar-request") {
        return Ok(Redirect::to(&remarks.place).into_response());
    }
    remarks.moves = false;
    let event: Event = live::patch(&RemarksPart { remarks: &remarks })?.into();
    Ok(Sse::new(stream::iter([Ok::<_, Infallible>(event)])).into_response())
}

/// A note as a form sends it.
#[derive(Debug, Deserialize)]
pub struct NoteForm {
    /// Markdown.
    pub note: String,
}

/// A label as a form sends it.
#[derive(Debug, Deserialize)]
pub struct LabelForm {
    /// The label.
    pub label: String,
}

/// `POST /runs/{id}/note`
pub async fn note(
    submit: Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
    Form(form): Form<NoteForm>,
) -> Result<Response> {
    let run = lookup::found(&state, &id).await?;
    api::remarks::note_on(&state, &run, &form.note).await?;
    again(&submit, &state, &id, &headers).await
}

/// `POST /runs/{id}/labels`
pub async fn add_label(
    submit: Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
    Form(form): Form<LabelForm>,
) -> Result<Response> {
    let run = lookup::found(&state, &id).await?;
    api::remarks::add_label_to(&state, &[run], &form.label).await?;
    again(&submit, &state, &id, &headers).await
}

/// `POST /runs/{id}/labels/remove`
pub async fn remove_label(
    submit: Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
    Form(form): Form<LabelForm>,
) -> Result<Response> {
    let run = lookup::found(&state, &id).await?;
    api::remarks::remove_label_from(&state, &[run], &form.label).await?;
    again(&submit, &state, &id, &headers).await
}

async fn again(Submit(caller): &Submit, state: &AppState, id: &RunId, headers: &HeaderMap) -> Result<Response> {
    answer(headers, Remarks::of(&lookup::found(state, id).await?, caller.scope))
}
