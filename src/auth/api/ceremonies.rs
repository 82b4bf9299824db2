//! Login and registration with a passkey. Each starts with options for the browser and ends with its response.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use axum_extra::extract::{
    CookieJar,
    cookie::{Cookie, SameSite},
};
use brewbench_wire::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sqlx::SqliteConnection;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;
use webauthn_rs::prelude::{Passkey, PublicKeyCredential, RegisterPublicKeyCredential};

use super::DAY_MS;
use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::SmallInput,
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, action::Action, is_valid_user_name, record},
        caller::{Finish, SignIn, SignedIn, session_cookie},
        checks::{checked_line, checked_name},
        device::device,
        passkeys::{By, Passkeys, gone},
        proven::is_proven,
        refusals::{self, Refusals, Refused},
        secret,
        store::{
            User, insert_user,
            invites::{spend_invite, usable_invite},
            sessions::{
                NewPasskey, NewSession, credential_ids, end_session_by_hash, insert_passkey, insert_session, passkey,
                passkey_used, record_confirmation, remove_passkeys_and_sessions,
            },
        },
    },
};

/// Lifetime of a session, days.
const SESSION_DAYS: i64 = 30;

/// A started ceremony.
#[derive(Debug, Serialize, ToSchema)]
pub struct Started {
    /// Send it back to finish the ceremony.
    pub ceremony: Uuid,
    /// Options for `navigator.credentials`, as defined by WebAuthn.
    pub options: serde_json::Value,
}

/// Starts a registration.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterStart {
    /// The secret of the registration link.
    token: String,
    /// Name of the new user. Ignored if the link is for an existing user.
    name: Option<String>,
}

/// Finishes a registration.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterFinish {
    /// The `ceremony` that the start returned.
    pub ceremony: Uuid,
    /// Result of `navigator.credentials.create`.
    #[schema(value_type = Object)]
    pub credential: RegisterPublicKeyCredential,
    /// Name for the passkey.
    pub passkey_name: Option<String>,
}

/// Finishes a login.
#[derive(Debug, Deserialize, ToSchema)]
pub struct LoginFinish {
    /// The `ceremony` that the start returned.
    ceremony: Uuid,
    /// Result of `navigator.credentials.get`.
    #[schema(value_type = Object)]
    credential: PublicKeyCredential,
}

/// Start registering a passkey with a one-time link, for a new user or for the existing user of the link.
#[utoipa::path(post, path = "/api/v1/auth/register/start", tag = "auth", request_body = RegisterStart,
    responses((status = 200, body = Started),
    (status = 403, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub async fn register_start(
    caller: SignIn,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    SmallInput(request): SmallInput<RegisterStart>,
) -> Result<Json<Started>> {
    let hash = secret::hash(&request.token);
    let invite = usable_invite(&state.db.read, &hash, now_ms()).await.inspect_err(|fault| {
        if matches!(fault, Error::Forbidden(_)) {
            refusals::log(Refused::Invitation, caller.address);
        }
    })?;
    let (id, name, existing) = match invite.user {
        Some((id, name)) => {
            // After a loss, the same authenticator may register again.
            let existing =
                if invite.resets_passkeys { Vec::new() } else { credential_ids(&state.db.read, &id).await? };
            (Uuid::parse_str(&id).map_err(Error::internal)?, name, existing)
        }
        None => (Uuid::new_v4(), user_name(request.name.as_deref().unwrap_or_default())?, Vec::new()),
    };
    let (ceremony, options) = passkeys.start_registration(By::Invite(hash), id, &name, existing)?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

fn user_name(text: &str) -> Result<String> {
    let name = checked_name(text)?.into_string();
    if !is_valid_user_name(&name) {
        return Err(Error::Invalid(format!("name: {name:?} is reserved by the audit log; choose another")));
    }
    Ok(name)
}

/// Finish the registration: stores the user and the passkey and logs the user in.
#[utoipa::path(post, path = "/api/v1/auth/register/finish", tag = "auth", request_body = RegisterFinish,
    responses((status = 204),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub async fn register_finish(
    finish: Finish,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    headers: HeaderMap,
    jar: CookieJar,
    SmallInput(request): SmallInput<RegisterFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let Finish { address } = finish.checked(passkeys.is_open(request.ceremony), &state)?;
    let (registration, passkey) = passkeys.finish_registration(request.ceremony, &request.credential)?;
    let By::Invite(hash) = &registration.by else { return Err(gone()) };
    let invite = usable_invite(&state.db.read, hash, now_ms()).await?;
    let credential = serde_json::to_string(&passkey).map_err(Error::internal)?;
    let passkey_name = passkey_name(request.passkey_name.as_deref())?;
    let stored = NewPasskey { credential_id: passkey.cred_id(), name: passkey_name, credential: &credential };
    let user = User { id: registration.user_id.to_string(), name: registration.name, role: invite.role };
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    spend_invite(&mut transaction, hash, now).await?;
    let mut act = AuditEvent::new(&user.name, address, Action::Registered, passkey_name);
    if invite.user.is_some() {
        act = AuditEvent { action: Action::Recovered, ..act }
            .with(json!({"earlier_passkeys_ended": invite.resets_passkeys}));
        if invite.resets_passkeys {
            remove_passkeys_and_sessions(&mut transaction, &user.id).await?;
        }
    } else {
        act = act.with(json!({"role": user.role}));
        insert_user(&mut transaction, &user, now).await?;
    }
    insert_passkey(&mut transaction, &user.id, &stored, now).await?;
    end_previous_session(&mut transaction, &state.public_url, &jar).await?;
    let session = begin_session(&mut transaction, &user.id, &headers, now).await?;
    act = session.noted(act);
    record(&mut transaction, &act).await?;
    transaction.commit().await?;
    state.limits.tries.signed_in(address);
    if invite.resets_passkeys {
        state.events.rights_changed();
    }
    tracing::info!(user = user.name, role = user.role.as_str(), "{}", act.action.as_str());
    Ok((StatusCode::NO_CONTENT, jar.add(cookie(&state.public_url, session.secret))))
}

/// Checks the requested name of a passkey; the default is `Passkey`.
pub fn passkey_name(requested: Option<&str>) -> Result<&str> {
    checked_line(requested.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("Passkey"))
}

/// Start a login with a passkey.
#[utoipa::path(post, path = "/api/v1/auth/login/start", tag = "auth",
    responses((status = 200, body = Started), (status = 429, body = ErrorBody)))]
pub async fn login_start(_: SignIn, Extension(passkeys): Extension<Passkeys>) -> Result<Json<Started>> {
    let (ceremony, options) = passkeys.start_login()?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

/// Finish the login.
#[utoipa::path(post, path = "/api/v1/auth/login/finish", tag = "auth", request_body = LoginFinish,
    responses((status = 204),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub async fn login_finish(
    finish: Finish,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    Extension(refusals): Extension<Refusals>,
    headers: HeaderMap,
    jar: CookieJar,
    SmallInput(request): SmallInput<LoginFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let Finish { address } = finish.checked(passkeys.is_open(request.ceremony), &state)?;
    let (user, id, credential) = match verify_login(&state, &passkeys, &request).await {
        Ok(verified) => verified,
        Err(fault) => {
            passkeys.end(request.ceremony);
            refusals.add(address, &fault.to_string());
            return Err(fault);
        }
    };
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    passkey_used(&mut transaction, &id, &credential, now).await?;
    end_previous_session(&mut transaction, &state.public_url, &jar).await?;
    let session = begin_session(&mut transaction, &user.id, &headers, now).await?;
    record(&mut transaction, &session.noted(AuditEvent::new(&user.name, address, Action::LoggedIn, ""))).await?;
    transaction.commit().await?;
    state.limits.tries.signed_in(address);
    Ok((StatusCode::NO_CONTENT, jar.add(cookie(&state.public_url, session.secret))))
}

/// Start confirming your identity with a passkey, as sensitive actions require. Returns 204 if confirmed recently.
#[utoipa::path(post, path = "/api/v1/auth/confirm/start", tag = "auth", responses((status = 200, body = Started),
    (status = 204, description = "the identity was confirmed recently"), (status = 429, body = ErrorBody)))]
pub async fn confirm_start(_: SignIn, person: SignedIn, Extension(passkeys): Extension<Passkeys>) -> Result<Response> {
    if is_proven(&person.caller) {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (ceremony, options) = passkeys.start_login()?;
    let options = serde_json::to_value(options).map_err(Error::internal)?;
    Ok(Json(Started { ceremony, options }).into_response())
}

/// Finish the confirmation: this session may perform sensitive actions for 15 minutes. It gets a new cookie.
#[utoipa::path(post, path = "/api/v1/auth/confirm/finish", tag = "auth", request_body = LoginFinish,
    responses((status = 204), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
    (status = 429, body = ErrorBody)))]
pub async fn confirm_finish(
    finish: Finish,
    person: SignedIn,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    Extension(refusals): Extension<Refusals>,
    jar: CookieJar,
    SmallInput(request): SmallInput<LoginFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let Finish { address } = finish.checked(passkeys.is_open(request.ceremony), &state)?;
    let verified = verify_login(&state, &passkeys, &request).await.and_then(|(user, id, credential)| {
        let is_own = user.id == person.user_id;
        let foreign = || Error::Forbidden(format!("this passkey belongs to {}; use one of yours", user.name));
        if is_own { Ok((id, credential)) } else { Err(foreign()) }
    });
    let (id, credential) = verified.inspect_err(|fault| {
        // A ceremony allows one attempt.
        passkeys.end(request.ceremony);
        refusals.add(address, &fault.to_string());
    })?;
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    passkey_used(&mut transaction, &id, &credential, now).await?;
    let session = secret::generate(secret::Kind::Session);
    record_confirmation(&mut transaction, &person.session, &secret::hash(&session), now).await?;
    record(&mut transaction, &person.caller.does(Action::Confirmed, "")).await?;
    transaction.commit().await?;
    Ok((StatusCode::NO_CONTENT, jar.add(cookie(&state.public_url, session))))
}

/// Ends the session of the browser before it logs in again: its secret may have leaked.
async fn end_previous_session(connection: &mut SqliteConnection, site: &Url, jar: &CookieJar) -> sqlx::Result<()> {
    match jar.get(session_cookie(site)) {
        Some(previous) => end_session_by_hash(connection, &secret::hash(previous.value())).await,
        None => Ok(()),
    }
}

/// Verifies a login; returns the user, the credential id and the updated credential to store.
async fn verify_login(state: &AppState, passkeys: &Passkeys, request: &LoginFinish) -> Result<(User, Vec<u8>, String)> {
    let id = passkeys.claimed(&request.credential)?;
    let unknown =
        || Error::Forbidden("this passkey is unknown; ask an administrator for a registration link".to_owned());
    let (stored, user) = passkey(&state.db.read, &id).await?.ok_or_else(unknown)?;
    let mut passkey: Passkey = serde_json::from_str(&stored).map_err(Error::internal)?;
    let proof = passkeys.finish_login(request.ceremony, &request.credential, &passkey)?;
    passkey.update_credential(&proof);
    Ok((user, id, serde_json::to_string(&passkey).map_err(Error::internal)?))
}

/// A session that has just begun.
struct Begun {
    id: i64,
    secret: String,
    device: String,
}

impl Begun {
    /// Adds the session to the audit entry of a login, for notices to the user.
    fn noted(&self, act: AuditEvent) -> AuditEvent {
        let Value::Object(mut detail) = act.detail.clone() else { return act };
        detail.insert("device".to_owned(), json!(device(&self.device)));
        detail.insert("session".to_owned(), json!(self.id));
        act.with(Value::Object(detail))
    }
}

async fn begin_session(
    connection: &mut SqliteConnection,
    user_id: &str,
    headers: &HeaderMap,
    now: i64,
) -> Result<Begun> {
    let session_secret = secret::generate(secret::Kind::Session);
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown device");
    let device: String = agent.chars().take(200).collect();
    let hash = secret::hash(&session_secret);
    let session = NewSession { hash: &hash, user_id, device: &device, expires_at_ms: now + SESSION_DAYS * DAY_MS };
    let id = insert_session(connection, &session, now).await?;
    Ok(Begun { id, secret: session_secret, device })
}

fn cookie(public_url: &Url, session: String) -> Cookie<'static> {
    Cookie::build((session_cookie(public_url), session))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(public_url.scheme() == "https")
        .max_age(time::Duration::days(SESSION_DAYS))
        .build()
}

/// Removes the session cookie. A browser accepts this only with the attributes that the cookie was set with.
pub fn without_cookie(public_url: &Url, jar: CookieJar) -> CookieJar {
    let removed = Cookie::build(session_cookie(public_url)).path("/").secure(public_url.scheme() == "https");
    jar.remove(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_over_tls_is_bound_to_its_host() {
        let url = |text: &str| text.parse::<Url>().expect("an address");
        let plain = cookie(&url("http://localhost:8377/"), "bbs_x".to_owned()).to_string();
        assert_eq!(plain, "brewbench_session=bbs_x; HttpOnly; SameSite=Lax; Path=/; Max-Age=2592000");
        let secure = cookie(&url("https://bench.example.com/"), "bbs_x".to_owned()).to_string();
        assert!(secure.starts_with("__Host-brewbench_session=bbs_x; ") && secure.contains("; Secure"), "{secure}");
        assert!(secure.contains("; Path=/") && !secure.contains("Domain"), "{secure}");
    }
}
