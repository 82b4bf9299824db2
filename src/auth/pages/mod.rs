//! Login, registration and logout as pages; the account, people, tokens and the audit log in the files beside this one.

mod account;
mod audit;
mod people;
mod tokens;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::State,
    response::Redirect,
    routing::{get, post},
};
use axum_extra::extract::CookieJar;
use brewbench_agent::wire::now_ms;
use serde::Deserialize;

use super::{
    Caller, Public, Scope, SignedIn,
    api::ceremonies::without_cookie,
    audit::{Deed, note},
    queries::{invites::usable_invite, sessions::end_session_by_hash},
    secret,
};
use crate::{
    error::{Asked, Result},
    state::AppState,
    web::{
        address::own_path,
        shell::{Section, Shell},
    },
};

/// The pages of this slice.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/login", get(login))
        .route("/register", get(register))
        .route("/confirm", get(confirm))
        .route("/logout", post(logout))
        .route("/account", get(account::show))
        .route("/account/passkeys/{id}/rename", post(account::rename))
        .route("/account/passkeys/{id}/remove", get(account::ask_remove).post(account::remove))
        .route("/account/sessions/{id}/end", post(account::end))
        .route("/account/sessions/end-others", get(account::ask_end_others).post(account::end_others))
        .route("/tokens", get(tokens::show).post(tokens::make))
        .route("/tokens/{name}/revoke", get(tokens::ask_revoke).post(tokens::revoke))
        .route("/people", get(people::show))
        .route("/people/invites", post(people::invite))
        .route("/people/invites/{id}/withdraw", get(people::ask_withdraw).post(people::withdraw))
        .route("/people/{name}/role", post(people::role))
        .route("/people/{name}/remove", get(people::ask_remove).post(people::remove))
        .route("/people/{name}/mend", get(people::ask_mend).post(people::mend))
        .route("/audit", get(audit::show))
}

/// The pages of this slice beside the one that is shown. Template: `auth/_places.html`, variable `places`.
#[derive(Clone, Debug)]
struct Places {
    here: &'static str,
    manages: bool,
}

impl Places {
    fn new(here: &'static str, caller: &Caller) -> Self {
        Self { here, manages: caller.scope == Scope::Admin }
    }

    fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let all = [("/account", "Account"), ("/tokens", "Tokens"), ("/people", "People"), ("/audit", "Audit log")];
        all.into_iter().take(if self.manages { 4 } else { 2 })
    }

    fn is_here(&self, path: &str) -> bool {
        self.here == path
    }
}

fn shell(title: &str, caller: &Caller) -> Shell {
    Shell::signed_in(title, Section::Other, &caller.name)
}

/// A secret that can be seen once. Template: `auth/once.html`.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/once.html")]
struct Once {
    shell: Shell,
    places: Places,
    /// What was made.
    title: String,
    /// What to do with it, a sentence each.
    told: Vec<String>,
    /// What the secret is, for who can't see it.
    label: &'static str,
    secret: String,
    back: &'static str,
}

/// The login.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/login.html")]
struct Login {
    shell: Shell,
    next: String,
}

#[derive(Debug, Deserialize)]
struct LoginQuery {
    next: Option<String>,
}

async fn login(_: Public, State(state): State<AppState>, Asked(query): Asked<LoginQuery>) -> Login {
    let next = query.next.map_or_else(|| "/".to_owned(), |next| own_path(&state.public_url, &next));
    Login { shell: Shell::anonymous("Log in"), next }
}

/// The question who it is, before what takes a recent proof.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/confirm.html")]
struct ConfirmPage {
    shell: Shell,
    next: String,
}

async fn confirm(person: SignedIn, State(state): State<AppState>, Asked(query): Asked<LoginQuery>) -> ConfirmPage {
    let next = query.next.map_or_else(|| "/".to_owned(), |next| own_path(&state.public_url, &next));
    ConfirmPage { shell: shell("Confirm that it is you", &person.caller), next }
}

/// The registration by a one-time link: of somebody new, or of another passkey for a person.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/register.html")]
struct Register {
    shell: Shell,
    token: String,
    role: String,
    person: Option<String>,
    ends_passkeys: bool,
}

#[derive(Debug, Deserialize)]
struct RegisterQuery {
    token: String,
}

async fn register(_: Public, State(state): State<AppState>, Asked(query): Asked<RegisterQuery>) -> Result<Register> {
    let invite = usable_invite(&state.db.read, &secret::hash(&query.token), now_ms()).await?;
    Ok(Register {
        shell: Shell::anonymous("Register"),
        token: query.token,
        role: invite.role.as_str().to_owned(),
        person: invite.person.map(|(_, name)| name),
        ends_passkeys: invite.ends_passkeys,
    })
}

/// Ends the session. It takes somebody who is logged in, so that another site can't log people out.
async fn logout(person: SignedIn, State(state): State<AppState>, jar: CookieJar) -> Result<(CookieJar, Redirect)> {
    let mut transaction = state.db.write.begin().await?;
    end_session_by_hash(&mut transaction, &person.session).await?;
    note(&mut transaction, &person.caller.does(Deed::LoggedOut, "")).await?;
    transaction.commit().await?;
    state.events.people_changed();
    Ok((without_cookie(&state.public_url, jar), Redirect::to("/login")))
}
