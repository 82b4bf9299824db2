//! JSON of people and invitations, for administrators.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;
use serde_json::json;
use url::Url;
use utoipa::IntoParams;

use super::DAY_MS;
use crate::{
    app::{
        db::Db,
        error::{Asked, Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::{deed::Deed, note},
        authority::EndingList,
        caller::{Admin, Caller},
        model::Role,
        people::{Invite, InviteList, NewInvite, NewRole, PersonList},
        secret,
        store::invites::{self, InviteRow},
    },
};

/// How long a registration link can be used.
pub const INVITE_LIFE_MS: i64 = 2 * DAY_MS;

/// Everybody who has an account.
#[utoipa::path(get, path = "/api/v1/people", tag = "people", responses((status = 200, body = PersonList)))]
pub async fn list(_: Admin, State(state): State<AppState>) -> Result<Json<PersonList>> {
    Ok(Json(PersonList { people: crate::auth::store::people(&state.db.read).await? }))
}

/// Make somebody a viewer, a member or an administrator. It holds at once. The last administrator stays one.
#[utoipa::path(put, path = "/api/v1/people/{name}", tag = "people", params(("name" = String, Path)),
    request_body = NewRole, responses((status = 200, body = EndingList, description = "what ended with the role of before"),
    (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn change_role(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(NewRole { role }): Input<NewRole>,
) -> Result<Json<EndingList>> {
    if role == Role::Admin {
        caller.proven()?;
    }
    let mut transaction = state.db.write.begin().await?;
    let (before, ended) = crate::auth::store::change_role(&mut transaction, &name, role, now_ms()).await?;
    if before != role {
        let detail = json!({"before": before, "now": role, "ended": ended.ends.len()});
        note(&mut transaction, &caller.does(Deed::RoleChanged, &name).with(detail)).await?;
    }
    transaction.commit().await?;
    state.events.people_changed();
    Ok(Json(ended))
}

/// What somebody might become; nothing for a removal.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Becomes {
    /// The role; absent for a removal.
    role: Option<Role>,
}

/// What would end if somebody got another role or was removed: what she made for others, and at a removal also her
/// passkeys, sessions and tokens.
#[utoipa::path(get, path = "/api/v1/people/{name}/ends", tag = "people", params(("name" = String, Path), Becomes),
    responses((status = 200, body = EndingList), (status = 404, body = ErrorBody)))]
pub async fn ends(
    _: Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Asked(Becomes { role }): Asked<Becomes>,
) -> Result<Json<EndingList>> {
    Ok(Json(would_end(&state.db, &name, role).await?))
}

/// What would end if somebody got a role, or was removed where there is none.
pub async fn would_end(db: &Db, name: &str, role: Option<Role>) -> Result<EndingList> {
    let user = crate::auth::store::user(&db.read, name).await?;
    Ok(crate::auth::store::authority::endings(&mut *db.read.acquire().await?, &user.id, role, now_ms()).await?)
}

/// Remove a person: her passkeys, sessions and tokens end at once, and so do the invitations, one-time keys, share links
/// and webhooks that she made; her runs stay. The last administrator stays as well.
#[utoipa::path(delete, path = "/api/v1/people/{name}", tag = "people", params(("name" = String, Path)),
    responses((status = 200, body = EndingList, description = "what ended"), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Json<EndingList>> {
    let mut transaction = state.db.write.begin().await?;
    let (role, ended) = crate::auth::store::remove_user(&mut transaction, &name, now_ms()).await?;
    let detail = json!({"role": role, "ended": ended.ends.len()});
    note(&mut transaction, &caller.does(Deed::PersonRemoved, &name).with(detail)).await?;
    transaction.commit().await?;
    state.events.people_changed();
    Ok(Json(ended))
}

/// Invitations that can still be used, without their links.
#[utoipa::path(get, path = "/api/v1/invites", tag = "people", responses((status = 200, body = InviteList)))]
pub async fn list_invites(_: Admin, State(state): State<AppState>) -> Result<Json<InviteList>> {
    Ok(Json(InviteList { invites: invites::open_invites(&state.db.read, now_ms()).await? }))
}

/// Make a one-time registration link: for somebody new, or for a person who lost her passkey.
#[utoipa::path(post, path = "/api/v1/invites", tag = "people",
    request_body = NewInvite,
    responses((status = 201, body = Invite), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn invite(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewInvite>,
) -> Result<(StatusCode, Json<Invite>)> {
    Ok((StatusCode::CREATED, Json(make_invite(&state.db, &state.public_url, &asked, &caller).await?)))
}

/// Makes and stores an invitation to a site.
pub async fn make_invite(db: &Db, site: &Url, asked: &NewInvite, by: &Caller) -> Result<Invite> {
    let user = match &asked.person {
        Some(name) => Some(crate::auth::store::user(&db.read, name).await?),
        None if asked.ends_passkeys => {
            return Err(Error::Invalid("ends_passkeys: somebody new has none; name a person".to_owned()));
        }
        None => None,
    };
    let role = user.as_ref().map_or(asked.role, |user| user.role);
    // A recovery link is a way into the account of somebody else.
    if role == Role::Admin || user.is_some() {
        by.proven()?;
    }
    let (made, now) = (secret::make(secret::Kind::Invite), now_ms());
    let hash = secret::hash(&made);
    let row = InviteRow {
        hash: &hash,
        role,
        user_id: user.as_ref().map(|user| user.id.as_str()),
        ends_passkeys: asked.ends_passkeys,
        created_by: Some(&by.name),
        made_by: by.user_id.as_deref(),
        expires_at_ms: now + INVITE_LIFE_MS,
    };
    let act = by.does(Deed::InvitationMade, asked.person.as_deref().unwrap_or_default());
    let mut transaction = db.write.begin().await?;
    invites::insert_invite(&mut transaction, &row, now).await?;
    note(&mut transaction, &act.with(json!({"role": role}))).await?;
    transaction.commit().await?;
    let mut url = site.join("register").map_err(Error::internal)?;
    url.set_query(Some(&format!("token={made}")));
    Ok(Invite { role, person: asked.person.clone(), url: url.into(), expires_at_ms: row.expires_at_ms })
}

/// Withdraw an invitation: its link opens nothing any more.
#[utoipa::path(delete, path = "/api/v1/invites/{id}", tag = "people", params(("id" = i64, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn withdraw_invite(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(id): Path<i64>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    if !invites::withdraw_invite(&mut transaction, id, now_ms()).await? {
        return Err(Error::NotFound(format!("invitation {id} that could still be used")));
    }
    note(&mut transaction, &caller.does(Deed::InvitationWithdrawn, &id.to_string())).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
