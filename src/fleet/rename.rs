//! Another name for an agent. Its runs get it as well: they were done by the same machine. It must not be at work, because
//! what it does is known by its name.

use axum::{
    Extension, Json, Router,
    extract::{Path, RawForm, State},
    response::Redirect,
    routing::post,
};
use serde_json::json;

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::{self, deed::Deed},
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

/// The pages of this.
pub fn pages() -> Router<AppState> {
    Router::new().route("/agents/{name}/rename", post(post_rename))
}

/// Give an agent another name, in all its runs as well. It must not be at work.
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
    let new = call_it(&state, &presence, &name, &new, &caller).await?;
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
    let new = call_it(&state, &presence, &name, &typed, &caller).await?;
    Ok(Redirect::to(&format!("/agents/{}", address::segment(&new))))
}

/// Renames; gives the name as it is kept.
async fn call_it(state: &AppState, presence: &Presence, name: &str, new: &str, by: &Caller) -> Result<String> {
    let new = checked_name(new)?.into_string();
    let mut transaction = state.db.write.begin().await?;
    if leases::holds_any(&mut transaction, name).await? {
        return Err(Error::Conflict(format!("{name} is at work: drain it, and rename it when it has finished")));
    }
    if !store::rename(&mut transaction, name, &new).await? {
        return Err(Error::NotFound(format!("agent {name:?}")));
    }
    audit::note(&mut transaction, &by.does(Deed::AgentRenamed, name).with(json!({"to": new}))).await?;
    transaction.commit().await?;
    // It connects anew, and is then known by its new name.
    presence.hang_up(name);
    state.events.agents_changed();
    state.work.notify_one();
    Ok(new)
}
