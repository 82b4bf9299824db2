//! Saved views of the history.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Caller, Read, Submit},
        checks::checked_name,
    },
    runs::{
        store::views,
        view::{SavedView, ViewList, ViewQuery, canonical},
    },
};

/// List saved views of the history, by name.
#[utoipa::path(get, path = "/api/v1/views", tag = "runs", responses((status = 200, body = ViewList)))]
pub async fn list(_: Read, State(state): State<AppState>) -> Result<Json<ViewList>> {
    Ok(Json(ViewList { views: views::views(&state.db.read).await? }))
}

/// Save a view of the history under a name, for all users.
#[utoipa::path(put, path = "/api/v1/views/{name}", tag = "runs", params(("name" = String, Path)),
    request_body = ViewQuery,
    responses((status = 200, body = ViewList), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn save(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(ViewQuery { query }): Input<ViewQuery>,
) -> Result<Json<ViewList>> {
    let view = save_as(&state, &caller, &name, &query).await?;
    Ok(Json(ViewList { views: vec![view] }))
}

/// Remove a saved view; its runs stay.
#[utoipa::path(delete, path = "/api/v1/views/{name}", tag = "runs", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    remove_named(&state, &caller, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Saves a view; fails if another view has the name.
pub async fn save_as(state: &AppState, caller: &Caller, name: &str, query: &str) -> Result<SavedView> {
    let name = checked_name(name)?.into_string();
    let query = canonical(query).map_err(Error::Invalid)?;
    let view = SavedView { name, query, created_by: caller.name.clone(), created_at_ms: now_ms() };
    if !views::save_view(&state.db.write, &view).await? {
        let name = &view.name;
        return Err(Error::Conflict(format!(
            "name: the view {name:?} already exists; remove it or choose another name"
        )));
    }
    Ok(view)
}

/// Removes a view.
pub async fn remove_named(state: &AppState, caller: &Caller, name: &str) -> Result<()> {
    if views::remove_view(&state.db.write, name, &caller.does(Action::ViewRemoved, name)).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("view {name:?}")))
    }
}
