//! Whether a script is one that k6 can run. The server never runs what somebody brought: an agent that has nothing else
//! to do and takes such scripts lets its k6 look at it.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::{
    sanitize::plain,
    scenarios,
    wire::{job::Scenario, messages::Finding, now_ms},
};
use serde::Deserialize;
use tokio::{sync::Notify, time::timeout};
use utoipa::IntoParams;
use uuid::Uuid;

use super::presence::Question;
use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    catalog::{
        self,
        model::{Check, Revision, ScenarioInfo, ScenarioText},
    },
    fleet::presence::Presence,
};

/// A little longer than an agent gives its k6.
const PATIENCE: Duration = Duration::from_secs(15);
/// More of what a script says of itself nobody reads.
const LONGEST_FAULT: usize = 2_000;

/// What to say where nobody could look.
pub const NOBODY_FREE: &str = "no agent was free";

/// Adds a scenario, or another revision of one. k6 looks at it first if an agent is free, and what it refuses is not
/// kept. Agents decide themselves whether they run what did not come with them.
#[utoipa::path(post, path = "/api/v1/scenarios", tag = "catalog",
    request_body = ScenarioText,
    responses((status = 201, body = ScenarioInfo), (status = 422, body = ErrorBody)))]
pub async fn add_scenario(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Input(text): Input<ScenarioText>,
) -> Result<(StatusCode, Json<ScenarioInfo>)> {
    Ok((StatusCode::CREATED, Json(add(&state, &presence, text, &caller).await?)))
}

/// Stores a scenario that makes sense, or another revision of one. A refusal names its field before a colon.
pub async fn add(state: &AppState, presence: &Presence, text: ScenarioText, by: &Caller) -> Result<ScenarioInfo> {
    let scenario = catalog::api::checked_scenario(text)?;
    // What came along was checked when it was made.
    let check = if scenarios::is_bundled(&scenario) { None } else { inspect(&state.work, presence, &scenario).await };
    match check.as_ref().and_then(|check| check.fault.as_deref()) {
        Some(fault) => Err(Error::Invalid(format!("script: {fault}"))),
        None => catalog::api::store_scenario(&state.db, &scenario, check.as_ref(), by).await,
    }
}

/// Which revision of a scenario.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RevisionQuery {
    /// Its hash; the newest if absent.
    revision: Option<String>,
}

/// Let k6 look at a stored scenario now. What it says is kept with the revision.
#[utoipa::path(post, path = "/api/v1/scenarios/{name}/check", tag = "catalog",
    params(("name" = String, Path), RevisionQuery),
    responses((status = 200, body = Revision), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn check_scenario(
    _: Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Asked(RevisionQuery { revision }): Asked<RevisionQuery>,
) -> Result<Json<Revision>> {
    Ok(Json(check(&state, &presence, &name, revision.as_deref()).await?))
}

/// Looks at a stored revision, the newest unless one is named; gives it with what was found.
pub async fn check(state: &AppState, presence: &Presence, name: &str, sha256: Option<&str>) -> Result<Revision> {
    let all = crate::catalog::store::revisions(&state.db.read, name).await?;
    let revision = all.into_iter().find(|revision| sha256.is_none_or(|wanted| wanted == revision.sha256));
    let missing = || Error::NotFound(format!("that revision of scenario {name:?}"));
    let revision = revision.ok_or_else(missing)?;
    let scenario =
        crate::catalog::store::revision(&state.db.read, name, &revision.sha256).await?.ok_or_else(missing)?;
    let check = inspect(&state.work, presence, &scenario).await;
    let check = check.ok_or_else(|| Error::Conflict(format!("{NOBODY_FREE} to check it; try again later")))?;
    crate::catalog::store::note_check(&state.db.write, name, &revision.sha256, &check).await?;
    Ok(Revision { check: Some(check), ..revision })
}

/// Asks one agent after the other until one has looked; none if nobody could.
async fn inspect(work: &Arc<Notify>, presence: &Presence, scenario: &Scenario) -> Option<Check> {
    let source_is_bundled = scenarios::is_bundled(scenario);
    let mut asked = Vec::new();
    loop {
        let id = Uuid::now_v7();
        let willing = |name: &str, any: bool| (any || source_is_bundled) && !asked.iter().any(|other| other == name);
        let question = presence.ask(id, scenario, willing)?;
        // Whoever is asked gets no run meanwhile, also if nobody waits for the answer any more.
        let Question { agent, connection, engine, answer } = question;
        let _free = Free { work, presence, agent: &agent, connection };
        let fault = match timeout(PATIENCE, answer).await {
            Ok(Ok(Finding::Valid)) => None,
            Ok(Ok(Finding::Invalid { message })) => Some(plain(&message).chars().take(LONGEST_FAULT).collect()),
            Ok(Ok(Finding::Declined { reason })) => {
                tracing::info!(agent, reason, "a script was not looked at");
                asked.push(agent.clone());
                continue;
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(agent, "a script was not looked at: no answer");
                asked.push(agent.clone());
                continue;
            }
        };
        return Some(Check { agent: agent.clone(), engine, at_ms: now_ms(), fault });
    }
}

/// Gives an agent back to the queue when it is dropped.
struct Free<'a> {
    work: &'a Notify,
    presence: &'a Presence,
    agent: &'a str,
    connection: Uuid,
}

impl Drop for Free<'_> {
    fn drop(&mut self) {
        self.presence.answered(self.agent, self.connection);
        self.work.notify_one();
    }
}
