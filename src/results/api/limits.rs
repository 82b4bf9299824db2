//! The limits of a scenario: which values make its runs suspect or invalid.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State},
};
use brewbench_wire::now_ms;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
    },
    results::{
        store::verdicts::{self, ScenarioLimits},
        verdict::{
            limits::{Limit, Limits},
            model::RULES,
        },
    },
    runs::{filter::RunQuery, verdict::Unit},
};

/// All limits of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitList {
    /// The scenario's name.
    pub scenario: String,
    /// Version of the rules that they belong to.
    pub rules: u32,
    /// When they were last changed, unix ms; null if never.
    pub changed_at_ms: Option<i64>,
    /// Who changed them last.
    pub changed_by: Option<String>,
    /// All limits in display order.
    pub limits: Vec<LimitInfo>,
}

/// One limit of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitInfo {
    /// Its name.
    pub name: String,
    /// Its value for this scenario.
    pub value: f64,
    /// Its default.
    pub default: f64,
    /// Its unit.
    pub unit: Unit,
    /// Short description.
    pub description: String,
    /// Reason for the default.
    pub reason: String,
}

/// Limits that differ from their defaults.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLimits {
    /// Values by name; all others get their defaults.
    pub limits: BTreeMap<String, f64>,
}

impl LimitList {
    /// Describes the limits of a scenario.
    pub fn new(scenario: String, stored: ScenarioLimits) -> Self {
        let ScenarioLimits { limits, revision: _, changed } = stored;
        let info = |limit: Limit| {
            let about = limit.definition();
            LimitInfo {
                name: about.name.to_owned(),
                value: limits.get(limit),
                default: about.default,
                unit: about.unit,
                description: about.what.to_owned(),
                reason: about.why.to_owned(),
            }
        };
        let (changed_at_ms, changed_by) = changed.unzip();
        Self { scenario, rules: RULES, changed_at_ms, changed_by, limits: Limit::ALL.into_iter().map(info).collect() }
    }
}

/// List the limits of a scenario: which values make its runs suspect or invalid.
#[utoipa::path(get, path = "/api/v1/scenarios/{name}/limits", tag = "scenarios", params(("name" = String, Path)),
    responses((status = 200, body = LimitList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<LimitList>> {
    check_exists(&state, &name).await?;
    let limits = verdicts::limits(&state.db.read, Some(&name)).await?;
    Ok(Json(LimitList::new(name, limits)))
}

/// Set the limits of a scenario; all others get their defaults. Its runs are re-judged in the background.
#[utoipa::path(put, path = "/api/v1/scenarios/{name}/limits", tag = "scenarios", params(("name" = String, Path)),
    request_body = NewLimits,
    responses((status = 200, body = LimitList), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn set(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(new): Input<NewLimits>,
) -> Result<Json<LimitList>> {
    let limits = Limits::with(&new.limits).map_err(|fault| Error::Invalid(format!("limits: {fault}")))?;
    change(&state, &caller, &name, &limits).await?;
    Ok(Json(LimitList::new(name.clone(), verdicts::limits(&state.db.read, Some(&name)).await?)))
}

/// Reset the limits of a scenario to their defaults. Its runs are re-judged in the background.
#[utoipa::path(delete, path = "/api/v1/scenarios/{name}/limits", tag = "scenarios", params(("name" = String, Path)),
    responses((status = 200, body = LimitList), (status = 404, body = ErrorBody)))]
pub async fn reset(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Json<LimitList>> {
    change(&state, &caller, &name, &Limits::default()).await?;
    Ok(Json(LimitList::new(name.clone(), verdicts::limits(&state.db.read, Some(&name)).await?)))
}

/// Changes the limits of a scenario and starts re-judging; does nothing if they are unchanged.
pub async fn change(state: &AppState, caller: &Caller, scenario: &str, limits: &Limits) -> Result<()> {
    check_exists(state, scenario).await?;
    if verdicts::limits(&state.db.read, Some(scenario)).await?.limits != *limits {
        let act = caller.does(Action::LimitsChanged, scenario);
        verdicts::set_limits(&state.db.write, scenario, limits, now_ms(), &act).await?;
        state.rejudge.notify_one();
    }
    Ok(())
}

/// Fails with 404 unless the scenario is stored or, for imports, has runs.
async fn check_exists(state: &AppState, name: &str) -> Result<()> {
    if crate::catalog::store::scenarios::newest(&state.db.read, name).await?.is_some() {
        return Ok(());
    }
    let wanted = RunQuery { scenario: Some(name.to_owned()), ..RunQuery::default() };
    let filter = wanted.filter().map_err(Error::Invalid)?;
    if crate::runs::store::list(&state.db.rows, &filter, 1).await?.is_empty() {
        return Err(Error::NotFound(format!("scenario {name:?}")));
    }
    Ok(())
}
