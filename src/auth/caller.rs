//! Extractors that prove who calls. Cookies count only for requests from our own pages.

use std::net::IpAddr;

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
};
use axum_extra::extract::CookieJar;
use brewbench_agent::wire::now_ms;
use url::Url;

use super::{
    audit::{Act, OWNER},
    secret,
};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        model::Scope,
        store::{sessions::session_user, tokens::good_token},
    },
    web::request::Peer,
};

/// The cookie that carries a session's secret.
pub const SESSION_COOKIE: &str = "brewbench_session";

/// The same over TLS: browsers take it from this very host alone and send it nowhere else.
pub const SECURE_SESSION_COOKIE: &str = "__Host-brewbench_session";

/// The name of the session's cookie for a site under this address.
pub fn session_cookie(public_url: &Url) -> &'static str {
    if public_url.scheme() == "https" { SECURE_SESSION_COOKIE } else { SESSION_COOKIE }
}

/// Who is known to call.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The person's name, or `token NAME`.
    pub name: String,
    /// How far it may go.
    pub scope: Scope,
    /// The person's id, or that of the person whose token it is.
    pub user_id: Option<String>,
    /// Where it is.
    pub address: Option<IpAddr>,
    /// When a person proved last by a passkey who it is, unix ms; none for programs, which have none.
    pub proved_at_ms: Option<i64>,
}

/// A proof is good for so long, ms.
pub const PROOF_MS: i64 = 15 * 60 * 1_000;

impl Caller {
    /// Who can write the data folder: whoever can could do anything anyway.
    pub fn owner() -> Self {
        Self { name: OWNER.to_owned(), scope: Scope::Admin, user_id: None, address: None, proved_at_ms: None }
    }

    /// Fails if it is a session that has not proven within a quarter of an hour whose it is: for what somebody who sits
    /// down at an open browser must not do.
    pub fn proven(&self) -> Result<()> {
        match self.proved_at_ms {
            Some(proved_at_ms) if proved_at_ms <= now_ms() - PROOF_MS => Err(Error::Unproven),
            _ => Ok(()),
        }
    }

    /// For the audit log.
    pub fn does(&self, what: Deed, object: &str) -> Act {
        Act::new(&self.name, self.address, what, object)
    }
}

/// Anybody may call.
#[derive(Clone, Copy, Debug)]
pub struct Public;

/// Anybody may call, but not too often: the first step of a login or registration.
#[derive(Clone, Copy, Debug)]
pub struct SignIn {
    /// Where the caller is.
    pub address: Option<IpAddr>,
}

/// Anybody may call: the last step of a login or registration, which was counted when it began. One that is not under way
/// is counted by [`Finish::checked`].
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// Where the caller is.
    pub address: Option<IpAddr>,
}

impl Finish {
    /// Counts what is made up or too late as another try.
    pub fn checked(self, is_under_way: bool, state: &AppState) -> Result<Self> {
        if !is_under_way {
            state.limits.tries.sign_in(self.address)?;
        }
        Ok(self)
    }
}

/// A person who is logged in calls, of whatever role. A token does not do.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The person.
    pub caller: Caller,
    /// The person's id.
    pub user_id: String,
    /// The hash of the session's secret.
    pub session: Vec<u8>,
}

/// Who may keep tokens: a person who is logged in, or a program that manages. A lesser token can't make others, which
/// would outlive it.
#[derive(Clone, Debug)]
pub struct Keeper(pub Caller);

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

impl FromRequestParts<AppState> for SignIn {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        Public::from_request_parts(parts, state).await?;
        let address = address(parts, state);
        state.limits.tries.sign_in(address)?;
        Ok(Self { address })
    }
}

impl FromRequestParts<AppState> for Finish {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        Public::from_request_parts(parts, state).await?;
        Ok(Self { address: address(parts, state) })
    }
}

impl FromRequestParts<AppState> for SignedIn {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        if let Some(token) = bearer(&parts.headers) {
            program(parts, state, token).await?;
            return Err(Error::Forbidden("this needs a person who is logged in; a token does not do".to_owned()));
        }
        person(parts, state).await
    }
}

impl FromRequestParts<AppState> for Keeper {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        match bearer(&parts.headers) {
            Some(token) => enough(program(parts, state, token).await?, Scope::Admin).map(Self),
            None => Ok(Self(person(parts, state).await?.caller)),
        }
    }
}

impl FromRequestParts<AppState> for Read {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        enough(caller(parts, state).await?, Scope::Read).map(Self)
    }
}

impl FromRequestParts<AppState> for Submit {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        enough(caller(parts, state).await?, Scope::Submit).map(Self)
    }
}

impl FromRequestParts<AppState> for Admin {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        enough(caller(parts, state).await?, Scope::Admin).map(Self)
    }
}

fn enough(caller: Caller, needed: Scope) -> Result<Caller> {
    if caller.scope < needed {
        let (has, needs) = (caller.scope.as_str(), needed.as_str());
        return Err(Error::Forbidden(format!("this needs the scope {needs}; yours is {has}")));
    }
    Ok(caller)
}

async fn caller(parts: &Parts, state: &AppState) -> Result<Caller> {
    match bearer(&parts.headers) {
        Some(token) => program(parts, state, token).await,
        None => Ok(person(parts, state).await?.caller),
    }
}

async fn program(parts: &Parts, state: &AppState, token: &str) -> Result<Caller> {
    let address = address(parts, state);
    let Some(token) = good_token(&state.db, &secret::hash(token), now_ms()).await? else {
        state.limits.tries.wrong_secret(address)?;
        return Err(Error::Unauthenticated);
    };
    Ok(Caller {
        name: format!("token {}", token.name),
        scope: token.scope,
        user_id: token.user_id,
        address,
        proved_at_ms: None,
    })
}

async fn person(parts: &Parts, state: &AppState) -> Result<SignedIn> {
    let jar = CookieJar::from_headers(&parts.headers);
    let cookie = jar.get(session_cookie(&state.public_url)).ok_or(Error::Unauthenticated)?;
    if is_write(&parts.method) && came_from(&parts.headers, state) != Source::OwnPage {
        return Err(from_elsewhere());
    }
    let session = secret::hash(cookie.value());
    let (user, proved_at) = session_user(&state.db, &session, now_ms()).await?.ok_or(Error::Unauthenticated)?;
    let (scope, address) = (user.role.scope(), address(parts, state));
    let (user_id, proved_at_ms) = (Some(user.id.clone()), Some(proved_at));
    let caller = Caller { name: user.name, scope, user_id, address, proved_at_ms };
    Ok(SignedIn { caller, user_id: user.id, session })
}

/// Where a request comes from: the other end of its connection, or, where that is a proxy that is trusted, what the proxy
/// saw. Of `X-Forwarded-For` only the last entry is the proxy's own, and the one before it where the last is a trusted proxy
/// again; whoever calls can write the others.
pub fn address(parts: &Parts, state: &AppState) -> Option<IpAddr> {
    let ConnectInfo(Peer(peer)) = parts.extensions.get::<ConnectInfo<Peer>>()?;
    let proxies = &state.config.proxies;
    let mut nearest = peer.ip().to_canonical();
    if !proxies.have(nearest) {
        return Some(nearest);
    }
    let lists: Vec<_> = parts.headers.get_all("x-forwarded-for").iter().collect();
    for list in lists.into_iter().rev() {
        // By bytes: whatever a caller writes before the proxy's entry, that is read.
        for entry in list.as_bytes().rsplit(|byte| *byte == b',') {
            nearest = std::str::from_utf8(entry.trim_ascii()).ok()?.parse::<IpAddr>().ok()?.to_canonical();
            if !proxies.have(nearest) {
                return Some(nearest);
            }
        }
    }
    Some(nearest)
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
