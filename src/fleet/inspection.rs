//! Checks whether k6 can run a script. The server never runs uploaded scripts: a free agent that accepts any script
//! checks it with its k6.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::{
    messages::{Finding, ScriptReport},
    now_ms,
    sanitize::plain,
    scenario::{REQUESTS, Scenario},
    scenarios,
};
use serde::Deserialize;
use tokio::{sync::Notify, time::timeout};
use utoipa::IntoParams;
use uuid::Uuid;

use super::presence::Inspection;
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        input::Input,
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    auth::caller::{Caller, Submit},
    catalog::{
        self,
        model::{Revision, ScenarioInfo, ScenarioText, ScriptCheck},
    },
    fleet::presence::Presence,
};

/// Timeout of a check: the agent's timeout for k6, and the time to fetch large files.
const TIMEOUT: Duration = Duration::from_secs(40);
/// The maximum length of a stored error, characters.
const MAX_ERROR_CHARS: usize = 2_000;

/// The message if no agent could check a script.
pub const NO_AGENT_FREE: &str = "no agent was free";

/// Add a scenario or a revision. If an agent is free, k6 checks the script first, and a script that it rejects is not
/// stored. Each agent decides whether it runs scripts that are not bundled.
#[utoipa::path(post, path = "/api/v1/scenarios", tag = "catalog",
    request_body = ScenarioText,
    responses((status = 201, body = ScenarioInfo), (status = 422, body = ErrorBody)))]
pub async fn add_scenario(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    _room: UploadPermit,
    Input(text): Input<ScenarioText>,
) -> Result<(StatusCode, Json<ScenarioInfo>)> {
    Ok((StatusCode::CREATED, Json(add(&state, &presence, text, &caller).await?)))
}

/// Checks and stores a scenario or a revision. An error begins with the field.
pub async fn add(state: &AppState, presence: &Presence, text: ScenarioText, by: &Caller) -> Result<ScenarioInfo> {
    let scenario = catalog::api::checked_scenario(text)?;
    // Bundled scripts need no check.
    if scenarios::is_bundled(&scenario) {
        return catalog::api::store_scenario(&state.db, &scenario, None, by).await;
    }
    let message = scenario.clone().for_message();
    catalog::store::scenarios::keep_large(&state.db.write, &scenario, &message).await?;
    let check = inspect(&state.work, presence, &message).await;
    match check.as_ref().and_then(|check| check.fault.as_deref()) {
        Some(fault) if scenario.entry == REQUESTS => Err(Error::Invalid(format!("files: {fault}"))),
        Some(fault) => Err(Error::Invalid(format!("script: {fault}"))),
        None => catalog::api::store_scenario(&state.db, &scenario, check.as_ref(), by).await,
    }
}

/// Selects a revision of a scenario.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RevisionQuery {
    /// Hash of the revision; the newest if absent.
    revision: Option<String>,
}

/// Check a stored scenario with k6 now. The result is stored with the revision.
#[utoipa::path(post, path = "/api/v1/scenarios/{name}/check", tag = "catalog",
    params(("name" = String, Path), RevisionQuery),
    responses((status = 200, body = Revision), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn check_scenario(
    _: Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    QueryParams(RevisionQuery { revision }): QueryParams<RevisionQuery>,
) -> Result<Json<Revision>> {
    Ok(Json(check(&state, &presence, &name, revision.as_deref()).await?))
}

/// Checks a stored revision, by default the newest; returns it with the result.
pub async fn check(state: &AppState, presence: &Presence, name: &str, sha256: Option<&str>) -> Result<Revision> {
    let all = crate::catalog::store::scenarios::revisions(&state.db.read, name).await?;
    let revision = all.into_iter().find(|revision| sha256.is_none_or(|wanted| wanted == revision.sha256));
    let missing = || Error::NotFound(format!("such a revision of scenario {name:?}"));
    let revision = revision.ok_or_else(missing)?;
    let scenario = crate::catalog::store::scenarios::revision(&state.db.read, name, &revision.sha256)
        .await?
        .ok_or_else(missing)?;
    let check = inspect(&state.work, presence, &scenario.for_message()).await;
    let check =
        check.ok_or_else(|| Error::Conflict(format!("{NO_AGENT_FREE} to check the script; try again later")))?;
    crate::catalog::store::scenarios::note_check(&state.db.write, name, &revision.sha256, &check).await?;
    Ok(Revision { check: Some(check), ..revision })
}

/// Asks one agent after another until one has checked the script; `None` if none could.
async fn inspect(work: &Arc<Notify>, presence: &Presence, scenario: &Scenario) -> Option<ScriptCheck> {
    let source_is_bundled = scenarios::is_bundled(scenario);
    let mut tried = Vec::new();
    loop {
        let id = Uuid::now_v7();
        let is_able = |name: &str, any: bool| (any || source_is_bundled) && !tried.iter().any(|other| other == name);
        // The agent gets no runs during the check; the guard frees it, also if this future is dropped.
        let Inspection { agent, connection, engine, finding } = presence.start_inspection(id, scenario, is_able)?;
        let _release = Release { work, presence, agent: &agent, connection };
        let (fault, report) = match timeout(TIMEOUT, finding).await {
            Ok(Ok(Finding::Valid(report))) => (None, report),
            Ok(Ok(Finding::Invalid { message })) => {
                (Some(plain(&message).chars().take(MAX_ERROR_CHARS).collect()), ScriptReport::default())
            }
            Ok(Ok(Finding::Declined { reason })) => {
                tracing::info!(agent, reason, "the agent declined to check a script");
                tried.push(agent.clone());
                continue;
            }
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(agent, "the agent did not answer a script check");
                tried.push(agent.clone());
                continue;
            }
        };
        return Some(ScriptCheck { agent: agent.clone(), engine, at_ms: now_ms(), fault, report });
    }
}

/// Releases an agent for runs on drop.
struct Release<'a> {
    work: &'a Notify,
    presence: &'a Presence,
    agent: &'a str,
    connection: Uuid,
}

impl Drop for Release<'_> {
    fn drop(&mut self) {
        self.presence.end_inspection(self.agent, self.connection);
        self.work.notify_one();
    }
}
