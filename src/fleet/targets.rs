//! Removes targets that no connected agent offers and no run uses. JSON API and actions of the pages.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Admin, Caller},
    },
    catalog::store::names,
    fleet::presence::Presence,
};

/// Removed targets.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RemovedTargets {
    /// Their names, in order.
    pub removed: Vec<String>,
}

/// Remove a target that no connected agent offers and no run uses, with all its versions.
#[utoipa::path(delete, path = "/api/v1/targets/{name}", tag = "catalog", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    remove_one(&state, &presence, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove all targets that no connected agent offers and no run uses.
#[utoipa::path(delete, path = "/api/v1/targets", tag = "catalog", responses((status = 200, body = RemovedTargets)))]
pub async fn remove_unused(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Json<RemovedTargets>> {
    Ok(Json(RemovedTargets { removed: remove_all(&state, &presence, &caller).await? }))
}

/// Removes an unused target.
pub async fn remove_one(state: &AppState, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    removable(state, presence, name).await?;
    let removed =
        names::remove(&state.db.write, &[name.to_owned()], |name| by.does(Action::TargetRemoved, name)).await?;
    if removed.is_empty() { Err(is_used(name)) } else { Ok(()) }
}

/// Removes all unused targets and returns their names.
pub async fn remove_all(state: &AppState, presence: &Presence, by: &Caller) -> Result<Vec<String>> {
    let unused = unused(state, presence).await?;
    Ok(names::remove(&state.db.write, &unused, |name| by.does(Action::TargetRemoved, name)).await?)
}

/// Returns the targets that no connected agent offers and no run uses.
pub async fn unused(state: &AppState, presence: &Presence) -> Result<Vec<String>> {
    let offered = presence.offered();
    let unused = names::unused(&state.db.read).await?;
    Ok(unused.into_iter().filter(|name| !offered.contains(name)).collect())
}

/// Fails with the reason if a target cannot be removed.
pub async fn removable(state: &AppState, presence: &Presence, name: &str) -> Result<()> {
    if !names::is_known(&state.db.read, name).await? {
        return Err(Error::NotFound(format!("target {name:?}")));
    }
    if presence.offered().contains(name) {
        return Err(Error::Conflict(format!(
            "a connected agent offers {name:?}; remove its manifest on the agent first"
        )));
    }
    if names::has_runs(&state.db.read, name).await? { Err(is_used(name)) } else { Ok(()) }
}

fn is_used(name: &str) -> Error {
    Error::Conflict(format!("runs use {name:?}; it can be removed once they are deleted"))
}
