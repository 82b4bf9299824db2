//! Labels and notes of runs.

use axum::{
    Json,
    extract::{Path, State},
};

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::caller::Submit,
    runs::{
        api::lookup::{found, tell},
        model::{Note, Run, RunList},
        store::remarks,
    },
};

/// A longer note is a document, and belongs elsewhere.
const LONGEST_NOTE: usize = 20_000;

const LONGEST_LABEL: usize = 40;

/// More labels than this tell nothing any more.
pub const MOST_LABELS: usize = 30;

/// A label as it is kept; fails with a sentence.
pub fn checked_label(text: &str) -> Result<&str> {
    let label = text.trim();
    if label.is_empty() || label.chars().count() > LONGEST_LABEL {
        return Err(Error::Invalid(format!("label: between 1 and {LONGEST_LABEL} characters")));
    }
    if label.chars().any(char::is_control) || !label.chars().any(char::is_alphanumeric) {
        return Err(Error::Invalid("label: letters, digits and signs of one line".to_owned()));
    }
    Ok(label)
}

/// A note as it is kept; none if it is empty.
pub fn checked_note(text: &str) -> Result<Option<String>> {
    let note = text.replace("\r\n", "\n").trim_end().to_owned();
    if note.chars().count() > LONGEST_NOTE {
        return Err(Error::Invalid(format!("note: at most {LONGEST_NOTE} characters")));
    }
    Ok(Some(note).filter(|note| !note.trim().is_empty()))
}

/// Give a run a label.
#[utoipa::path(put, path = "/api/v1/runs/{id}/labels/{label}", tag = "runs",
    params(("id" = String, Path), ("label" = String, Path, description = "1 to 40 characters")),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(String, String)>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    add_label_to(&state, &[run], &label).await?;
    one(&state, &id).await
}

/// Take a label from a run.
#[utoipa::path(delete, path = "/api/v1/runs/{id}/labels/{label}", tag = "runs",
    params(("id" = String, Path), ("label" = String, Path)),
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody)))]
pub async fn remove_label(
    _: Submit,
    State(state): State<AppState>,
    Path((id, label)): Path<(String, String)>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    remove_label_from(&state, &[run], &label).await?;
    one(&state, &id).await
}

/// Write the note of a run; an empty one removes it.
#[utoipa::path(put, path = "/api/v1/runs/{id}/note", tag = "runs", params(("id" = String, Path)),
    request_body = Note,
    responses((status = 200, body = RunList), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set_note(
    _: Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
    Input(note): Input<Note>,
) -> Result<Json<RunList>> {
    let run = found(&state, &id).await?;
    note_on(&state, &run, &note.note).await?;
    one(&state, &id).await
}

async fn one(state: &AppState, id: &str) -> Result<Json<RunList>> {
    Ok(Json(RunList { runs: vec![found(state, id).await?] }))
}

/// Gives runs a label.
pub async fn add_label_to(state: &AppState, runs: &[Run], label: &str) -> Result<()> {
    let label = checked_label(label)?;
    let full = |run: &&Run| run.labels.len() >= MOST_LABELS && !run.labels.iter().any(|known| known == label);
    if let Some(run) = runs.iter().find(full) {
        return Err(Error::Conflict(format!("{} has {MOST_LABELS} labels already", run.target)));
    }
    remarks::add_label(&state.db.write, &ids(runs), label).await?;
    for run in runs {
        tell(state, run);
    }
    Ok(())
}

/// Takes a label from runs.
pub async fn remove_label_from(state: &AppState, runs: &[Run], label: &str) -> Result<()> {
    remarks::remove_label(&state.db.write, &ids(runs), label.trim()).await?;
    for run in runs {
        tell(state, run);
    }
    Ok(())
}

/// Writes the note of a run.
pub async fn note_on(state: &AppState, run: &Run, text: &str) -> Result<()> {
    let note = checked_note(text)?;
    remarks::set_note(&state.db.write, &run.id, note.as_deref()).await?;
    tell(state, run);
    Ok(())
}

fn ids(runs: &[Run]) -> Vec<String> {
    runs.iter().map(|run| run.id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_short_line() {
        assert_eq!(checked_label("  before the rewrite ").ok(), Some("before the rewrite"));
        for bad in ["", "  ", "a\nb", "\u{1b}[31mred", "..", &"x".repeat(41)] {
            assert!(checked_label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_note_that_says_nothing_is_none() {
        assert_eq!(checked_note(" \r\n ").ok(), Some(None));
        assert_eq!(checked_note("one\r\n\r\ntwo\n").ok(), Some(Some("one\n\ntwo".to_owned())));
        assert!(checked_note(&"x".repeat(LONGEST_NOTE + 1)).is_err());
    }
}
