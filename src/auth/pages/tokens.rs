//! The tokens page: create, list and revoke tokens.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use brewbench_wire::now_ms;
use serde::Deserialize;

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        api::tokens as api,
        caller::{Caller, TokenManager},
        model::Scope,
        pages::parts::{Places, ShownSecret, shell},
        proven::Proven,
        users::{NewToken, TOKEN_DAYS, Token, TokenList},
    },
    web::{confirm::Confirm, shell::Shell},
};

const HERE: &str = "/tokens";

/// Lifetimes of a token that the form offers, days; 0 for a token that does not expire.
pub const LIVES: [(u32, &str); 5] = [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "1 year"), (0, "never")];

/// The tokens page.
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

/// The form as submitted.
#[derive(Clone, Debug, Deserialize)]
pub struct Typed {
    name: String,
    scope: Scope,
    days: u32,
}

/// `GET /tokens`
pub async fn show(manager: TokenManager, state: State<AppState>) -> Result<Page> {
    page(manager, state, Typed { name: String::new(), scope: Scope::Read, days: TOKEN_DAYS }, None).await
}

async fn page(
    TokenManager(caller): TokenManager,
    state: State<AppState>,
    typed: Typed,
    fault: Option<String>,
) -> Result<Page> {
    let TokenList { mut tokens } = api::list(TokenManager(caller.clone()), state).await?.0;
    let now = now_ms();
    // Valid tokens come first.
    tokens.sort_by_key(|token| token.state(now) != "good");
    let (shell, places) = (shell("Tokens", &caller), Places::new(HERE, &caller));
    Ok(Page { shell, places, tokens, typed, fault, most: caller.scope, now })
}

/// `POST /tokens`
pub async fn create(
    manager: Proven<TokenManager>,
    state: State<AppState>,
    Form(typed): Form<Typed>,
) -> Result<Response> {
    let request = NewToken {
        name: typed.name.clone(),
        scope: typed.scope,
        expires_in_days: Some(typed.days).filter(|days| *days > 0),
        never_expires: typed.days == 0,
    };
    match api::create_token(&state.db, &request, &manager.by()).await {
        Ok(token) => Ok((StatusCode::CREATED, once(&manager.0, &state, &token.name, token.secret)).into_response()),
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_))) => {
            let status = fault.status();
            let message = fault.to_string();
            Ok((status, page(TokenManager::clone(&manager), state, typed, Some(message)).await?).into_response())
        }
        Err(fault) => Err(fault),
    }
}

fn once(caller: &Caller, state: &AppState, name: &str, secret: String) -> ShownSecret {
    ShownSecret {
        shell: shell("New token", caller),
        places: Places::new(HERE, caller),
        title: format!("Token {name}"),
        instructions: vec![
            "It is shown only once. Store it where your programs find their secrets.".to_owned(),
            format!("brewbench login {} asks for it; programs read it from BREWBENCH_TOKEN.", state.public_url),
        ],
        label: "Token",
        secret,
        back: HERE,
    }
}

/// `GET /tokens/{name}/revoke`
pub async fn ask_revoke(
    TokenManager(caller): TokenManager,
    state: State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let list = api::list(TokenManager(caller.clone()), state).await?.0;
    let found = list.tokens.into_iter().find(|token| token.name == name && token.revoked_at_ms.is_none());
    let token = found.ok_or_else(|| Error::NotFound(format!("unrevoked token {name:?}")))?;
    Ok(Confirm {
        shell: shell("Revoke this token", &caller),
        action: "Revoke this token",
        what: format!("{}, scope {}", token.name, token.scope),
        consequences: vec![
            "Programs that use it are refused from now on.".to_owned(),
            "It cannot be restored, and its name stays taken.".to_owned(),
        ],
        back: HERE.to_owned(),
    })
}
