//! Labels and the note on a run's page. Forms patch this part with JavaScript, and redirect to the page without.

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

/// Labels and note of one object. Templates: `runs/_remarks.html` shows them, `runs/_remark_forms.html` changes them;
/// variable `remarks`, roots `#remarks` and `#remark-forms`.
#[derive(Clone, Debug)]
pub struct Remarks {
    /// The base address of its forms, e.g. `/runs/ID`.
    pub place: String,
    /// The address of the list that a label filters.
    list: &'static str,
    /// Labels, sorted alphabetically.
    pub labels: Vec<String>,
    /// The note as Markdown.
    pub note: String,
    scope: Scope,
    /// Whether the surrounding page is live and must not close an open editor.
    pub moves: bool,
}

impl Remarks {
    /// Creates the remarks of a run.
    pub fn for_run(run: &Run, scope: Scope) -> Self {
        Self {
            place: format!("/runs/{}", run.id),
            list: "/runs",
            labels: run.labels.clone(),
            note: run.note.clone().unwrap_or_default(),
            scope,
            moves: !run.has_ended(),
        }
    }

    /// Creates the remarks of another object with labels and a note.
    pub fn at(place: String, list: &'static str, labels: Vec<String>, note: Option<String>, scope: Scope) -> Self {
        Self { place, list, labels, note: note.unwrap_or_default(), scope, moves: false }
    }

    /// Whether the user may change them.
    pub fn may_write(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.note.is_empty()
    }

    /// The note as HTML.
    pub fn rendered(&self) -> Markdown {
        markdown::render(&self.note)
    }

    /// The address of the list filtered by a label.
    pub fn labelled(&self, label: &str) -> String {
        crate::runs::filter::address(self.list, &[("label", label)])
    }
}

/// Both parts alone.
#[derive(Debug, Template)]
#[template(source = r#"{% include "runs/_remarks.html" %}{% include "runs/_remark_forms.html" %}"#, ext = "html")]
struct RemarksPart<'a> {
    remarks: &'a Remarks,
}

/// Returns a patch for requests by script, and a redirect to the page otherwise.
pub fn answer(headers: &HeaderMap, mut remarks: Remarks) -> Result<Response> {
    if !headers.contains_key("datastar-request") {
        return Ok(Redirect::to(&remarks.place).into_response());
    }
    remarks.moves = false;
    let event: Event = live::patch(&RemarksPart { remarks: &remarks })?.into();
    Ok(Sse::new(stream::iter([Ok::<_, Infallible>(event)])).into_response())
}

/// The form of a note.
#[derive(Debug, Deserialize)]
pub struct NoteForm {
    /// Markdown.
    pub note: String,
}

/// The form of a label.
#[derive(Debug, Deserialize)]
pub struct LabelForm {
    /// The label.
    pub label: String,
}

/// `POST /runs/{id}/note`
pub async fn set_note(
    submit: Submit,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
    Form(form): Form<NoteForm>,
) -> Result<Response> {
    let run = lookup::found(&state, &id).await?;
    api::remarks::set_note_of(&state, &run, &form.note).await?;
    respond(&submit, &state, &id, &headers).await
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
    respond(&submit, &state, &id, &headers).await
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
    respond(&submit, &state, &id, &headers).await
}

async fn respond(Submit(caller): &Submit, state: &AppState, id: &RunId, headers: &HeaderMap) -> Result<Response> {
    answer(headers, Remarks::for_run(&lookup::found(state, id).await?, caller.scope))
}
