//! The account page: the user's own passkeys and sessions.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    response::Redirect,
};

use crate::{
    app::{
        error::{Error, QueryParams, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        api::account as api,
        caller::SignedIn,
        pages::parts::{Places, shell},
        proven::Proven,
        store::sessions::last_passkey,
        users::{Account, OwnPasskey, Renamed},
    },
    web::{confirm::Confirm, format::plural, shell::Shell},
};

const HERE: &str = "/account";

/// The account page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/account.html")]
pub struct Page {
    shell: Shell,
    places: Places,
    account: Account,
}

/// `GET /account`
pub async fn show(person: SignedIn, state: State<AppState>) -> Result<Page> {
    let account = api::account(person.clone(), state).await?.0;
    Ok(Page { shell: shell("Account", &person.caller), places: Places::new(HERE, &person.caller), account })
}

/// `POST /account/passkeys/{id}/rename`
pub async fn rename(
    person: SignedIn,
    state: State<AppState>,
    id: Path<i64>,
    Form(request): Form<Renamed>,
) -> Result<Redirect> {
    api::rename_passkey(person, state, id, Input(request)).await?;
    Ok(Redirect::to(HERE))
}

/// `GET /account/passkeys/{id}/remove`
pub async fn ask_remove(person: Proven<SignedIn>, state: State<AppState>, Path(id): Path<i64>) -> Result<Confirm> {
    let account = api::account(SignedIn::clone(&person), state).await?.0;
    let found = account.passkeys.iter().find(|passkey| passkey.id == id);
    let OwnPasskey { name, .. } = found.ok_or_else(|| Error::NotFound("this passkey in your account".to_owned()))?;
    if account.passkeys.len() < 2 {
        return Err(last_passkey());
    }
    let others = plural(account.passkeys.len() - 1, "other passkey");
    Ok(Confirm {
        shell: shell("Remove this passkey", &person.caller),
        action: "Remove this passkey",
        what: name.clone(),
        consequences: vec![
            format!("You can no longer log in with it. You keep {others}."),
            "Remove it on the device as well, so that the browser does not offer it at the login.".to_owned(),
            "Sessions stay open. End those that are not yours.".to_owned(),
        ],
        back: HERE.to_owned(),
    })
}

/// `POST /account/notices/dismiss`
pub async fn dismiss(person: SignedIn, state: State<AppState>, Form(until): Form<api::Until>) -> Result<Redirect> {
    api::dismiss_notices(person, state, QueryParams(until)).await?;
    Ok(Redirect::to(HERE))
}

/// `GET /account/sessions/end-others`
pub async fn ask_end_others(person: SignedIn, state: State<AppState>) -> Result<Confirm> {
    let others = api::account(person.clone(), state).await?.0.sessions.len().saturating_sub(1);
    if others == 0 {
        return Err(Error::Conflict("this is your only session".to_owned()));
    }
    Ok(Confirm {
        shell: shell("End all other sessions", &person.caller),
        action: "End all other sessions",
        what: plural(others, "session"),
        consequences: vec![
            "These devices have to log in again with one of your passkeys.".to_owned(),
            "This session and your tokens stay valid.".to_owned(),
        ],
        back: HERE.to_owned(),
    })
}

/// `POST /account/sessions/end-others`
pub async fn end_others(person: SignedIn, state: State<AppState>) -> Result<Redirect> {
    api::end_other_sessions(person, state).await?;
    Ok(Redirect::to(HERE))
}
