//! Groups imported runs into an experiment.

use std::collections::BTreeSet;

use axum::{Form, Json, extract::State, http::StatusCode, response::Redirect};
use brewbench_wire::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::{ExperimentId, RunId},
        input::Input,
        state::AppState,
    },
    auth::{
        caller::{Caller, Submit},
        checks::checked_line,
    },
    experiments::{self, model::ExperimentWithRuns, plan::Plan},
    results::import::folder::MAX_FILES,
    runs::{
        lookup,
        model::{Origin, Run},
    },
};

/// A request to group imported runs into an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FromImports {
    /// Name of the experiment.
    pub name: String,
    /// Ids of imported runs that do not belong to an experiment yet.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
}

/// The same request as an HTML form.
#[derive(Debug, Deserialize)]
pub struct FromImportsForm {
    name: String,
    /// Ids, separated by commas.
    runs: String,
}

/// Creates an experiment from imported runs.
#[utoipa::path(post, path = "/api/v1/experiments/from-imports", tag = "experiments", operation_id = "gather_experiment",
    request_body = FromImports,
    responses((status = 201, body = ExperimentWithRuns), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn gather(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Input(gathering): Input<FromImports>,
) -> Result<(StatusCode, Json<ExperimentWithRuns>)> {
    let id = create(&state, &caller, gathering).await?;
    Ok((StatusCode::CREATED, Json(crate::experiments::lookup::find_with_runs(&state, &id).await?)))
}

/// `POST /experiments/from-imports`
pub async fn post(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Form(FromImportsForm { name, runs }): Form<FromImportsForm>,
) -> Result<Redirect> {
    let runs = runs.split(',').filter(|id| !id.is_empty()).map(|id| id.to_owned().into()).collect();
    let id = create(&state, &caller, FromImports { name, runs }).await?;
    Ok(Redirect::to(&format!("/experiments/{id}")))
}

async fn create(state: &AppState, caller: &Caller, gathering: FromImports) -> Result<ExperimentId> {
    let name = checked_line(&gathering.name)?.to_owned();
    let ids: BTreeSet<RunId> = gathering.runs.into_iter().collect();
    if ids.is_empty() || ids.len() > MAX_FILES {
        return Err(Error::Invalid(format!("runs: name 1 to {MAX_FILES} runs")));
    }
    let ids: Vec<RunId> = ids.into_iter().collect();
    let found = crate::runs::store::by_ids(&state.db.rows, &ids).await?;
    if let Some(missing) = ids.iter().find(|id| !found.iter().any(|run| run.id == **id)) {
        return Err(Error::Invalid(format!("runs: there is no run {:?}", missing.as_str())));
    }
    if let Some(run) = found.iter().find(|run| run.origin != Origin::Import || run.experiment.is_some()) {
        return Err(Error::Conflict(format!("run {} was not imported or already belongs to an experiment", run.id)));
    }
    let (id, plan) = (ExperimentId::now(), plan(&name, &found)?);
    let mut transaction = state.db.write.begin().await?;
    experiments::store::insert_from_imports(&mut transaction, &id, &name, &plan, &caller.name, now_ms()).await?;
    crate::results::store::imports::assign_to_experiment(&mut transaction, &ids, &id).await?;
    transaction.commit().await?;
    for run in &found {
        lookup::announce(state, run);
    }
    Ok(id)
}

/// Reconstructs a plan from the runs. It has no scenario, so it can't be submitted.
fn plan(name: &str, runs: &[Run]) -> Result<Plan> {
    let targets: BTreeSet<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let sizes: BTreeSet<&str> =
        runs.iter().filter_map(|run| run.spec.size.as_ref()).map(|size| size.name.as_str()).collect();
    let repetitions = runs.iter().map(|run| run.repetition).max().unwrap_or(1);
    let plan = json!({"name": name, "targets": targets, "sizes": sizes, "scenario": "", "load": {"kind": "script"},
        "warm_up_s": 0.0, "repetitions": repetitions});
    serde_json::from_value(plan).map_err(Error::internal)
}
