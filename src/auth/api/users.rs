//! JSON API of users and invitations, for administrators.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::IntoParams;

use super::DAY_MS;
use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, QueryParams, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{action::Action, record},
        authority::EndingList,
        caller::{Admin, Caller},
        model::Role,
        proven::Proven,
        secret,
        store::invites::{self, InviteRow},
        users::{Invite, InviteList, NewInvite, NewRole, UserList},
    },
};

/// How long a registration link is valid.
pub const INVITE_LIFE_MS: i64 = 2 * DAY_MS;

/// List all users.
#[utoipa::path(get, path = "/api/v1/users", tag = "users", responses((status = 200, body = UserList)))]
pub async fn list(_: Admin, State(state): State<AppState>) -> Result<Json<UserList>> {
    Ok(Json(UserList { users: crate::auth::store::users(&state.db.read).await? }))
}

/// Change a user's role, at once. The last administrator cannot be demoted.
#[utoipa::path(put, path = "/api/v1/users/{name}", tag = "users", params(("name" = String, Path)),
    request_body = NewRole, responses((status = 200, body = EndingList, description = "what ended with the previous role"),
    (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn change_role(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(NewRole { role }): Input<NewRole>,
) -> Result<Json<EndingList>> {
    let mut transaction = state.db.write.begin().await?;
    let (before, ended) = crate::auth::store::change_role(&mut transaction, &name, role, now_ms()).await?;
    if before != role {
        let detail = json!({"before": before, "now": role, "ended": ended.ends.len()});
        record(&mut transaction, &admin.0.does(Action::RoleChanged, &name).with(detail)).await?;
    }
    transaction.commit().await?;
    state.events.rights_changed();
    Ok(Json(ended))
}

/// The change to preview.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct RoleChange {
    /// The new role; absent for a removal.
    role: Option<Role>,
}

/// Preview what ends if a user's role changes or the user is removed: what the user created for others, and for a
/// removal also the user's passkeys, sessions and tokens.
#[utoipa::path(get, path = "/api/v1/users/{name}/ends", tag = "users", params(("name" = String, Path), RoleChange),
    responses((status = 200, body = EndingList), (status = 404, body = ErrorBody)))]
pub async fn ends(
    _: Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
    QueryParams(RoleChange { role }): QueryParams<RoleChange>,
) -> Result<Json<EndingList>> {
    Ok(Json(would_end(&state.db, &name, role).await?))
}

/// Returns what would end with a new role, or with a removal if `role` is `None`.
pub async fn would_end(db: &Db, name: &str, role: Option<Role>) -> Result<EndingList> {
    let user = crate::auth::store::user(&db.read, name).await?;
    Ok(crate::auth::store::authority::endings(&mut *db.read.acquire().await?, &user.id, role, now_ms()).await?)
}

/// Remove a user. Passkeys, sessions and tokens end at once, as do invitations, one-time keys, share links and webhooks
/// that the user created. Runs stay. The last administrator cannot be removed.
#[utoipa::path(delete, path = "/api/v1/users/{name}", tag = "users", params(("name" = String, Path)),
    responses((status = 200, body = EndingList, description = "what ended"), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn remove(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Json<EndingList>> {
    let mut transaction = state.db.write.begin().await?;
    let (role, ended) = crate::auth::store::remove_user(&mut transaction, &name, now_ms()).await?;
    let detail = json!({"role": role, "ended": ended.ends.len()});
    record(&mut transaction, &admin.0.does(Action::PersonRemoved, &name).with(detail)).await?;
    transaction.commit().await?;
    state.events.rights_changed();
    Ok(Json(ended))
}

/// List open invitations, without their links.
#[utoipa::path(get, path = "/api/v1/invites", tag = "users", responses((status = 200, body = InviteList)))]
pub async fn list_invites(_: Admin, State(state): State<AppState>) -> Result<Json<InviteList>> {
    Ok(Json(InviteList { invites: invites::open_invites(&state.db.read, now_ms()).await? }))
}

/// Create a one-time registration link for a new user, or for an existing user who lost a passkey.
#[utoipa::path(post, path = "/api/v1/invites", tag = "users",
    request_body = NewInvite,
    responses((status = 201, body = Invite), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn invite(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Input(request): Input<NewInvite>,
) -> Result<(StatusCode, Json<Invite>)> {
    Ok((StatusCode::CREATED, Json(create_invite(&state.db, &state.public_url, &request, &admin.by()).await?)))
}

/// Creates and stores an invitation to a site.
pub async fn create_invite(db: &Db, site: &Url, request: &NewInvite, by: &Proven<Caller>) -> Result<Invite> {
    let user = match &request.user {
        Some(name) => Some(crate::auth::store::user(&db.read, name).await?),
        None if request.resets_passkeys => {
            return Err(Error::Invalid("resets_passkeys: a new user has no passkeys; set user".to_owned()));
        }
        None => None,
    };
    let role = user.as_ref().map_or(request.role, |user| user.role);
    let (token, now) = (secret::generate(secret::Kind::Invite), now_ms());
    let hash = secret::hash(&token);
    let row = InviteRow {
        hash: &hash,
        role,
        user_id: user.as_ref().map(|user| user.id.as_str()),
        resets_passkeys: request.resets_passkeys,
        created_by: Some(&by.name),
        made_by: by.user_id.as_deref(),
        expires_at_ms: now + INVITE_LIFE_MS,
    };
    let act = by.does(Action::InvitationMade, request.user.as_deref().unwrap_or_default());
    let mut transaction = db.write.begin().await?;
    invites::insert_invite(&mut transaction, &row, now).await?;
    record(&mut transaction, &act.with(json!({"role": role}))).await?;
    transaction.commit().await?;
    let mut url = site.join("register").map_err(Error::internal)?;
    url.set_query(Some(&format!("token={token}")));
    Ok(Invite { role, user: request.user.clone(), url: url.into(), expires_at_ms: row.expires_at_ms })
}

/// Withdraw an invitation. Its link stops working.
#[utoipa::path(delete, path = "/api/v1/invites/{id}", tag = "users", params(("id" = i64, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn withdraw_invite(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(id): Path<i64>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    if !invites::withdraw_invite(&mut transaction, id, now_ms()).await? {
        return Err(Error::NotFound(format!("open invitation {id}")));
    }
    record(&mut transaction, &caller.does(Action::InvitationWithdrawn, &id.to_string())).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
