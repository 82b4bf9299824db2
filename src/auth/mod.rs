//! Who may do what: people by passkey and session, programs by token; everybody else gets next to nothing.
//!
//! A handler says who may call it by taking [`Public`], [`Read`], [`Submit`] or [`Admin`] (or the fleet's key of an
//! agent), so none can forget to ask. Secrets are random, shown once and stored as SHA-256.

pub mod api;
pub mod caller;
pub mod pages;
pub mod passkeys;
pub mod queries;
pub mod secret;

use axum::{Extension, Router};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use caller::{Admin, Caller, Public, Read, Submit};
pub use passkeys::Passkeys;

use crate::state::AppState;

/// How far a caller may go; each includes the ones before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Look at everything.
    Read,
    /// Submit and cancel runs, import summaries.
    Submit,
    /// Manage people, tokens, agents and sizes.
    Admin,
}

impl Scope {
    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Read, Self::Submit, Self::Admin]
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no scope: read, submit or admin"))
    }
}

/// What a person is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits.
    Member,
    /// Manages.
    Admin,
}

impl Role {
    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// How far a person of this role may go.
    pub fn scope(self) -> Scope {
        match self {
            Self::Viewer => Scope::Read,
            Self::Member => Scope::Submit,
            Self::Admin => Scope::Admin,
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Viewer, Self::Member, Self::Admin]
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role: viewer, member or admin"))
    }
}

/// A token as lists show it; its secret is nowhere.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Unique name.
    pub name: String,
    /// `read`, `submit` or `admin`.
    pub scope: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms; null for a token without an end.
    pub expires_at_ms: Option<i64>,
    /// Unix ms, to the minute.
    pub last_used_at_ms: Option<i64>,
    /// Unix ms.
    pub revoked_at_ms: Option<i64>,
}

impl Token {
    /// `good`, `revoked` or `expired` at a time.
    pub fn state(&self, now_ms: i64) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { expires_at_ms: Some(end), .. } if *end <= now_ms => "expired",
            _ => "good",
        }
    }
}

/// All tokens.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// By name.
    pub tokens: Vec<Token>,
}

/// A token to be made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Unique name.
    pub name: String,
    /// How far it reaches.
    pub scope: Scope,
    /// Days until it ends; absent for none.
    pub expires_in_days: Option<u32>,
}

/// A secret that was just made. It can't be shown again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct MadeSecret {
    /// What it is called.
    pub name: String,
    /// The secret itself.
    pub secret: String,
}

/// An invitation to be made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewInvite {
    /// What the invited person becomes.
    pub role: Role,
}

/// A one-time registration link.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// What the invited person becomes.
    pub role: Role,
    /// Where to register, once.
    pub url: String,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// Pages.
pub fn pages(passkeys: Passkeys) -> Router<AppState> {
    pages::router().layer(Extension(passkeys))
}

/// JSON.
pub fn api(passkeys: Passkeys) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::register_start))
        .routes(routes!(api::register_finish))
        .routes(routes!(api::login_start))
        .routes(routes!(api::login_finish))
        .routes(routes!(api::list_tokens, api::new_token))
        .routes(routes!(api::revoke_token))
        .routes(routes!(api::invite))
        .layer(Extension(passkeys))
}
