//! JSON of people and invitations, for administrators.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde_json::json;
use url::Url;

use super::DAY_MS;
use crate::{
    auth::{
        Admin, Caller, Invite, InviteList, NewInvite, NewRole, PersonList,
        audit::{Deed, note},
        queries::{
            self,
            invites::{self, InviteRow},
        },
        secret,
    },
    db::Db,
    error::{Error, ErrorBody, Input, Result},
    state::AppState,
};

/// How long a registration link can be used.
pub const INVITE_LIFE_MS: i64 = 2 * DAY_MS;

/// Everybody who has an account.
#[utoipa::path(get, path = "/api/v1/people", tag = "people", responses((status = 200, body = PersonList)))]
pub async fn list(_: Admin, State(state): State<AppState>) -> Result<Json<PersonList>> {
    Ok(Json(PersonList { people: queries::people(&state.db.read).await? }))
}

/// Make somebody a viewer, a member or an administrator. It holds at once. The last administrator stays one.
#[utoipa::path(put, path = "/api/v1/people/{name}", tag = "people", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn change_role(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
    Input(NewRole { role }): Input<NewRole>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    let before = queries::change_role(&mut transaction, &name, role).await?;
    if before != role {
        let act = caller.does(Deed::RoleChanged, &name).with(json!({"before": before, "now": role}));
        note(&mut transaction, &act).await?;
    }
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove a person: her passkeys, sessions and tokens end at once, her runs stay. The last administrator stays as well.
#[utoipa::path(delete, path = "/api/v1/people/{name}", tag = "people", params(("name" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn remove(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    let role = queries::remove_user(&mut transaction, &name).await?;
    note(&mut transaction, &caller.does(Deed::PersonRemoved, &name).with(json!({"role": role}))).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Invitations that can still be used, without their links.
#[utoipa::path(get, path = "/api/v1/invites", tag = "people", responses((status = 200, body = InviteList)))]
pub async fn list_invites(_: Admin, State(state): State<AppState>) -> Result<Json<InviteList>> {
    Ok(Json(InviteList { invites: invites::open_invites(&state.db.read, now_ms()).await? }))
}

/// Make a one-time registration link: for somebody new, or for a person who lost her passkey.
#[utoipa::path(post, path = "/api/v1/invites", tag = "people",
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
        Some(name) => Some(queries::user(&db.read, name).await?),
        None if asked.ends_passkeys => {
            return Err(Error::Invalid("ends_passkeys: somebody new has none; name a person".to_owned()));
        }
        None => None,
    };
    let role = user.as_ref().map_or(asked.role, |user| user.role);
    let (made, now) = (secret::make(secret::Kind::Invite), now_ms());
    let hash = secret::hash(&made);
    let row = InviteRow {
        hash: &hash,
        role,
        user_id: user.as_ref().map(|user| user.id.as_str()),
        ends_passkeys: asked.ends_passkeys,
        created_by: Some(&by.name),
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
