//! JSON of baselines.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::{name::Name, now_ms};

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::{ExperimentId, RunId, listed},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
        checks::checked_name,
    },
    baselines::{
        model::{Baseline, BaselineList, BaselineRuns, BaselineWithRuns},
        resolve::{is_id, of_experiment},
    },
    runs::model::Run,
};

/// The number of runs that a comparison can show.
const MAX_RUNS: usize = 500;

/// Lists the baselines, sorted by name.
#[utoipa::path(get, path = "/api/v1/baselines", tag = "baselines", responses((status = 200, body = BaselineList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<BaselineList>> {
    Ok(Json(BaselineList { baselines: crate::baselines::store::all(&state.db.read).await? }))
}

/// Returns a baseline with its runs. Deleted runs are listed by id.
#[utoipa::path(get, path = "/api/v1/baselines/{name}", tag = "baselines", params(("name" = String, Path)),
    responses((status = 200, body = BaselineWithRuns), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<BaselineWithRuns>> {
    let baseline = find(&state, &name).await?;
    let runs = crate::runs::store::by_ids(&state.db.rows, &baseline.runs).await?;
    Ok(Json(BaselineWithRuns { baseline, runs }))
}

/// Creates a baseline or replaces its runs.
#[utoipa::path(put, path = "/api/v1/baselines/{name}", tag = "baselines", params(("name" = String, Path)),
    request_body = BaselineRuns,
    responses((status = 200, body = Baseline), (status = 404, body = ErrorBody, description = "a run does not exist"),
        (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(requested): Input<BaselineRuns>,
) -> Result<Json<Baseline>> {
    Ok(Json(set_as(&state, &caller, &name, &requested).await?))
}

/// Removes a baseline. Its runs are kept.
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

/// Returns the baseline with this name, or a 404.
pub async fn find(state: &AppState, name: &str) -> Result<Baseline> {
    crate::baselines::store::find(&state.db.read, name)
        .await?
        .ok_or_else(|| Error::NotFound(format!("baseline {name:?}")))
}

/// Sets a baseline. Rejects runs without valid results, because nothing can be compared with them.
pub async fn set_as(state: &AppState, caller: &Caller, name: &str, requested: &BaselineRuns) -> Result<Baseline> {
    let name = checked(name)?;
    let name = name.as_str();
    let runs = read(state, requested).await?;
    let ids: Vec<_> = runs.into_iter().map(|run| run.id).collect();
    crate::baselines::store::set(&state.db.write, name, &ids, now_ms(), caller.does(Action::BaselineSet, name)).await?;
    find(state, name).await
}

/// Checks that a name can't be mistaken for an id or a list.
fn checked(name: &str) -> Result<Name> {
    let name = checked_name(name)?;
    if name.as_str().contains(',') || is_id(name.as_str()) {
        return Err(Error::Invalid("name: a baseline name must not contain a comma or look like an id".to_owned()));
    }
    Ok(name)
}

async fn read(state: &AppState, requested: &BaselineRuns) -> Result<Vec<Run>> {
    let (named, experiments) = (listed::<RunId>(&requested.runs), listed::<ExperimentId>(&requested.experiments));
    if named.is_empty() && experiments.is_empty() {
        return Err(Error::Invalid("runs: name at least one run or experiment".to_owned()));
    }
    let mut runs = crate::runs::store::by_ids(&state.db.rows, &named).await?;
    if let Some(missing) = named.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        return Err(Error::NotFound(format!("run {:?}", missing.as_str())));
    }
    if let Some(run) = runs.iter().find(|run| !run.counts()) {
        let why = if run.has_ended() { "has no valid results" } else { "has not finished" };
        return Err(Error::Invalid(format!("runs: {} {why}", run.id)));
    }
    for id in experiments {
        let valid: Vec<Run> = of_experiment(state, &id).await?.into_iter().filter(Run::counts).collect();
        if valid.is_empty() {
            return Err(Error::Invalid(format!("experiments: {:?} has no runs with valid results", id.as_str())));
        }
        runs.extend(valid.into_iter().filter(|run| !named.contains(&run.id)));
    }
    if runs.len() > MAX_RUNS {
        return Err(Error::Invalid(format!("runs: {} named; a baseline has at most {MAX_RUNS}", runs.len())));
    }
    Ok(runs)
}

/// Removes a baseline, or fails with a 404.
pub async fn remove_named(state: &AppState, caller: &Caller, name: &str) -> Result<()> {
    if crate::baselines::store::remove(&state.db.write, name, &caller.does(Action::BaselineRemoved, name)).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("baseline {name:?}")))
    }
}
