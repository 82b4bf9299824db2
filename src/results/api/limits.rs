//! The limits of a scenario: from where on a figure speaks against its runs.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, State},
};
use brewbench_agent::wire::now_ms;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Caller, Read, Submit},
    },
    results::{
        store::verdicts::{self, ScenarioLimits},
        verdict::{
            limits::{Limit, Limits},
            model::RULES,
        },
    },
    runs::{filter::Wanted, verdict::Unit},
};

/// All limits of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitList {
    /// The scenario's name.
    pub scenario: String,
    /// Which rules they belong to.
    pub rules: u32,
    /// When they were changed last, unix ms; null if never.
    pub changed_at_ms: Option<i64>,
    /// By whom.
    pub changed_by: Option<String>,
    /// In the order in which people see them.
    pub limits: Vec<LimitInfo>,
}

/// One limit of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LimitInfo {
    /// Names it.
    pub name: String,
    /// What it is here.
    pub value: f64,
    /// What it is unless somebody says otherwise.
    pub default: f64,
    /// What it counts.
    pub unit: Unit,
    /// What it is, in a few words.
    pub what: String,
    /// Why the default is what it is.
    pub why: String,
}

/// The limits that shall not be as usual.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewLimits {
    /// Numbers by name; what is not named is as usual.
    pub limits: BTreeMap<String, f64>,
}

impl LimitList {
    /// The limits of a scenario with all that is known of them.
    pub fn new(scenario: String, stored: ScenarioLimits) -> Self {
        let ScenarioLimits { limits, revision: _, changed } = stored;
        let info = |limit: Limit| {
            let about = limit.about();
            LimitInfo {
                name: about.name.to_owned(),
                value: limits.of(limit),
                default: about.default,
                unit: about.unit,
                what: about.what.to_owned(),
                why: about.why.to_owned(),
            }
        };
        let (changed_at_ms, changed_by) = changed.unzip();
        Self { scenario, rules: RULES, changed_at_ms, changed_by, limits: Limit::ALL.into_iter().map(info).collect() }
    }
}

/// The limits of a scenario: from where on a figure makes its runs suspect or invalid.
#[utoipa::path(get, path = "/api/v1/scenarios/{name}/limits", tag = "scenarios", params(("name" = String, Path)),
    responses((status = 200, body = LimitList), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<LimitList>> {
    known(&state, &name).await?;
    let limits = verdicts::limits(&state.db.read, Some(&name)).await?;
    Ok(Json(LimitList::new(name, limits)))
}

/// Set the limits of a scenario. What is not named is as usual. Its old runs are judged anew in the background.
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

/// Take the usual limits again. Old runs of the scenario are judged anew in the background.
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

/// Sets the limits of a scenario, and has its old runs judged by them; nothing if they are so already.
pub async fn change(state: &AppState, caller: &Caller, scenario: &str, limits: &Limits) -> Result<()> {
    known(state, scenario).await?;
    if verdicts::limits(&state.db.read, Some(scenario)).await?.limits != *limits {
        let act = caller.does(Deed::LimitsChanged, scenario);
        verdicts::set_limits(&state.db.write, scenario, limits, now_ms(), &act).await?;
        state.rejudge.notify_one();
    }
    Ok(())
}

/// A scenario is known by its text or, where only summaries were imported, by its runs; a 404 else.
async fn known(state: &AppState, name: &str) -> Result<()> {
    if crate::catalog::store::scenario(&state.db.read, name).await?.is_some() {
        return Ok(());
    }
    let wanted = Wanted { scenario: Some(name.to_owned()), ..Wanted::default() };
    let filter = wanted.filter().map_err(Error::Invalid)?;
    if crate::runs::store::list(&state.db.rows, &filter, 1).await?.is_empty() {
        return Err(Error::NotFound(format!("scenario {name:?}")));
    }
    Ok(())
}
