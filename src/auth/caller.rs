//! Extractors that authenticate the caller. Writes with a cookie count only from our own pages.

use std::net::{IpAddr, SocketAddr};

use axum::{
    extract::{ConnectInfo, FromRequestParts},
    http::{HeaderMap, Method, header, request::Parts},
};
use axum_extra::extract::CookieJar;
use brewbench_wire::now_ms;
use url::Url;

use super::{
    audit::{AuditEvent, OWNER},
    secret,
};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        audit::action::Action,
        model::{Scope, Session},
        refusals::{self, Refused},
        store::{
            sessions::session_user,
            tokens::{Presented, presented_token},
        },
    },
    web::request::{self, Peer},
};

/// The cookie that carries a session's secret.
pub const SESSION_COOKIE: &str = "brewbench_session";

/// The same over TLS. Browsers bind a `__Host-` cookie to exactly this host.
pub const SECURE_SESSION_COOKIE: &str = "__Host-brewbench_session";

/// Returns the name of the session cookie for a site at this URL.
pub fn session_cookie(public_url: &Url) -> &'static str {
    if public_url.scheme() == "https" { SECURE_SESSION_COOKIE } else { SESSION_COOKIE }
}

/// An authenticated caller.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The user's name, or `token NAME`.
    pub name: String,
    /// What the caller may do.
    pub scope: Scope,
    /// The id of the user, or of the token's owner.
    pub user_id: Option<String>,
    /// The caller's IP address.
    pub address: Option<IpAddr>,
    /// The session of a logged-in user; none for tokens.
    pub session: Option<Session>,
}

impl Caller {
    /// Returns the caller of commands on the data folder. Write access to the folder allows everything anyway.
    pub fn owner() -> Self {
        Self { name: OWNER.to_owned(), scope: Scope::Admin, user_id: None, address: None, session: None }
    }

    /// Creates an entry for the audit log.
    pub fn does(&self, what: Action, object: &str) -> AuditEvent {
        AuditEvent::new(&self.name, self.address, what, object)
    }
}

/// Any caller.
#[derive(Clone, Copy, Debug)]
pub struct Public;

/// Anybody may call; holds the user if one is logged in.
#[derive(Clone, Debug)]
pub struct OptionalCaller(pub Option<Caller>);

impl OptionalCaller {
    /// The user's name.
    pub fn name(&self) -> Option<&str> {
        self.0.as_ref().map(|caller| caller.name.as_str())
    }
}

/// Any caller, rate-limited: the first step of a login or registration.
#[derive(Clone, Copy, Debug)]
pub struct SignIn {
    /// The caller's IP address.
    pub address: Option<IpAddr>,
}

/// Any caller: the last step of a login or registration, which its start has counted. [`Finish::checked`] counts a step
/// without a started ceremony.
#[derive(Clone, Copy, Debug)]
pub struct Finish {
    /// The caller's IP address.
    pub address: Option<IpAddr>,
}

impl Finish {
    /// Counts an unknown or expired ceremony as another attempt.
    pub fn checked(self, is_open: bool, state: &AppState) -> Result<Self> {
        if !is_open {
            state.limits.tries.sign_in(self.address)?;
        }
        Ok(self)
    }
}

/// A logged-in user of any role. Tokens are refused.
#[derive(Clone, Debug)]
pub struct SignedIn {
    /// The user.
    pub caller: Caller,
    /// The user's id.
    pub user_id: String,
    /// The hash of the session's secret.
    pub session: Vec<u8>,
}

/// A caller that may manage tokens: a logged-in user or an admin token. A lesser token cannot create others, which
/// would outlive it.
#[derive(Clone, Debug)]
pub struct TokenManager(pub Caller);

/// A caller with the scope `read`.
#[derive(Clone, Debug)]
pub struct Read(pub Caller);

/// A caller with the scope `submit`.
#[derive(Clone, Debug)]
pub struct Submit(pub Caller);

/// A caller with the scope `admin`.
#[derive(Clone, Debug)]
pub struct Admin(pub Caller);

impl FromRequestParts<AppState> for Public {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        if is_write(&parts.method) && came_from(&parts.headers, state) == Source::Elsewhere {
            return Err(cross_site());
        }
        Ok(Self)
    }
}

impl FromRequestParts<AppState> for OptionalCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        match person(parts, state).await {
            Ok(SignedIn { caller, .. }) => Ok(Self(Some(caller))),
            Err(Error::Unauthenticated) => Ok(Self(None)),
            Err(fault) => Err(fault),
        }
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
            return Err(Error::Forbidden("this needs a logged-in user; tokens are not accepted".to_owned()));
        }
        person(parts, state).await
    }
}

impl FromRequestParts<AppState> for TokenManager {
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
        return Err(Error::Forbidden(match caller.session {
            Some(_) => not_for_role(needed, caller.scope),
            None => format!("this needs the scope {needs}; yours is {has}"),
        }));
    }
    Ok(caller)
}

/// A user has a role; scopes are for tokens.
fn not_for_role(needed: Scope, has: Scope) -> String {
    let who = if needed == Scope::Admin { "administrators" } else { "members and administrators" };
    let role = if has == Scope::Read { "a viewer" } else { "a member" };
    format!("only {who} can do this; you are {role}")
}

async fn caller(parts: &Parts, state: &AppState) -> Result<Caller> {
    match bearer(&parts.headers) {
        Some(token) => program(parts, state, token).await,
        None => Ok(person(parts, state).await?.caller),
    }
}

async fn program(parts: &Parts, state: &AppState, token: &str) -> Result<Caller> {
    let address = address(parts, state);
    let token = match presented_token(&state.db, &secret::hash(token), now_ms()).await? {
        Presented::Valid(token) => token,
        refused => {
            state.limits.tries.wrong_secret(address)?;
            refusals::log(Refused::Token, address);
            return Err(match refused {
                Presented::Ended(how) => Error::Ended(how),
                _ => Error::Unauthenticated,
            });
        }
    };
    let (name, scope, user_id) = (format!("token {}", token.name), token.scope, token.user_id);
    Ok(Caller { name, scope, user_id, address, session: None })
}

async fn person(parts: &Parts, state: &AppState) -> Result<SignedIn> {
    let jar = CookieJar::from_headers(&parts.headers);
    let cookie = jar.get(session_cookie(&state.public_url)).ok_or(Error::Unauthenticated)?;
    if is_write(&parts.method) && came_from(&parts.headers, state) != Source::OwnPage {
        return Err(cross_site());
    }
    let session = secret::hash(cookie.value());
    let (user, known) = session_user(&state.db, &session, now_ms()).await?.ok_or(Error::Unauthenticated)?;
    request::signed_in(request::User { name: user.name.clone(), is_admin: user.role.scope() == Scope::Admin });
    let (scope, address) = (user.role.scope(), address(parts, state));
    let caller = Caller { name: user.name, scope, user_id: Some(user.id.clone()), address, session: Some(known) };
    Ok(SignedIn { caller, user_id: user.id, session })
}

/// Returns the client address: the peer, or what a trusted proxy reports in `X-Forwarded-For`.
///
/// Entries are read from the last one backwards while they are trusted proxies; the client can forge the rest.
pub fn address(parts: &Parts, state: &AppState) -> Option<IpAddr> {
    let ConnectInfo(Peer(peer)) = parts.extensions.get::<ConnectInfo<Peer>>()?;
    let proxies = &state.config.proxies;
    let mut nearest = peer.ip().to_canonical();
    if !proxies.contains(nearest) {
        return Some(nearest);
    }
    let lists: Vec<_> = parts.headers.get_all("x-forwarded-for").iter().collect();
    for list in lists.into_iter().rev() {
        // Splits bytes, so that invalid text from the client does not hide the proxy's entry.
        for entry in list.as_bytes().rsplit(|byte| *byte == b',') {
            nearest = forwarded(std::str::from_utf8(entry).ok()?.trim())?.to_canonical();
            if !proxies.contains(nearest) {
                return Some(nearest);
            }
        }
    }
    Some(nearest)
}

/// Reads an entry of `X-Forwarded-For`. Some proxies add the port, and IPv6 addresses may stand in brackets.
fn forwarded(entry: &str) -> Option<IpAddr> {
    let plain = entry.parse().ok();
    let with_port = || entry.parse().ok().map(|address: SocketAddr| address.ip());
    let bracketed = || entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok().map(IpAddr::V6);
    plain.or_else(with_port).or_else(bracketed)
}

/// Returns the secret of an `Authorization: Bearer` header.
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
    /// Not a browser, or one too old to send the headers.
    Unknown,
}

/// Returns the source of a request by headers that only browsers set: `Origin`, else `Sec-Fetch-Site`.
fn came_from(headers: &HeaderMap, state: &AppState) -> Source {
    let text = |name| headers.get(name).and_then(|value: &axum::http::HeaderValue| value.to_str().ok());
    match (text("origin"), text("sec-fetch-site")) {
        (Some(origin), _) if origin == state.public_url.origin().ascii_serialization() => Source::OwnPage,
        (None, Some("same-origin")) => Source::OwnPage,
        (Some(_), _) | (None, Some(_)) => Source::Elsewhere,
        (None, None) => Source::Unknown,
    }
}

fn cross_site() -> Error {
    Error::Forbidden("this request came from another site; if it did not, correct the server's --public-url".to_owned())
}
