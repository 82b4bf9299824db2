//! What is done to an experiment after its submission: pause, resume, add repetitions, cancel what is left.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Json,
    extract::{Path, RawForm, State},
    response::Redirect,
};
use brewbench_agent::wire::now_ms;
use serde_json::json;

use super::submission::{self, MOST_RUNS};
use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        ids::ExperimentId,
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Caller, Submit},
    },
    experiments::{
        self,
        lookup::{found, whole},
        model::{Experiment, ExperimentWithRuns, More},
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

/// Pause an experiment: none of its runs is begun until it is resumed. A run that is being done goes on to its end.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/pause", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub async fn pause(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    pause_it(&state, &id, &caller).await?;
    Ok(Json(whole(&state, &id).await?))
}

async fn pause_it(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    if whole(state, id).await?.progress.is_over() {
        return Err(Error::Conflict("the experiment is over: there is nothing to pause".to_owned()));
    }
    let act = caller.does(Deed::ExperimentPaused, id.as_str());
    if !experiments::store::pause(&state.db.write, id, now_ms(), &act).await? {
        return Err(Error::Conflict("the experiment is paused already".to_owned()));
    }
    tell(state, id).await
}

/// Resume an experiment that was paused.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/resume", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub async fn resume(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    resume_it(&state, &id, &caller).await?;
    Ok(Json(whole(&state, &id).await?))
}

async fn resume_it(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    found(state, id).await?;
    let act = caller.does(Deed::ExperimentResumed, id.as_str());
    if !experiments::store::resume(&state.db.write, id, &act).await? {
        return Err(Error::Conflict("the experiment is not paused".to_owned()));
    }
    state.work.notify_one();
    tell(state, id).await
}

/// Add repetitions to an experiment, also to one that is over: each cell once for each of them, in the order that its
/// seed gives.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/repetitions", tag = "experiments", params(("id" = String, Path)),
    request_body = More,
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    Input(more): Input<More>,
) -> Result<Json<ExperimentWithRuns>> {
    add_to(&state, &id, more, &caller).await?;
    Ok(Json(whole(&state, &id).await?))
}

async fn add_to(state: &AppState, id: &ExperimentId, More { repetitions }: More, caller: &Caller) -> Result<()> {
    let experiment = found(state, id).await?;
    let conflict = |sentence: &str| Err(Error::Conflict(sentence.to_owned()));
    if experiment.plan.knee.is_some() {
        return conflict("a search for the knee decides by itself how often it measures");
    }
    if experiment.is_open {
        return conflict("the experiment gets its repetitions by itself; wait for its end, or cancel the rest");
    }
    let Some(grounds) = experiments::store::grounds(&state.db.read, id).await? else {
        return conflict("all runs of the experiment are gone: nobody knows any more what they were made of");
    };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    let done = runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    let asked = experiment.plan.repetitions;
    let plan = extended(&experiment, &runs, repetitions)?;
    let wanted = next_runs::repetitions(&plan, &grounds.sizes, done + 1..=done + repetitions);
    let act = caller.does(Deed::RepetitionsAdded, id.as_str()).with(json!({"repetitions": repetitions}));
    let mut transaction = state.db.write.begin().await?;
    if !experiments::store::replan(&mut transaction, id, asked, &plan, &act).await? {
        return conflict("somebody else has just added repetitions; look at it again");
    }
    submission::queue(&mut transaction, &experiment, &grounds, &wanted, (&caller.name, now_ms())).await?;
    transaction.commit().await?;
    state.work.notify_one();
    tell(state, id).await
}

/// The plan with so many repetitions more than there are.
fn extended(experiment: &Experiment, runs: &[Run], more: u32) -> Result<Plan> {
    if more == 0 {
        return Err(Error::Invalid("repetitions: at least 1".to_owned()));
    }
    let Plan { targets, sizes, loads, .. } = &experiment.plan;
    let cells = targets.len() * sizes.len() * loads.len().max(1);
    let added = cells.saturating_mul(usize::try_from(more).unwrap_or(usize::MAX));
    let all = runs.len().saturating_add(added);
    if all > MOST_RUNS {
        return Err(Error::Invalid(format!("this makes {all} runs; at most {MOST_RUNS} go into one experiment")));
    }
    let done = runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    // How many there are was asked for in the end; until when is of no use any more.
    Ok(Plan { repetitions: done + more, until: None, ..experiment.plan.clone() })
}

/// Cancel all runs of an experiment that have not ended; it gets no more.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/cancel", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    cancel_all(&state, &id, &caller).await?;
    Ok(Json(whole(&state, &id).await?))
}

/// Cancels what has not ended: last queued first, so that nothing new starts meanwhile.
async fn cancel_all(state: &AppState, id: &ExperimentId, caller: &Caller) -> Result<()> {
    let before = whole(state, id).await?;
    if before.progress.is_over() {
        return Ok(());
    }
    let rest = before.progress.total - before.progress.ended;
    let act = caller.does(Deed::ExperimentCancelled, id.as_str()).with(json!({"runs": rest}));
    experiments::store::close(&state.db.write, id, &act).await?;
    // Read after that: what was decided before is among them. A run that fails meanwhile may be queued once more, so they
    // are read until none is left.
    loop {
        let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
        let left: Vec<&Run> = runs.iter().rev().filter(|run| !run.has_ended()).collect();
        if left.is_empty() {
            return tell(state, id).await;
        }
        for run in left {
            if endings::cancel(&state.db.write, &run.id, &format!("cancelled by {}", caller.name), now_ms()).await? {
                lookup::tell(state, run);
            }
        }
    }
}

/// Tells whoever watches that something of an experiment has changed.
async fn tell(state: &AppState, id: &ExperimentId) -> Result<()> {
    // One run is enough: everything is read anew.
    if let Some(run) = crate::runs::store::of_experiment(&state.db.rows, id).await?.first() {
        lookup::tell(state, run);
    }
    Ok(())
}

/// `POST /experiments/{id}/pause`
pub async fn post_pause(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Redirect> {
    pause_it(&state, &id, &caller).await?;
    Ok(back(&id))
}

/// `POST /experiments/{id}/resume`
pub async fn post_resume(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Redirect> {
    resume_it(&state, &id, &caller).await?;
    Ok(back(&id))
}

/// A number of repetitions, asked for.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/add.html")]
pub struct AddPage {
    shell: Shell,
    experiment: Experiment,
    /// How many runs one repetition is.
    cells: String,
}

/// `GET /experiments/{id}/repetitions`
pub async fn ask_add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<AddPage> {
    let experiment = found(&state, &id).await?;
    let Plan { targets, sizes, loads, .. } = &experiment.plan;
    let cells = format::plural(targets.len() * sizes.len() * loads.len().max(1), "run");
    Ok(AddPage { shell: Shell::signed_in("Add repetitions", Section::Experiments, &caller.name), experiment, cells })
}

/// `POST /experiments/{id}/repetitions`
pub async fn post_add(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let said = form::field(&body, "repetitions");
    let repetitions = said.and_then(|text| text.trim().parse().ok());
    let repetitions = repetitions.ok_or_else(|| Error::Invalid("repetitions: a whole number, such as 5".to_owned()))?;
    add_to(&state, &id, More { repetitions }, &caller).await?;
    Ok(back(&id))
}

/// `GET /experiments/{id}/cancel`
pub async fn ask_cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Confirm> {
    let whole = whole(&state, &id).await?;
    if whole.progress.is_over() {
        return Err(Error::Conflict("all runs of the experiment have ended already".to_owned()));
    }
    let rest = whole.progress.total - whole.progress.ended;
    let deed = "Cancel the rest";
    let mut consequences = vec![
        format!("{} will not be done, or not to the end.", format::plural(rest, "run")),
        format!("The {} that ended and their figures stay.", format::plural(whole.progress.ended, "run")),
    ];
    if whole.experiment.is_open {
        consequences.push("It does not decide any more what else to measure.".to_owned());
    }
    Ok(Confirm {
        shell: Shell::signed_in(deed, Section::Experiments, &caller.name),
        deed,
        what: whole.experiment.name,
        consequences,
        back: format!("/experiments/{id}"),
    })
}

/// `POST /experiments/{id}/cancel`
pub async fn post_cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Redirect> {
    cancel_all(&state, &id, &caller).await?;
    Ok(back(&id))
}

fn back(id: &ExperimentId) -> Redirect {
    Redirect::to(&format!("/experiments/{id}"))
}
