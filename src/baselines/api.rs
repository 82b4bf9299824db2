//! JSON of baselines.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::{name::Name, now_ms};

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        ids::{ExperimentId, RunId, listed},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Caller, Read, Submit},
        checks::checked_name,
    },
    baselines::{
        model::{Baseline, BaselineList, BaselineRuns, BaselineWithRuns},
        resolve::{is_id, of_experiment},
    },
    runs::model::Run,
};

/// As many as a comparison shows.
const MOST_RUNS: usize = 500;
/// More than this nobody finds anything in.
const MOST_BASELINES: usize = 200;

/// Baselines by name.
#[utoipa::path(get, path = "/api/v1/baselines", tag = "baselines", responses((status = 200, body = BaselineList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<BaselineList>> {
    Ok(Json(BaselineList { baselines: crate::baselines::store::all(&state.db.read).await? }))
}

/// One baseline with its runs. Runs that were deleted are told by their ids.
#[utoipa::path(get, path = "/api/v1/baselines/{name}", tag = "baselines", params(("name" = String, Path)),
    responses((status = 200, body = BaselineWithRuns), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<BaselineWithRuns>> {
    let baseline = found(&state, &name).await?;
    let runs = crate::runs::store::by_ids(&state.db.rows, &baseline.runs).await?;
    Ok(Json(BaselineWithRuns { baseline, runs }))
}

/// Keep runs under a name, in place of those that it had.
#[utoipa::path(put, path = "/api/v1/baselines/{name}", tag = "baselines", params(("name" = String, Path)),
    request_body = BaselineRuns,
    responses((status = 200, body = Baseline), (status = 404, body = ErrorBody, description = "a run is not there"),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(asked): Input<BaselineRuns>,
) -> Result<Json<Baseline>> {
    Ok(Json(set_as(&state, &caller, &name, &asked).await?))
}

/// Remove a baseline; its runs stay.
#[utoipa::path(delete, path = "/api/v1/baselines/{name}", tag = "baselines", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    remove_named(&state, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The baseline of this name, or a 404.
pub async fn found(state: &AppState, name: &str) -> Result<Baseline> {
    crate::baselines::store::one(&state.db.read, name)
        .await?
        .ok_or_else(|| Error::NotFound(format!("baseline {name:?}")))
}

/// Sets a baseline; figures that don't count are refused, as nothing can be held against them.
pub async fn set_as(state: &AppState, caller: &Caller, name: &str, asked: &BaselineRuns) -> Result<Baseline> {
    let name = checked(name)?;
    let name = name.as_str();
    let runs = read(state, asked).await?;
    let there = crate::baselines::store::all(&state.db.read).await?;
    if there.len() >= MOST_BASELINES && !there.iter().any(|known| known.name == name) {
        return Err(Error::Conflict(format!("there are {MOST_BASELINES} baselines already: remove one first")));
    }
    let ids: Vec<_> = runs.into_iter().map(|run| run.id).collect();
    crate::baselines::store::set(&state.db.write, name, &ids, now_ms(), caller.does(Deed::BaselineSet, name)).await?;
    found(state, name).await
}

/// A name that can't be taken for an id or a list.
fn checked(name: &str) -> Result<Name> {
    let name = checked_name(name)?;
    if name.as_str().contains(',') || is_id(name.as_str()) {
        return Err(Error::Invalid("name: a baseline is called neither like an id nor with a comma".to_owned()));
    }
    Ok(name)
}

async fn read(state: &AppState, asked: &BaselineRuns) -> Result<Vec<Run>> {
    let (named, experiments) = (listed::<RunId>(&asked.runs), listed::<ExperimentId>(&asked.experiments));
    if named.is_empty() && experiments.is_empty() {
        return Err(Error::Invalid("runs: name at least one run or experiment".to_owned()));
    }
    let mut runs = crate::runs::store::by_ids(&state.db.rows, &named).await?;
    if let Some(missing) = named.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        return Err(Error::NotFound(format!("run {:?}", missing.as_str())));
    }
    if let Some(run) = runs.iter().find(|run| !run.counts()) {
        let why = if run.has_ended() { "has no figures that count" } else { "has not ended" };
        return Err(Error::Invalid(format!("runs: {} {why}", run.id)));
    }
    for id in experiments {
        let counting: Vec<Run> = of_experiment(state, &id).await?.into_iter().filter(Run::counts).collect();
        if counting.is_empty() {
            return Err(Error::Invalid(format!("experiments: {:?} has no runs whose figures count", id.as_str())));
        }
        runs.extend(counting.into_iter().filter(|run| !named.contains(&run.id)));
    }
    if runs.len() > MOST_RUNS {
        return Err(Error::Invalid(format!("runs: {} are too many; a baseline has at most {MOST_RUNS}", runs.len())));
    }
    Ok(runs)
}

/// Removes a baseline.
pub async fn remove_named(state: &AppState, caller: &Caller, name: &str) -> Result<()> {
    if crate::baselines::store::remove(&state.db.write, name, &caller.does(Deed::BaselineRemoved, name)).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("baseline {name:?}")))
    }
}
