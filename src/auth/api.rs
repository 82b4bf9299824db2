//! JSON of login, registration, tokens and invitations.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use brewbench_agent::wire::now_ms;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;
use webauthn_rs::prelude::{Passkey, PublicKeyCredential, RegisterPublicKeyCredential};

use super::{
    Admin, Invite, MadeSecret, NewInvite, NewToken, Passkeys, Public, TokenList, caller::SESSION_COOKIE, queries,
    secret,
};
use crate::{
    error::{Error, ErrorBody, Input, Result},
    state::AppState,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
/// How long a session goes on.
const SESSION_DAYS: i64 = 30;
/// How long a registration link can be used.
pub const INVITE_LIFE_MS: i64 = 2 * DAY_MS;

/// The start of a ceremony.
#[derive(Debug, Serialize, ToSchema)]
pub struct Started {
    /// To be sent back at its end.
    ceremony: Uuid,
    /// For `navigator.credentials`, as the WebAuthn standard has it.
    options: serde_json::Value,
}

/// Who wants to register.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterStart {
    /// The secret of the registration link.
    token: String,
    /// The person's name.
    name: String,
}

/// The end of a registration.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterFinish {
    /// From the start.
    ceremony: Uuid,
    /// What `navigator.credentials.create` gave.
    #[schema(value_type = Object)]
    credential: RegisterPublicKeyCredential,
    /// What to call the passkey.
    passkey_name: Option<String>,
}

/// The end of a login.
#[derive(Debug, Deserialize, ToSchema)]
pub struct LoginFinish {
    /// From the start.
    ceremony: Uuid,
    /// What `navigator.credentials.get` gave.
    #[schema(value_type = Object)]
    credential: PublicKeyCredential,
}

/// Start to register a person by a one-time link.
#[utoipa::path(post, path = "/api/v1/auth/register/start", tag = "auth",
    responses((status = 200, body = Started), (status = 403, body = ErrorBody)))]
pub async fn register_start(
    _: Public,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    Input(asked): Input<RegisterStart>,
) -> Result<Json<Started>> {
    let name = checked_name(&asked.name)?;
    let invite = secret::hash(&asked.token);
    queries::open_invite(&state.db.read, &invite, now_ms()).await?.ok_or_else(link_spent)?;
    let (ceremony, options) = passkeys.start_registration(invite, name)?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

/// End the registration: the person exists and is logged in.
#[utoipa::path(post, path = "/api/v1/auth/register/finish", tag = "auth",
    responses((status = 204), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn register_finish(
    _: Public,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    headers: HeaderMap,
    jar: CookieJar,
    Input(asked): Input<RegisterFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let (registration, passkey) = passkeys.finish_registration(asked.ceremony, &asked.credential)?;
    let role = queries::open_invite(&state.db.read, &registration.invite, now_ms()).await?.ok_or_else(link_spent)?;
    let user = queries::User { id: registration.user_id.to_string(), name: registration.name, role };
    let credential = serde_json::to_string(&passkey).map_err(Error::internal)?;
    let name = asked.passkey_name.as_deref().map(str::trim).filter(|name| !name.is_empty()).unwrap_or("first passkey");
    let stored = queries::NewPasskey { credential_id: passkey.cred_id(), name, credential: &credential };
    queries::register(&state.db.write, &registration.invite, &user, &stored, now_ms()).await?;
    tracing::info!(user = user.name, role = user.role.as_str(), "registered");
    Ok((StatusCode::NO_CONTENT, log_in(&state, &user.id, &headers, jar).await?))
}

/// Start to log in with a passkey.
#[utoipa::path(post, path = "/api/v1/auth/login/start", tag = "auth", responses((status = 200, body = Started)))]
pub async fn login_start(_: Public, Extension(passkeys): Extension<Passkeys>) -> Result<Json<Started>> {
    let (ceremony, options) = passkeys.start_login()?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

/// End the login.
#[utoipa::path(post, path = "/api/v1/auth/login/finish", tag = "auth",
    responses((status = 204), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn login_finish(
    _: Public,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    headers: HeaderMap,
    jar: CookieJar,
    Input(asked): Input<LoginFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let id = passkeys.claimed(&asked.credential)?;
    let unknown = || Error::Forbidden("this passkey is not known here; ask for a registration link".to_owned());
    let (stored, user_id) = queries::passkey(&state.db.read, &id).await?.ok_or_else(unknown)?;
    let mut passkey: Passkey = serde_json::from_str(&stored).map_err(Error::internal)?;
    let proof = passkeys.finish_login(asked.ceremony, &asked.credential, &passkey)?;
    passkey.update_credential(&proof);
    let credential = serde_json::to_string(&passkey).map_err(Error::internal)?;
    queries::passkey_used(&state.db.write, &id, &credential, now_ms()).await?;
    Ok((StatusCode::NO_CONTENT, log_in(&state, &user_id, &headers, jar).await?))
}

async fn log_in(state: &AppState, user_id: &str, headers: &HeaderMap, jar: CookieJar) -> Result<CookieJar> {
    let session = secret::make(secret::Kind::Session);
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown device");
    let device: String = agent.chars().take(200).collect();
    let (now, hash) = (now_ms(), secret::hash(&session));
    queries::insert_session(&state.db.write, &hash, user_id, &device, now, now + SESSION_DAYS * DAY_MS).await?;
    let cookie = Cookie::build((SESSION_COOKIE, session))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(state.public_url.scheme() == "https")
        .max_age(time::Duration::days(SESSION_DAYS));
    Ok(jar.add(cookie))
}

/// All tokens, without their secrets.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "auth", responses((status = 200, body = TokenList)))]
pub async fn list_tokens(_: Admin, State(state): State<AppState>) -> Result<Json<TokenList>> {
    Ok(Json(TokenList { tokens: queries::tokens(&state.db.read).await? }))
}

/// Make a token. Its secret is in the answer and nowhere else.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "auth",
    responses((status = 201, body = MadeSecret), (status = 409, body = ErrorBody)))]
pub async fn new_token(
    _: Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewToken>,
) -> Result<(StatusCode, Json<MadeSecret>)> {
    Ok((StatusCode::CREATED, Json(make_token(&state.db, &asked).await?)))
}

/// Makes and stores a token.
pub async fn make_token(db: &crate::db::Db, asked: &NewToken) -> Result<MadeSecret> {
    let name = checked_name(&asked.name)?;
    let made = secret::make(secret::Kind::Token);
    let expires = asked.expires_in_days.map(|days| now_ms() + i64::from(days) * DAY_MS);
    queries::insert_token(&db.write, name, &secret::hash(&made), asked.scope, now_ms(), expires).await?;
    Ok(MadeSecret { name: name.to_owned(), secret: made })
}

/// End a token for good.
#[utoipa::path(delete, path = "/api/v1/tokens/{name}", tag = "auth",
    params(("name" = String, Path)), responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke_token(_: Admin, State(state): State<AppState>, Path(name): Path<String>) -> Result<StatusCode> {
    if !queries::revoke_token(&state.db.write, &name, now_ms()).await? {
        return Err(Error::NotFound(format!("token {name:?} that could be revoked")));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Make a one-time registration link.
#[utoipa::path(post, path = "/api/v1/invites", tag = "auth", responses((status = 201, body = Invite)))]
pub async fn invite(
    _: Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewInvite>,
) -> Result<(StatusCode, Json<Invite>)> {
    Ok((StatusCode::CREATED, Json(make_invite(&state.db, &state.public_url, asked.role).await?)))
}

/// Makes and stores an invitation to a site.
pub async fn make_invite(db: &crate::db::Db, site: &url::Url, role: super::Role) -> Result<Invite> {
    let made = secret::make(secret::Kind::Invite);
    let expires_at_ms = now_ms() + INVITE_LIFE_MS;
    queries::insert_invite(&db.write, &secret::hash(&made), role, now_ms(), expires_at_ms).await?;
    let mut url = site.join("register").map_err(Error::internal)?;

    url.set_query(Some(&format!("token={made}")));
    Ok(Invite { role, url: url.into(), expires_at_ms })
}

fn link_spent() -> Error {
    Error::Forbidden("this registration link was used or has expired; ask for another".to_owned())
}

/// A name that people, tokens and agents may have: visible, on one line, at most 80 characters.
pub fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
        return Err(Error::Invalid("name: 1 to 80 characters on one line".to_owned()));
    }
    Ok(name)
}
