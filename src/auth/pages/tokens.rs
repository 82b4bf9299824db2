//! Tokens: made, seen once, listed, revoked.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use brewbench_agent::wire::now_ms;
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        api::tokens as api,
        caller::{Caller, Keeper},
        model::Scope,
        pages::parts::{Once, Places, shell},
        people::{NewToken, Token, TokenList},
    },
    web::{confirm::Confirm, shell::Shell},
};

const HERE: &str = "/tokens";

/// What a form may choose as the life of a token, days; 0 for one without an end.
pub const LIVES: [(u32, &str); 5] = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"), (0, "no end")];

/// The tokens.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "auth/tokens.html")]
pub struct Page {
    shell: Shell,
    places: Places,
    tokens: Vec<Token>,
    typed: Typed,
    fault: Option<String>,
    most: Scope,
    now: i64,
}

impl Page {
    fn scopes(&self) -> impl Iterator<Item = Scope> {
        let most = self.most;
        Scope::ALL.into_iter().filter(move |scope| *scope <= most)
    }
}

/// What was typed into the form.
#[derive(Clone, Debug, Deserialize)]
pub struct Typed {
    name: String,
    scope: Scope,
    days: u32,
}

/// `GET /tokens`
pub async fn show(keeper: Keeper, state: State<AppState>) -> Result<Page> {
    page(keeper, state, Typed { name: String::new(), scope: Scope::Read, days: 90 }, None).await
}

async fn page(Keeper(caller): Keeper, state: State<AppState>, typed: Typed, fault: Option<String>) -> Result<Page> {
    let TokenList { mut tokens } = api::list(Keeper(caller.clone()), state).await?.0;
    let now = now_ms();
    // Those that open something come first.
    tokens.sort_by_key(|token| token.state(now) != "good");
    let (shell, places) = (shell("Tokens", &caller), Places::new(HERE, &caller));
    Ok(Page { shell, places, tokens, typed, fault, most: caller.scope, now })
}

/// `POST /tokens`
pub async fn make(Keeper(caller): Keeper, state: State<AppState>, Form(typed): Form<Typed>) -> Result<Response> {
    let asked = NewToken {
        name: typed.name.clone(),
        scope: typed.scope,
        expires_in_days: Some(typed.days).filter(|days| *days > 0),
    };
    match api::make_token(&state.db, &asked, &caller).await {
        Ok(made) => Ok((StatusCode::CREATED, once(&caller, &state, &made.name, made.secret)).into_response()),
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_))) => {
            let status = fault.status();
            let told = fault.to_string();
            Ok((status, page(Keeper(caller), state, typed, Some(told)).await?).into_response())
        }
        Err(fault) => Err(fault),
    }
}

fn once(caller: &Caller, state: &AppState, name: &str, secret: String) -> Once {
    Once {
        shell: shell("A new token", caller),
        places: Places::new(HERE, caller),
        title: format!("The token {name}"),
        told: vec![
            "It is shown this once: keep it where your programs find their secrets.".to_owned(),
            format!("brewbench login {} asks for it; programs take it from BREWBENCH_TOKEN.", state.public_url),
        ],
        label: "Token",
        secret,
        back: HERE,
    }
}

/// `GET /tokens/{name}/revoke`
pub async fn ask_revoke(Keeper(caller): Keeper, state: State<AppState>, Path(name): Path<String>) -> Result<Confirm> {
    let list = api::list(Keeper(caller.clone()), state).await?.0;
    let found = list.tokens.into_iter().find(|token| token.name == name && token.revoked_at_ms.is_none());
    let token = found.ok_or_else(|| Error::NotFound(format!("token {name:?} that could be revoked")))?;
    Ok(Confirm {
        shell: shell("Revoke this token", &caller),
        deed: "Revoke this token",
        what: format!("{}, which reaches as far as {}", token.name, token.scope),
        consequences: vec![
            "Programs that come with it are refused from now on.".to_owned(),
            "It can't be brought back, and its name stays taken.".to_owned(),
        ],
        back: HERE.to_owned(),
    })
}

/// `POST /tokens/{name}/revoke`
pub async fn revoke(keeper: Keeper, state: State<AppState>, name: Path<String>) -> Result<Redirect> {
    api::revoke(keeper, state, name).await?;
    Ok(Redirect::to(HERE))
}
