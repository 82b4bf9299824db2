//! Login and registration with a passkey: each starts with options for the browser and ends with what it answers.

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
use brewbench_agent::wire::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::SqliteConnection;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;
use webauthn_rs::prelude::{Passkey, PublicKeyCredential, RegisterPublicKeyCredential};

use super::DAY_MS;
use crate::{
    app::{
        error::{Error, ErrorBody, Result, SmallInput},
        state::AppState,
    },
    auth::{
        audit::{Act, deed::Deed, is_name_of_a_person, note},
        caller::{Finish, SignIn, SignedIn, session_cookie},
        checks::{checked_line, checked_name},
        passkeys::{By, Passkeys, gone},
        refusals::Refusals,
        secret,
        store::{
            User, insert_user,
            invites::{spend_invite, usable_invite},
            sessions::{
                NewPasskey, NewSession, credential_ids, end_everything, end_session_by_hash, insert_passkey,
                insert_session, passkey, passkey_used, prove,
            },
        },
    },
};

/// How long a session goes on.
const SESSION_DAYS: i64 = 30;

/// The start of a ceremony.
#[derive(Debug, Serialize, ToSchema)]
pub struct Started {
    /// To be sent back at its end.
    pub ceremony: Uuid,
    /// For `navigator.credentials`, as the WebAuthn standard has it.
    pub options: serde_json::Value,
}

/// Who wants to register.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterStart {
    /// The secret of the registration link.
    token: String,
    /// The person's name; not asked for where the link is for somebody who is there already.
    name: Option<String>,
}

/// The end of a registration.
#[derive(Debug, Deserialize, ToSchema)]
pub struct RegisterFinish {
    /// From the start.
    pub ceremony: Uuid,
    /// What `navigator.credentials.create` gave.
    #[schema(value_type = Object)]
    pub credential: RegisterPublicKeyCredential,
    /// What to call the passkey.
    pub passkey_name: Option<String>,
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

/// Start to register a passkey by a one-time link: of somebody new, or of the person whom the link is for.
#[utoipa::path(post, path = "/api/v1/auth/register/start", tag = "auth", request_body = RegisterStart,
    responses((status = 200, body = Started),
    (status = 403, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub async fn register_start(
    _: SignIn,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    SmallInput(asked): SmallInput<RegisterStart>,
) -> Result<Json<Started>> {
    let hash = secret::hash(&asked.token);
    let invite = usable_invite(&state.db.read, &hash, now_ms()).await?;
    let (id, name, there) = match invite.person {
        Some((id, name)) => {
            // A device that is lost can't be asked; one that is there may take another.
            let there = if invite.ends_passkeys { Vec::new() } else { credential_ids(&state.db.read, &id).await? };
            (Uuid::parse_str(&id).map_err(Error::internal)?, name, there)
        }
        None => (Uuid::new_v4(), person_name(asked.name.as_deref().unwrap_or_default())?, Vec::new()),
    };
    let (ceremony, options) = passkeys.start_registration(By::Invite(hash), id, &name, there)?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

fn person_name(text: &str) -> Result<String> {
    let name = checked_name(text)?.into_string();
    if !is_name_of_a_person(&name) {
        return Err(Error::Invalid(format!(
            "name: {name:?} is what the audit log calls somebody else; choose another"
        )));
    }
    Ok(name)
}

/// End the registration: the person is there, has the passkey and is logged in.
#[utoipa::path(post, path = "/api/v1/auth/register/finish", tag = "auth", request_body = RegisterFinish,
    responses((status = 204),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub async fn register_finish(
    finish: Finish,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    headers: HeaderMap,
    jar: CookieJar,
    SmallInput(asked): SmallInput<RegisterFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let Finish { address } = finish.checked(passkeys.is_open(asked.ceremony), &state)?;
    let (registration, passkey) = passkeys.finish_registration(asked.ceremony, &asked.credential)?;
    let By::Invite(hash) = &registration.by else { return Err(gone()) };
    let invite = usable_invite(&state.db.read, hash, now_ms()).await?;
    let credential = serde_json::to_string(&passkey).map_err(Error::internal)?;
    let passkey_name = passkey_name(asked.passkey_name.as_deref())?;
    let stored = NewPasskey { credential_id: passkey.cred_id(), name: passkey_name, credential: &credential };
    let user = User { id: registration.user_id.to_string(), name: registration.name, role: invite.role };
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    spend_invite(&mut transaction, hash, now).await?;
    let mut act = Act::new(&user.name, address, Deed::Registered, passkey_name);
    if invite.person.is_some() {
        act = Act { what: Deed::Recovered, ..act }.with(json!({"earlier_passkeys_ended": invite.ends_passkeys}));
        if invite.ends_passkeys {
            end_everything(&mut transaction, &user.id).await?;
        }
    } else {
        act = act.with(json!({"role": user.role}));
        insert_user(&mut transaction, &user, now).await?;
    }
    insert_passkey(&mut transaction, &user.id, &stored, now).await?;
    note(&mut transaction, &act).await?;
    end_session_before(&mut transaction, &state.public_url, &jar).await?;
    let session = begin_session(&mut transaction, &user.id, &headers, now).await?;
    transaction.commit().await?;
    state.limits.tries.signed_in(address);
    if invite.ends_passkeys {
        state.events.people_changed();
    }
    tracing::info!(user = user.name, role = user.role.as_str(), "{}", act.what.as_str());
    Ok((StatusCode::NO_CONTENT, jar.add(cookie(&state.public_url, session))))
}

/// What to call a passkey, if its owner does not say.
pub fn passkey_name(asked: Option<&str>) -> Result<&str> {
    checked_line(asked.map(str::trim).filter(|name| !name.is_empty()).unwrap_or("Passkey"))
}

/// Start to log in with a passkey.
#[utoipa::path(post, path = "/api/v1/auth/login/start", tag = "auth",
    responses((status = 200, body = Started), (status = 429, body = ErrorBody)))]
pub async fn login_start(_: SignIn, Extension(passkeys): Extension<Passkeys>) -> Result<Json<Started>> {
    let (ceremony, options) = passkeys.start_login()?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

/// End the login.
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
    SmallInput(asked): SmallInput<LoginFinish>,
) -> Result<(StatusCode, CookieJar)> {
    let Finish { address } = finish.checked(passkeys.is_open(asked.ceremony), &state)?;
    let (user, id, credential) = match proven(&state, &passkeys, &asked).await {
        Ok(proven) => proven,
        Err(fault) => {
            passkeys.end(asked.ceremony);
            refusals.add(address, &fault.to_string());
            return Err(fault);
        }
    };
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    passkey_used(&mut transaction, &id, &credential, now).await?;
    note(&mut transaction, &Act::new(&user.name, address, Deed::LoggedIn, "")).await?;
    end_session_before(&mut transaction, &state.public_url, &jar).await?;
    let session = begin_session(&mut transaction, &user.id, &headers, now).await?;
    transaction.commit().await?;
    state.limits.tries.signed_in(address);
    Ok((StatusCode::NO_CONTENT, jar.add(cookie(&state.public_url, session))))
}

/// Start to confirm with a passkey who it is, for what takes a recent proof; 204 where there is one.
#[utoipa::path(post, path = "/api/v1/auth/confirm/start", tag = "auth", responses((status = 200, body = Started),
    (status = 204, description = "it is confirmed already"), (status = 429, body = ErrorBody)))]
pub async fn confirm_start(_: SignIn, person: SignedIn, Extension(passkeys): Extension<Passkeys>) -> Result<Response> {
    if person.caller.proven().is_ok() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let (ceremony, options) = passkeys.start_login()?;
    let options = serde_json::to_value(options).map_err(Error::internal)?;
    Ok(Json(Started { ceremony, options }).into_response())
}

/// End the confirmation: for a quarter of an hour this session may do what takes a recent proof.
#[utoipa::path(post, path = "/api/v1/auth/confirm/finish", tag = "auth", request_body = LoginFinish,
    responses((status = 204), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody),
    (status = 429, body = ErrorBody)))]
pub async fn confirm_finish(
    finish: Finish,
    person: SignedIn,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    SmallInput(asked): SmallInput<LoginFinish>,
) -> Result<StatusCode> {
    finish.checked(passkeys.is_open(asked.ceremony), &state)?;
    // A ceremony is for one try.
    let proven = proven(&state, &passkeys, &asked).await.inspect_err(|_| passkeys.end(asked.ceremony));
    let (user, id, credential) = proven?;
    if user.id != person.user_id {
        return Err(Error::Forbidden(format!("this passkey is {}'s; use one of yours", user.name)));
    }
    let (now, mut transaction) = (now_ms(), state.db.write.begin().await?);
    passkey_used(&mut transaction, &id, &credential, now).await?;
    prove(&mut transaction, &person.session, now).await?;
    note(&mut transaction, &person.caller.does(Deed::Confirmed, "")).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whoever logs in has another session from then on: one that somebody else may know of ends.
async fn end_session_before(connection: &mut SqliteConnection, site: &Url, jar: &CookieJar) -> sqlx::Result<()> {
    match jar.get(session_cookie(site)) {
        Some(before) => end_session_by_hash(connection, &secret::hash(before.value())).await,
        None => Ok(()),
    }
}

/// Whose passkey it is, its id and how it is to be stored from now on.
async fn proven(state: &AppState, passkeys: &Passkeys, asked: &LoginFinish) -> Result<(User, Vec<u8>, String)> {
    let id = passkeys.claimed(&asked.credential)?;
    let unknown = || Error::Forbidden("this passkey is not known here; ask for a registration link".to_owned());
    let (stored, user) = passkey(&state.db.read, &id).await?.ok_or_else(unknown)?;
    let mut passkey: Passkey = serde_json::from_str(&stored).map_err(Error::internal)?;
    let proof = passkeys.finish_login(asked.ceremony, &asked.credential, &passkey)?;
    passkey.update_credential(&proof);
    Ok((user, id, serde_json::to_string(&passkey).map_err(Error::internal)?))
}

async fn begin_session(
    connection: &mut SqliteConnection,
    user_id: &str,
    headers: &HeaderMap,
    now: i64,
) -> Result<String> {
    let made = secret::make(secret::Kind::Session);
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or("unknown device");
    let device: String = agent.chars().take(200).collect();
    let hash = secret::hash(&made);
    let session = NewSession { hash: &hash, user_id, device: &device, expires_at_ms: now + SESSION_DAYS * DAY_MS };
    insert_session(connection, &session, now).await?;
    Ok(made)
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

/// Takes the session's cookie out of a browser. One over TLS is only taken out by one that could have set it.
pub fn without_cookie(public_url: &Url, jar: CookieJar) -> CookieJar {
    let gone = Cookie::build(session_cookie(public_url)).path("/").secure(public_url.scheme() == "https");
    jar.remove(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_over_tls_is_bound_to_the_very_host() {
        let url = |text: &str| text.parse::<Url>().expect("an address");
        let plain = cookie(&url("http://localhost:8377/"), "bbs_x".to_owned()).to_string();
        assert_eq!(plain, "brewbench_session=bbs_x; HttpOnly; SameSite=Lax; Path=/; Max-Age=2592000");
        let secure = cookie(&url("https://bench.example.com/"), "bbs_x".to_owned()).to_string();
        assert!(secure.starts_with("__Host-brewbench_session=bbs_x; ") && secure.contains("; Secure"), "{secure}");
        assert!(secure.contains("; Path=/") && !secure.contains("Domain"), "{secure}");
    }
}
