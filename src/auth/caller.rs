//! Extractors that prove who calls. Cookies count only for requests from our own pages.

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, Method, header, request::Parts},
};
use axum_extra::extract::CookieJar;
use brewbench_agent::wire::now_ms;

use super::{Scope, queries, secret};
use crate::{
    error::{Error, Result},
    state::AppState,
};

/// The cookie that carries a session's secret.
pub const SESSION_COOKIE: &str = "brewbench_session";

/// Who is known to call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The person's name, or `token NAME`.
    pub name: String,
    /// How far it may go.
    pub scope: Scope,
}

/// Anybody may call.
#[derive(Clone, Copy, Debug)]
pub struct Public;

/// Somebody who may read calls.
#[derive(Clone, Debug)]
pub struct Read(pub Caller);

/// Somebody who may submit calls.
#[derive(Clone, Debug)]
pub struct Submit(pub Caller);

/// An administrator calls.
#[derive(Clone, Debug)]
pub struct Admin(pub Caller);

impl FromRequestParts<AppState> for Public {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        if is_write(&parts.method) && came_from(&parts.headers, state) == Source::Elsewhere {
            return Err(from_elsewhere());
        }
        Ok(Self)
    }
}

impl FromRequestParts<AppState> for Read {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        caller(parts, state, Scope::Read).await.map(Self)
    }
}

impl FromRequestParts<AppState> for Submit {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        caller(parts, state, Scope::Submit).await.map(Self)
    }
}

impl FromRequestParts<AppState> for Admin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        caller(parts, state, Scope::Admin).await.map(Self)
    }
}

async fn caller(parts: &Parts, state: &AppState, needed: Scope) -> Result<Caller> {
    let caller = match bearer(&parts.headers) {
        Some(token) => queries::token_caller(&state.db, &secret::hash(token), now_ms()).await?,
        None => person(parts, state).await?,
    };
    let caller = caller.ok_or(Error::Unauthenticated)?;
    if caller.scope < needed {
        let (has, needs) = (caller.scope.as_str(), needed.as_str());
        return Err(Error::Forbidden(format!("this needs the scope {needs}; yours is {has}")));
    }
    Ok(caller)
}

async fn person(parts: &Parts, state: &AppState) -> Result<Option<Caller>> {
    let jar = CookieJar::from_headers(&parts.headers);
    let Some(cookie) = jar.get(SESSION_COOKIE) else { return Ok(None) };
    if is_write(&parts.method) && came_from(&parts.headers, state) != Source::OwnPage {
        return Err(from_elsewhere());
    }
    Ok(queries::session_caller(&state.db, &secret::hash(cookie.value()), now_ms()).await?)
}

/// The secret of an `Authorization: Bearer` header.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, secret) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

fn is_write(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    OwnPage,
    Elsewhere,
    /// No browser, or one too old to say.
    Unknown,
}

/// Where a request comes from, by what only browsers set: `Origin`, and where it is missing `Sec-Fetch-Site`.
fn came_from(headers: &HeaderMap, state: &AppState) -> Source {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match (text("origin"), text("sec-fetch-site")) {
        (Some(origin), _) if origin == state.public_url.origin().ascii_serialization() => Source::OwnPage,
        (None, Some("same-origin")) => Source::OwnPage,
        (Some(_), _) | (None, Some(_)) => Source::Elsewhere,
        (None, None) => Source::Unknown,
    }
}

fn from_elsewhere() -> Error {
    Error::Forbidden(
        "this request came from another site; if that is this one, mend the server's --public-url".to_owned(),
    )
}
