//! JSON API of saved presets.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::store::Stored;
use crate::{
    app::{
        error::{Error, ErrorBody, Input, QueryParams, Result},
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
        checks::checked_name,
        model::Scope,
    },
    experiments::{
        plan::Plan,
        presets::model::{Preset, PresetList},
        submission::check_settings,
    },
};

/// Largest size of the stored settings, in bytes: hundreds of targets.
const MAX_BYTES: usize = 64 << 10;

/// Whether an existing preset may be replaced.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SaveQuery {
    /// Replace a preset with this name. Default: refuse the name.
    #[serde(default)]
    replace: bool,
}

/// Lists the saved presets by name.
#[utoipa::path(get, path = "/api/v1/presets", tag = "experiments", responses((status = 200, body = PresetList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<PresetList>> {
    let stored = crate::experiments::presets::store::all(&state.db.read).await?;
    Ok(Json(PresetList { presets: stored.into_iter().map(|stored| stored.preset).collect() }))
}

/// Returns a saved preset.
#[utoipa::path(get, path = "/api/v1/presets/{name}", tag = "experiments", params(("name" = String, Path)),
    responses((status = 200, body = Preset), (status = 404, body = ErrorBody)))]
pub async fn show(_: Read, State(state): State<AppState>, Path(name): Path<String>) -> Result<Json<Preset>> {
    Ok(Json(find(&state, &name).await?.preset))
}

/// Saves settings for new runs under a name, for all users. The seed is not stored.
///
/// Targets, sizes and scenario may be empty: they are chosen when the preset is used.
#[utoipa::path(put, path = "/api/v1/presets/{name}", tag = "experiments", params(("name" = String, Path), SaveQuery),
    request_body = Plan,
    responses((status = 200, body = Preset), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn save(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    QueryParams(SaveQuery { replace }): QueryParams<SaveQuery>,
    Input(plan): Input<Plan>,
) -> Result<Json<Preset>> {
    Ok(Json(save_as(&state, &caller, &name, plan, replace).await?))
}

/// Deletes a saved preset. Only its creator and administrators may.
#[utoipa::path(delete, path = "/api/v1/presets/{name}", tag = "experiments", params(("name" = String, Path)),
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    delete_named(&state, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the preset with this name, or a 404.
pub async fn find(state: &AppState, name: &str) -> Result<Stored> {
    let found = crate::experiments::presets::store::one(&state.db.read, name).await?;
    found.ok_or_else(|| Error::NotFound(format!("preset {name:?}")))
}

/// Whether a caller may replace and delete a preset.
pub fn may_change(caller: &Caller, stored: &Stored) -> bool {
    // Tokens without an owner are known by their name.
    let is_creator = match (&stored.user_id, &caller.user_id) {
        (None, None) => stored.preset.created_by == caller.name,
        (creator, user) => creator == user,
    };
    caller.scope >= Scope::Admin || caller.scope >= Scope::Submit && is_creator
}

/// Fails with a 403 if a caller may not replace and delete a preset.
pub fn check_change(caller: &Caller, stored: &Stored) -> Result<()> {
    let Preset { name, created_by, .. } = &stored.preset;
    let refusal = || Error::Forbidden(format!("only {created_by} and administrators may change the preset {name:?}"));
    may_change(caller, stored).then_some(()).ok_or_else(refusal)
}

/// Saves a preset; fails if another one has the name, unless it `replaces` it.
pub async fn save_as(state: &AppState, caller: &Caller, name: &str, plan: Plan, replaces: bool) -> Result<Preset> {
    let name = checked_name(name)?.into_string();
    let plan = Plan { seed: None, ..check_settings(plan)? };
    if serde_json::to_vec(&plan).map_err(Error::internal)?.len() > MAX_BYTES {
        return Err(Error::Invalid("preset: too many targets, sizes or parameters".to_owned()));
    }
    let existing = crate::experiments::presets::store::all(&state.db.read).await?;
    let (change, created_by, user_id) = match existing.into_iter().find(|stored| stored.preset.name == name) {
        // An administrator who changes it does not take it over.
        Some(stored) if replaces => {
            check_change(caller, &stored)?;
            ("replaced", stored.preset.created_by, stored.user_id)
        }
        Some(_) => return Err(taken(&name)),
        None => ("saved", caller.name.clone(), caller.user_id.clone()),
    };
    let stored = Stored { preset: Preset { name, plan, created_by, saved_at_ms: now_ms() }, user_id };
    let act = caller.does(Action::PresetChanged, &stored.preset.name).with(json!({"change": change}));
    if !crate::experiments::presets::store::save(&state.db.write, &stored, replaces, &act).await? {
        return Err(taken(&stored.preset.name));
    }
    Ok(stored.preset)
}

fn taken(name: &str) -> Error {
    Error::Conflict(format!("name: the preset {name:?} already exists; replace it, or choose another name"))
}

/// Deletes a preset, or fails with a 403 or 404.
pub async fn delete_named(state: &AppState, caller: &Caller, name: &str) -> Result<()> {
    check_change(caller, &find(state, name).await?)?;
    let act = caller.does(Action::PresetChanged, name).with(json!({"change": "deleted"}));
    if crate::experiments::presets::store::delete(&state.db.write, name, &act).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("preset {name:?}")))
    }
}
