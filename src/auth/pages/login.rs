//! The pages `/login`, `/confirm`, `/register` and `/logout`.

use askama::Template;
use askama_web::WebTemplate;
use axum::{extract::State, response::Redirect};
use axum_extra::extract::CookieJar;
use brewbench_wire::now_ms;
use serde::Deserialize;

use crate::{
    app::{
        error::{QueryParams, Result},
        state::AppState,
    },
    auth::{
        api::ceremonies::without_cookie,
        audit::{action::Action, record},
        caller::{Public, SignedIn},
        pages::parts::shell,
        secret,
        store::{invites::usable_invite, sessions::end_session_by_hash},
    },
    web::{address::own_path, shell::Shell},
};

/// The login page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/login.html")]
pub(crate) struct Login {
    shell: Shell,
    next: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct LoginQuery {
    next: Option<String>,
}

pub(crate) async fn login(
    _: Public,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<LoginQuery>,
) -> Login {
    let next = query.next.map_or_else(|| "/".to_owned(), |next| own_path(&state.public_url, &next));
    Login { shell: Shell::anonymous("Log in"), next }
}

/// The page that asks for a passkey before a sensitive action.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/confirm.html")]
pub(crate) struct ConfirmPage {
    shell: Shell,
    next: String,
}

pub(crate) async fn confirm(
    person: SignedIn,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<LoginQuery>,
) -> ConfirmPage {
    let next = query.next.map_or_else(|| "/".to_owned(), |next| own_path(&state.public_url, &next));
    ConfirmPage { shell: shell("Confirm your identity", &person.caller), next }
}

/// The registration page of a one-time link, for a new user or for another passkey of an existing user.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/register.html")]
pub(crate) struct Register {
    shell: Shell,
    token: String,
    role: String,
    person: Option<String>,
    resets_passkeys: bool,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RegisterQuery {
    token: String,
}

pub(crate) async fn register(
    _: Public,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<RegisterQuery>,
) -> Result<Register> {
    let invite = usable_invite(&state.db.read, &secret::hash(&query.token), now_ms()).await?;
    Ok(Register {
        shell: Shell::anonymous("Register"),
        token: query.token,
        role: invite.role.as_str().to_owned(),
        person: invite.user.map(|(_, name)| name),
        resets_passkeys: invite.resets_passkeys,
    })
}

/// Ends the session. Needs a logged-in user, so that another site cannot log users out.
pub(crate) async fn logout(
    person: SignedIn,
    State(state): State<AppState>,
    jar: CookieJar,
) -> Result<(CookieJar, Redirect)> {
    let mut transaction = state.db.write.begin().await?;
    end_session_by_hash(&mut transaction, &person.session).await?;
    record(&mut transaction, &person.caller.does(Action::LoggedOut, "")).await?;
    transaction.commit().await?;
    state.events.rights_changed();
    Ok((without_cookie(&state.public_url, jar), Redirect::to("/login")))
}
