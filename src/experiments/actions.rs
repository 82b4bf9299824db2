//! Actions on a submitted experiment: pause, resume, add repetitions, cancel the remaining runs.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Json,
    extract::{Path, RawForm, State},
    response::Redirect,
};
use brewbench_wire::now_ms;
use serde::Deserialize;
use serde_json::json;

use super::submission::{self, MAX_RUNS};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::ExperimentId,
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Submit},
    },
    experiments::{
        self,
        lookup::{find, find_with_runs},
        model::{AddRepetitions, Experiment, ExperimentWithRuns},
        next_runs,
        plan::Plan,
    },
    results::store::endings,
    runs::{lookup, model::Run},
    web::{
        confirm::Confirm,
        form, format,
        shell::{Section, Shell},
    },
};

/// Pauses an experiment: no further runs start until it is resumed. Runs in progress continue.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/pause", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub async fn pause(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    pause_experiment(&state, &id, &caller).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

async fn pause_experiment(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    if find_with_runs(state, id).await?.progress.is_over() {
        return Err(Error::Conflict("the experiment is over and can't be paused".to_owned()));
    }
    let act = caller.does(Action::ExperimentPaused, id.as_str());
    if !experiments::store::pause(&state.db.write, id, now_ms(), &act).await? {
        return Err(Error::Conflict("the experiment is already paused".to_owned()));
    }
    publish_change(state, id).await
}

/// Resumes a paused experiment.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/resume", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub async fn resume(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    resume_experiment(&state, &id, &caller).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

async fn resume_experiment(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    find(state, id).await?;
    let act = caller.does(Action::ExperimentResumed, id.as_str());
    if !experiments::store::resume(&state.db.write, id, &act).await? {
        return Err(Error::Conflict("the experiment is not paused".to_owned()));
    }
    state.work.notify_one();
    publish_change(state, id).await
}

/// Adds repetitions to an experiment, even if it is over. Each repetition runs every cell once, in the order determined
/// by the seed.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/repetitions", tag = "experiments", params(("id" = String, Path)),
    request_body = AddRepetitions,
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    Input(more): Input<AddRepetitions>,
) -> Result<Json<ExperimentWithRuns>> {
    add_repetitions(&state, &id, more, &caller).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

async fn add_repetitions(
    state: &AppState,
    id: &ExperimentId,
    AddRepetitions { repetitions }: AddRepetitions,
    caller: &Caller,
) -> Result<()> {
    let experiment = find(state, id).await?;
    let conflict = |sentence: &str| Err(Error::Conflict(sentence.to_owned()));
    if experiment.plan.knee.is_some() {
        return conflict("repetitions can't be added to a knee search, which decides how often it measures");
    }
    if experiment.is_open {
        return conflict("the experiment adds repetitions itself; wait until it ends, or cancel the remaining runs");
    }
    let Some(inputs) = experiments::store::run_inputs(&state.db.read, id).await? else {
        return conflict("all runs of the experiment were deleted, so their sizes and scenario revision are unknown");
    };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    let last = last_repetition(&runs);
    let planned = experiment.plan.repetitions;
    let plan = extended_plan(&experiment, &runs, repetitions)?;
    let planned_runs = next_runs::repetitions(&plan, &inputs, last + 1..=last + repetitions);
    let act = caller.does(Action::RepetitionsAdded, id.as_str()).with(json!({"repetitions": repetitions}));
    let mut transaction = state.db.write.begin().await?;
    if !experiments::store::replan(&mut transaction, id, planned, &plan, &act).await? {
        return conflict("another user has just added repetitions; reload the experiment");
    }
    submission::queue(&mut transaction, &experiment, &planned_runs, (&caller.name, now_ms())).await?;
    transaction.commit().await?;
    state.work.notify_one();
    publish_change(state, id).await
}

/// Returns the number of the last measured repetition.
fn last_repetition(runs: &[Run]) -> u32 {
    runs.iter().filter(|run| !run.spec.profiled).map(|run| run.repetition).max().unwrap_or(0)
}

/// Returns the plan with this many more repetitions than the experiment has.
fn extended_plan(experiment: &Experiment, runs: &[Run], more: u32) -> Result<Plan> {
    if more == 0 {
        return Err(Error::Invalid("repetitions: at least 1".to_owned()));
    }
    let Plan { targets, sizes, loads, .. } = &experiment.plan;
    let cells = targets.len() * sizes.len() * loads.len().max(1);
    let added = cells.saturating_mul(usize::try_from(more).unwrap_or(usize::MAX));
    let all = runs.len().saturating_add(added);
    if all > MAX_RUNS {
        return Err(Error::Invalid(format!("this makes {all} runs; an experiment has at most {MAX_RUNS}")));
    }
    let last = last_repetition(runs);
    // The number of repetitions is now fixed, so the stopping rule no longer applies.
    Ok(Plan { repetitions: last + more, stopping_rule: None, ..experiment.plan.clone() })
}

/// Cancels all runs of an experiment that have not ended, and adds no more.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/cancel", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    cancel_all(&state, &id, &caller).await?;
    Ok(Json(find_with_runs(&state, &id).await?))
}

/// Cancels all runs that have not ended, the last queued first, so that no further run starts before it is cancelled.
async fn cancel_all(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    let before = find_with_runs(state, id).await?;
    if before.progress.is_over() {
        return Ok(());
    }
    let rest = before.progress.total - before.progress.ended;
    let act = caller.does(Action::ExperimentCancelled, id.as_str()).with(json!({"runs": rest}));
    experiments::store::close(&state.db.write, id, &act).await?;
    // Load the runs after closing the experiment, to include those that the scheduler has just queued. A run that fails
    // now may still queue a retry: repeat until none is left.
    loop {
        let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
        let left: Vec<&Run> = runs.iter().rev().filter(|run| !run.has_ended()).collect();
        if left.is_empty() {
            return publish_change(state, id).await;
        }
        for run in left {
            let why = format!("cancelled by {}", caller.name);
            if !endings::cancel(&state.db.write, &run.id, &why, now_ms()).await?.is_empty() {
                lookup::announce(state, run);
            }
        }
    }
}

/// Notifies listeners that an experiment has changed.
async fn publish_change(state: &AppState, id: &ExperimentId) -> Result<()> {
    // One event is enough: listeners read everything again.
    if let Some(run) = crate::runs::store::of_experiment(&state.db.rows, id).await?.first() {
        lookup::announce(state, run);
    }
    Ok(())
}

/// The form that asks for the number of repetitions.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/add.html")]
pub struct AddPage {
    shell: Shell,
    experiment: Experiment,
    /// Number of runs of one repetition.
    cells: String,
    proposed: u32,
}

/// Query parameters of the form.
#[derive(Debug, Deserialize)]
pub struct AddQuery {
    /// The proposed number of repetitions.
    #[serde(default = "two")]
    repetitions: u32,
}

fn two() -> u32 {
    2
}

/// `GET /experiments/{id}/repetitions`
pub async fn add_form(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    QueryParams(AddQuery { repetitions: proposed }): QueryParams<AddQuery>,
) -> Result<AddPage> {
    let experiment = find(&state, &id).await?;
    let Plan { targets, sizes, loads, .. } = &experiment.plan;
    let cells = format::plural(targets.len() * sizes.len() * loads.len().max(1), "run");
    let shell = Shell::signed_in("Add repetitions", Section::Experiments, &caller.name);
    Ok(AddPage { shell, experiment, cells, proposed })
}

/// `POST /experiments/{id}/repetitions`
pub async fn post_add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let field = form::field(&body, "repetitions");
    let repetitions = field.and_then(|text| text.trim().parse().ok());
    let repetitions = repetitions.ok_or_else(|| Error::Invalid("repetitions: a whole number, such as 5".to_owned()))?;
    add_repetitions(&state, &id, AddRepetitions { repetitions }, &caller).await?;
    Ok(to_page(&id))
}

/// `GET /experiments/{id}/cancel`
pub async fn confirm_cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Confirm> {
    let full = find_with_runs(&state, &id).await?;
    if full.progress.is_over() {
        return Err(Error::Conflict("all runs of the experiment have already ended".to_owned()));
    }
    let rest = full.progress.total - full.progress.ended;
    let action = "Cancel remaining runs";
    let mut consequences = vec![
        format!("{} will be cancelled.", format::plural(rest, "run")),
        format!("Results are kept for {} that already ended.", format::plural(full.progress.ended, "run")),
    ];
    if full.experiment.is_open {
        consequences.push("The experiment will add no further runs.".to_owned());
    }
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Experiments, &caller.name),
        action,
        what: full.experiment.name,
        consequences,
        back: format!("/experiments/{id}"),
    })
}

fn to_page(id: &ExperimentId) -> Redirect {
    Redirect::to(&format!("/experiments/{id}"))
}
