//! Renames an agent, also in its runs. It must be idle, because its lease refers to its name.

use axum::{
    Extension, Json, Router,
    extract::{Path, RawForm, State},
    response::Redirect,
    routing::post,
};
use serde_json::json;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{self, action::Action},
        caller::{Admin, Caller},
        checks::checked_name,
    },
    dispatch::store::leases,
    fleet::{
        admin::found,
        model::{Agent, NewName},
        presence::Presence,
        store,
    },
    web::{address, form},
};

/// Routes of the page.
pub fn pages() -> Router<AppState> {
    Router::new().route("/agents/{name}/rename", post(post_rename))
}

/// Rename an agent, also in its runs. The agent must be idle.
#[utoipa::path(put, path = "/api/v1/agents/{name}/name", tag = "fleet", params(("name" = String, Path)),
    request_body = NewName,
    responses((status = 200, body = Agent), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn rename(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    Input(NewName { name: new }): Input<NewName>,
) -> Result<Json<Agent>> {
    let new = rename_agent(&state, &presence, &name, &new, &caller).await?;
    Ok(Json(found(&state, &presence, &new).await?))
}

/// `POST /agents/{name}/rename`
pub async fn post_rename(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
    RawForm(body): RawForm,
) -> Result<Redirect> {
    let typed = form::field(&body, "name").unwrap_or_default();
    let new = rename_agent(&state, &presence, &name, &typed, &caller).await?;
    Ok(Redirect::to(&format!("/agents/{}", address::segment(&new))))
}

/// Renames an agent and returns its checked new name.
async fn rename_agent(state: &AppState, presence: &Presence, name: &str, new: &str, by: &Caller) -> Result<String> {
    let new = checked_name(new)?.into_string();
    let mut transaction = state.db.write.begin().await?;
    if leases::holds_any(&mut transaction, name).await? {
        return Err(Error::Conflict(format!("{name} is busy: drain it, and rename it after its run")));
    }
    if !store::rename(&mut transaction, name, &new).await? {
        return Err(Error::NotFound(format!("agent {name:?}")));
    }
    audit::record(&mut transaction, &by.does(Action::AgentRenamed, name).with(json!({"to": new}))).await?;
    transaction.commit().await?;
    // After the reconnect it has its new name.
    presence.force_reconnect(name);
    state.events.agents_changed();
    state.work.notify_one();
    Ok(new)
}
