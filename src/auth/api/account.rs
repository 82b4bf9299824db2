//! JSON API of the caller's own account: passkeys and sessions. Needs a logged-in user; tokens are refused.

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;
use uuid::Uuid;

use super::ceremonies::{RegisterFinish, Started, passkey_name};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{action::Action, record},
        caller::{Caller, SignedIn},
        checks::checked_line,
        notices::Notice,
        passkeys::{By, Passkeys, gone},
        proven::Proven,
        store::{self, sessions},
        users::{Account, Renamed},
    },
};

/// Show your account with its passkeys and sessions.
#[utoipa::path(get, path = "/api/v1/account", tag = "account",
    responses((status = 200, body = Account), (status = 403, body = ErrorBody, description = "the caller is a token")))]
pub async fn account(person: SignedIn, State(state): State<AppState>) -> Result<Json<Account>> {
    let user = crate::auth::store::user(&state.db.read, &person.caller.name).await?;
    let passkeys = sessions::passkeys(&state.db.read, &person.user_id).await?;
    let sessions = sessions::sessions(&state.db.read, &person.user_id, &person.session, now_ms()).await?;
    let notices = notices(&state, &person.caller).await?;
    Ok(Json(Account { name: user.name, role: user.role, passkeys, sessions, notices }))
}

/// Returns the notices about the account of a logged-in user; none for tokens.
pub async fn notices(state: &AppState, caller: &Caller) -> Result<Vec<Notice>> {
    match (&caller.user_id, caller.session) {
        (Some(user), Some(session)) => Ok(store::notices::notices(&state.db.read, user, session.id, now_ms()).await?),
        _ => Ok(Vec::new()),
    }
}

/// The notices that were read.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Until {
    /// Time of the newest one, unix ms. Later ones stay.
    pub until_ms: i64,
}

/// Dismiss notices about your account.
#[utoipa::path(delete, path = "/api/v1/account/notices", tag = "account", params(Until),
    responses((status = 204), (status = 403, body = ErrorBody, description = "the caller is a token")))]
pub async fn dismiss_notices(
    person: SignedIn,
    State(state): State<AppState>,
    QueryParams(Until { until_ms }): QueryParams<Until>,
) -> Result<StatusCode> {
    // A time in the future would also dismiss what nobody has read yet.
    let until = until_ms.min(now_ms());
    store::notices::dismiss(&mut *state.db.write.acquire().await?, &person.user_id, until).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Start adding a passkey. The options exclude authenticators that already hold one of the user's passkeys.
#[utoipa::path(post, path = "/api/v1/account/passkeys/start", tag = "account",
    responses((status = 200, body = Started), (status = 403, body = ErrorBody, description = "the caller is a token")))]
pub async fn passkey_start(
    person: Proven<SignedIn>,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
) -> Result<Json<Started>> {
    let existing = sessions::credential_ids(&state.db.read, &person.user_id).await?;
    let id = Uuid::parse_str(&person.user_id).map_err(Error::internal)?;
    let (ceremony, options) = passkeys.start_registration(By::Session, id, &person.caller.name, existing)?;
    Ok(Json(Started { ceremony, options: serde_json::to_value(options).map_err(Error::internal)? }))
}

/// Finish the ceremony and store the new passkey.
#[utoipa::path(post, path = "/api/v1/account/passkeys/finish", tag = "account", request_body = RegisterFinish,
    responses((status = 204),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn passkey_finish(
    person: Proven<SignedIn>,
    State(state): State<AppState>,
    Extension(passkeys): Extension<Passkeys>,
    Input(request): Input<RegisterFinish>,
) -> Result<StatusCode> {
    let (registration, passkey) = passkeys.finish_registration(request.ceremony, &request.credential)?;
    if registration.by != By::Session || registration.user_id.to_string() != person.user_id {
        return Err(gone());
    }
    let credential = serde_json::to_string(&passkey).map_err(Error::internal)?;
    let name = passkey_name(request.passkey_name.as_deref())?;
    let stored = sessions::NewPasskey { credential_id: passkey.cred_id(), name, credential: &credential };
    let mut transaction = state.db.write.begin().await?;
    sessions::insert_passkey(&mut transaction, &person.user_id, &stored, now_ms()).await?;
    record(&mut transaction, &person.caller.does(Action::PasskeyAdded, name)).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Rename one of your passkeys.
#[utoipa::path(put, path = "/api/v1/account/passkeys/{id}", tag = "account", params(("id" = i64, Path)),
    request_body = Renamed,
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn rename_passkey(
    person: SignedIn,
    State(state): State<AppState>,
    Path(id): Path<i64>,
    Input(request): Input<Renamed>,
) -> Result<StatusCode> {
    let name = checked_line(&request.name)?;
    let mut transaction = state.db.write.begin().await?;
    let before = sessions::rename_passkey(&mut transaction, &person.user_id, id, name).await?;
    record(&mut transaction, &person.caller.does(Action::PasskeyRenamed, name).with(json!({"before": before}))).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove one of your passkeys. The last one cannot be removed.
#[utoipa::path(delete, path = "/api/v1/account/passkeys/{id}", tag = "account", params(("id" = i64, Path)),
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody, description = "it is the last passkey")))]
pub async fn remove_passkey(
    person: Proven<SignedIn>,
    State(state): State<AppState>,
    Path(id): Path<i64>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    let name = sessions::remove_passkey(&mut transaction, &person.user_id, id).await?;
    record(&mut transaction, &person.caller.does(Action::PasskeyRemoved, &name)).await?;
    transaction.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End one of your sessions.
#[utoipa::path(delete, path = "/api/v1/account/sessions/{id}", tag = "account", params(("id" = i64, Path)),
    responses((status = 204), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn end_session(person: SignedIn, State(state): State<AppState>, Path(id): Path<i64>) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    let device = sessions::end_session(&mut transaction, &person.user_id, id).await?;
    record(&mut transaction, &person.caller.does(Action::SessionEnded, &device)).await?;
    transaction.commit().await?;
    state.events.rights_changed();
    Ok(StatusCode::NO_CONTENT)
}

/// End all your sessions except the current one.
#[utoipa::path(delete, path = "/api/v1/account/sessions", tag = "account",
    responses((status = 204), (status = 403, body = ErrorBody)))]
pub async fn end_other_sessions(person: SignedIn, State(state): State<AppState>) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    let count = sessions::end_other_sessions(&mut transaction, &person.user_id, &person.session).await?;
    record(&mut transaction, &person.caller.does(Action::SessionsEnded, "").with(json!({"sessions": count}))).await?;
    transaction.commit().await?;
    state.events.rights_changed();
    Ok(StatusCode::NO_CONTENT)
}
