//! JSON of experiments.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use brewbench_agent::{
    scenarios,
    wire::{RunId, now_ms},
};
use futures_util::Stream;
use uuid::Uuid;

use super::{
    Experiment, ExperimentWithRuns, Plan,
    fits::{Needs, Source, obstacle},
    order::order,
    progress::progress,
    queries,
};
use crate::{
    auth::{Read, Submit, api::checked_name},
    catalog::{self, MachineSize, find_size},
    error::{Error, ErrorBody, Input, Result},
    fleet::Presence,
    runs::{
        self, RunSize,
        queries::{NewRun, endings},
    },
    state::{AppState, RunChanged},
};

/// More than this is a mistake, or a job for several experiments.
const MOST_RUNS: usize = 10_000;
const LONGEST_S: f64 = 24.0 * 3_600.0;

/// Submit an experiment: its runs are queued.
#[utoipa::path(post, path = "/api/v1/experiments", tag = "experiments",
    responses((status = 201, body = ExperimentWithRuns), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn submit(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Input(plan): Input<Plan>,
) -> Result<(StatusCode, Json<ExperimentWithRuns>)> {
    let plan = checked(plan)?;
    let sizes = meant_sizes(&state, &plan).await?;
    let scenario = catalog::queries::scenario(&state.db.read, &plan.scenario).await?;
    let scenario = scenario.ok_or_else(|| Error::Invalid(format!("scenario: there is no {:?}", plan.scenario)))?;
    if let Some(unknown) = plan.parameters.keys().find(|key| !scenario.defaults.contains_key(*key)) {
        let known: Vec<_> = scenario.defaults.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(Error::Invalid(format!("parameters: {:?} has no {unknown:?}; it has {known}", plan.scenario)));
    }
    let scenario_source = if scenarios::is_bundled(&scenario) { Source::Bundled } else { Source::User };
    let needs = Needs {
        targets: &plan.targets,
        sizes: &sizes,
        scenario: &plan.scenario,
        scenario_source,
        agent: plan.agent.as_deref(),
    };
    if let Some(obstacle) = obstacle(needs, &presence.list()) {
        return Err(Error::Conflict(obstacle));
    }
    let id = Uuid::now_v7().to_string();
    let name = plan.name.clone().unwrap_or_else(|| format!("{}: {}", plan.scenario, plan.targets.join(", ")));
    let experiment = Experiment { id, name, plan, created_by: caller.name, created_at_ms: now_ms() };
    store(&state, &experiment, &sizes, &scenario.sha256()).await?;
    state.work.notify_one();
    let whole = whole(&state, &experiment.id).await?;
    for run in &whole.runs {
        runs::api::tell(&state, run);
    }
    Ok((StatusCode::CREATED, Json(whole)))
}

fn checked(plan: Plan) -> Result<Plan> {
    let invalid = |sentence: &str| Err(Error::Invalid(sentence.to_owned()));
    if plan.targets.is_empty() {
        return invalid("targets: name at least one");
    }
    if plan.sizes.is_empty() {
        return invalid("sizes: name at least one");
    }
    if plan.repetitions == 0 {
        return invalid("repetitions: at least 1");
    }
    if plan.targets.iter().enumerate().any(|(index, name)| plan.targets[..index].contains(name)) {
        return invalid("targets: one is named twice");
    }
    if !(0.0..=LONGEST_S).contains(&plan.warm_up_s) {
        return invalid("warm_up_s: between 0 and 86400 seconds");
    }
    match (plan.vus, plan.duration_s) {
        (None, None) => {}
        (Some(vus), Some(seconds)) => {
            if !(1..=100_000).contains(&vus) {
                return invalid("vus: between 1 and 100000");
            }
            // k6 takes no shorter one.
            if !(1.0..=LONGEST_S).contains(&seconds) {
                return invalid("duration_s: between 1 and 86400 seconds");
            }
        }
        _ => return invalid("vus and duration_s: give both, or neither to take the script's own options"),
    }
    if let Some(name) = &plan.name {
        checked_name(name)?;
    }
    let runs = plan.targets.len().saturating_mul(plan.sizes.len()).saturating_mul(plan.repetitions as usize);
    if runs > MOST_RUNS {
        return Err(Error::Invalid(format!("this makes {runs} runs; at most {MOST_RUNS} go into one experiment")));
    }
    Ok(plan)
}

async fn meant_sizes(state: &AppState, plan: &Plan) -> Result<Vec<MachineSize>> {
    let known = catalog::queries::sizes(&state.db.read).await?;
    let mut sizes: Vec<MachineSize> = Vec::new();
    for meant in &plan.sizes {
        let size = find_size(&known, meant).ok_or_else(|| {
            Error::Invalid(format!("sizes: there is no {meant:?}; `brewbench size list` shows what there is"))
        })?;
        if sizes.iter().any(|other| other.name == size.name) {
            return Err(Error::Invalid(format!("sizes: {:?} is named twice", size.name)));
        }
        sizes.push(size.clone());
    }
    Ok(sizes)
}

async fn store(state: &AppState, experiment: &Experiment, sizes: &[MachineSize], scenario_sha256: &str) -> Result<()> {
    let plan = &experiment.plan;
    let parameters = serde_json::to_string(&plan.parameters).map_err(Error::internal)?;
    let sizes: Vec<_> = sizes
        .iter()
        .map(|size| RunSize { name: size.name.clone(), vcpus: size.vcpus, memory_bytes: size.memory_bytes })
        .collect();
    let mut transaction = state.db.write.begin().await?;
    queries::insert(&mut transaction, experiment).await?;
    for cell in order(plan.targets.len(), sizes.len(), plan.repetitions) {
        let run = NewRun {
            id: RunId::now().to_string(),
            experiment: Some(&experiment.id),
            target: &plan.targets[cell.target],
            size: Some(&sizes[cell.size]),
            scenario: Some(&plan.scenario),
            scenario_sha256: Some(scenario_sha256),
            parameters: &parameters,
            vus: plan.vus,
            duration_ms: plan.duration_s.map(milliseconds),
            warm_up_ms: Some(milliseconds(plan.warm_up_s)),
            repetition: cell.repetition,
            wanted_agent: plan.agent.as_deref(),
            created_by: &experiment.created_by,
            now: experiment.created_at_ms,
        };
        runs::queries::queue(&mut transaction, &run).await?;
    }
    Ok(transaction.commit().await?)
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be less than a day")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}

/// An experiment with its runs and its progress.
#[utoipa::path(get, path = "/api/v1/experiments/{id}", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<ExperimentWithRuns>> {
    Ok(Json(whole(&state, &id).await?))
}

/// The experiment with this id and everything of it, or a 404.
pub async fn whole(state: &AppState, id: &str) -> Result<ExperimentWithRuns> {
    let experiment = queries::one(&state.db.read, id).await?;
    let experiment = experiment.ok_or_else(|| Error::NotFound(format!("experiment {id:?}")))?;
    let runs = runs::queries::of_experiment(&state.db.read, id).await?;
    let url = state.public_url.join(&format!("experiments/{id}")).map_err(Error::internal)?;
    Ok(ExperimentWithRuns { experiment, url: url.into(), progress: progress(&runs, now_ms()), runs })
}

/// Cancel all runs of an experiment that have not ended.
#[utoipa::path(post, path = "/api/v1/experiments/{id}/cancel", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn cancel(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<ExperimentWithRuns>> {
    cancel_all(&state, &id, &caller.name).await?;
    Ok(Json(whole(&state, &id).await?))
}

/// Cancels what has not ended: last queued first, so that nothing new starts meanwhile.
pub async fn cancel_all(state: &AppState, id: &str, by: &str) -> Result<()> {
    for run in whole(state, id).await?.runs.iter().rev() {
        if endings::cancel(&state.db.write, &run.id, &format!("cancelled by {by}"), now_ms()).await? {
            runs::api::tell(state, run);
        }
    }
    Ok(())
}

/// Watch an experiment: an event `progress` at once and whenever something changes (at least every second while it
/// runs), the last one when all runs have ended.
#[utoipa::path(get, path = "/api/v1/experiments/{id}/events", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream"), (status = 404, body = ErrorBody)))]
pub async fn watch(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    whole(&state, &id).await?;
    Ok(Sse::new(changes(state, id)).keep_alive(KeepAlive::default()))
}

fn changes(state: AppState, id: String) -> impl Stream<Item = Result<Event, Infallible>> {
    let listener = state.events.listen();
    futures_util::stream::unfold((state, id, listener, Next::Now), |(state, id, mut listener, next)| async move {
        if next == Next::End {
            return None;
        }
        if next == Next::Change {
            let wanted = Uuid::parse_str(&id).ok();
            let heard = next_change(&mut listener, wanted);
            tokio::select! {
                () = heard => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                () = state.shutdown.cancelled() => return None,
            }
        }
        let progress = whole(&state, &id).await.ok()?.progress;
        let next = if progress.ended == progress.total { Next::End } else { Next::Change };
        let event = Event::default().event("progress").json_data(&progress).ok()?;
        Some((Ok(event), (state, id, listener, next)))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Now,
    Change,
    End,
}

/// Waits until something of this experiment changes; a listener that missed something takes it for a change.
pub async fn next_change(listener: &mut tokio::sync::broadcast::Receiver<RunChanged>, experiment: Option<Uuid>) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match listener.recv().await {
            Ok(changed) if experiment.is_some() && changed.experiment != experiment => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
