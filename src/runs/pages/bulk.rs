//! Bulk actions on ticked runs: label, delete and undelete.

use askama::Template;
use askama_web::WebTemplate;
use axum::{Form, extract::State, response::Redirect};
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::{RunId, joined, listed},
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    runs::{
        api::{
            remarks,
            trash::{self, found_all},
        },
        filter::address,
        model::Run,
        progress,
    },
    web::{
        confirm::Confirm,
        format::plural,
        shell::{Section, Shell},
    },
};

/// Maximum number of runs listed individually.
const MAX_NAMED: usize = 12;

/// The ticked runs of the history.
#[derive(Debug, Deserialize)]
pub struct SelectedRuns {
    /// Ids of runs.
    #[serde(default)]
    runs: Vec<String>,
}

impl SelectedRuns {
    async fn read(&self, state: &AppState) -> Result<Vec<Run>> {
        let ids = listed(&self.runs);
        if ids.is_empty() {
            return Err(Error::Invalid("no run is selected; select runs in the history first".to_owned()));
        }
        found_all(state, &ids).await
    }
}

/// The address of the history with the same runs ticked.
fn back(runs: &[Run]) -> String {
    let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    address("/runs", &[("runs", &joined(&ids))])
}

/// `GET /runs/delete?runs=…`
pub async fn ask_delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(ticked): QueryParams<SelectedRuns>,
) -> Result<Confirm> {
    let runs = ticked.read(&state).await?;
    if let Some(run) = runs.iter().find(|run| !run.has_ended()) {
        return Err(Error::Conflict(format!("{}: cancel it first, or deselect it", progress::describe(run))));
    }
    Ok(confirm(&caller, &runs))
}

fn confirm(caller: &Caller, runs: &[Run]) -> Confirm {
    let mut consequences: Vec<String> = runs.iter().take(MAX_NAMED).map(progress::describe).collect();
    if runs.len() > MAX_NAMED {
        consequences.push(format!("and {} more", runs.len() - MAX_NAMED));
    }
    consequences.push("Their metrics, summaries and logs are deleted, and comparisons no longer show them.".to_owned());
    consequences.push("You can restore them for 10 minutes; after that they are deleted permanently.".to_owned());
    let action = "Delete these runs";
    let shell = Shell::signed_in(action, Section::Runs, &caller.name);
    Confirm { shell, action, what: plural(runs.len(), "run"), consequences, back: back(runs) }
}

/// `POST /runs/delete?runs=…`
pub async fn delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(ticked): QueryParams<SelectedRuns>,
) -> Result<Redirect> {
    let runs = ticked.read(&state).await?;
    trash::delete_all(&state, &caller, &runs).await?;
    Ok(Redirect::to("/runs"))
}

/// Identifies a deletion.
#[derive(Debug, Deserialize)]
pub struct Deleted {
    /// Time of the deletion, unix ms.
    at: i64,
}

/// `POST /runs/undelete?at=…`
pub async fn undelete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(deleted): QueryParams<Deleted>,
) -> Result<Redirect> {
    let ids = crate::runs::store::trash::deleted_at(&state.db.read, deleted.at).await?;
    if trash::restore(&state, &caller, &ids).await?.is_empty() {
        return Err(Error::Conflict("these runs are already restored or permanently deleted".to_owned()));
    }
    Ok(Redirect::to("/runs"))
}

/// The page to add or remove a label.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "runs/label.html")]
pub struct LabelPage {
    shell: Shell,
    ids: Vec<RunId>,
    named: Vec<String>,
    unnamed: usize,
    /// Labels of at least one of the runs.
    labels: Vec<String>,
    back: String,
}

/// `GET /runs/label?runs=…`
pub async fn ask_label(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(ticked): QueryParams<SelectedRuns>,
) -> Result<LabelPage> {
    let runs = ticked.read(&state).await?;
    let mut labels: Vec<String> = runs.iter().flat_map(|run| run.labels.clone()).collect();
    labels.sort();
    labels.dedup();
    Ok(LabelPage {
        shell: Shell::signed_in("Label runs", Section::Runs, &caller.name),
        ids: runs.iter().map(|run| run.id.clone()).collect(),
        named: runs.iter().take(MAX_NAMED).map(progress::describe).collect(),
        unnamed: runs.len().saturating_sub(MAX_NAMED),
        labels,
        back: back(&runs),
    })
}

/// The form to add or remove a label.
#[derive(Debug, Deserialize)]
pub struct BulkLabelForm {
    /// Ids of runs, comma-separated.
    runs: String,
    /// The label to add.
    #[serde(default)]
    label: String,
    /// The label to remove, if its button was pressed.
    remove: Option<String>,
}

/// `POST /runs/label`
pub async fn label(_: Submit, State(state): State<AppState>, Form(labelled): Form<BulkLabelForm>) -> Result<Redirect> {
    let runs = SelectedRuns { runs: vec![labelled.runs] }.read(&state).await?;
    match labelled.remove {
        Some(label) => remarks::remove_label_from(&state, &runs, &label).await?,
        None => remarks::add_label_to(&state, &runs, &labelled.label).await?,
    }
    Ok(Redirect::to(&back(&runs)))
}
