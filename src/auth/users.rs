//! API types of users and their passkeys, sessions, invitations and tokens.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::{
    model::{Role, Scope},
    notices::Notice,
};

/// A user as administrators see them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserInfo {
    /// Unique name.
    pub name: String,
    /// The user's role.
    pub role: Role,
    /// Number of passkeys.
    pub passkeys: i64,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms, to the minute; null if never.
    pub last_seen_at_ms: Option<i64>,
}

/// All users.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserList {
    /// By name.
    pub users: Vec<UserInfo>,
}

/// The new role of a user.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewRole {
    /// The role.
    pub role: Role,
}

/// Your account.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Unique name.
    pub name: String,
    /// Your role.
    pub role: Role,
    /// Oldest first; never empty.
    pub passkeys: Vec<OwnPasskey>,
    /// The current session first, then by last use.
    pub sessions: Vec<OwnSession>,
    /// What happened since you dismissed the last notices: new passkeys, tokens, recovery links, and logins from new
    /// places. Newest first.
    pub notices: Vec<Notice>,
}

/// A passkey as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OwnPasskey {
    /// Id in URLs.
    pub id: i64,
    /// Name chosen by its owner.
    pub name: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms; null if it was never used to log in.
    pub last_used_at_ms: Option<i64>,
}

/// A session as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OwnSession {
    /// Id in URLs.
    pub id: i64,
    /// Description such as `Firefox on Linux`.
    pub device: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms, to the minute.
    pub last_used_at_ms: i64,
    /// Unix ms; it ends earlier if it is not used for seven days.
    pub expires_at_ms: i64,
    /// Whether it is the current session.
    pub this: bool,
}

/// A new name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Renamed {
    /// 1 to 80 characters on one line.
    pub name: String,
}

/// An invitation to create.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NewInvite {
    /// Role of a new user; `member` by default.
    #[serde(default)]
    pub role: Role,
    /// Name of an existing user who registers another passkey with it and keeps their role.
    pub user: Option<String>,
    /// Whether using it removes that user's earlier passkeys and sessions.
    #[serde(default)]
    pub resets_passkeys: bool,
}

/// A one-time registration link. Its secret can't be shown again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// Role of the invited user.
    pub role: Role,
    /// Name of the existing user it is for; null for a new user.
    pub user: Option<String>,
    /// URL of the registration page; it works once.
    pub url: String,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// An open invitation, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenInvite {
    /// Id in URLs.
    pub id: i64,
    /// `viewer`, `member` or `admin`.
    pub role: String,
    /// Name of the existing user it is for; null for a new user.
    pub user: Option<String>,
    /// Whether using it removes that user's earlier passkeys and sessions.
    pub resets_passkeys: bool,
    /// Who created it; null if unknown.
    pub created_by: Option<String>,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// Open invitations.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InviteList {
    /// By expiry, earliest first.
    pub invites: Vec<OpenInvite>,
}

/// A token, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Unique name.
    pub name: String,
    /// `read`, `submit` or `admin`; limited by the owner's role.
    pub scope: String,
    /// Name of its owner, with whom it ends; null if it was created on the server's machine.
    pub owner: Option<String>,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms; null if it does not expire.
    pub expires_at_ms: Option<i64>,
    /// Unix ms, to the minute.
    pub last_used_at_ms: Option<i64>,
    /// Unix ms.
    pub revoked_at_ms: Option<i64>,
}

impl Token {
    /// Returns its state at a time: `good`, `revoked` or `expired`.
    pub fn state(&self, now_ms: i64) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { expires_at_ms: Some(end), .. } if *end <= now_ms => "expired",
            _ => "good",
        }
    }
}

/// Tokens.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// By name.
    pub tokens: Vec<Token>,
}

/// A token to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewToken {
    /// Unique name.
    pub name: String,
    /// Its scope, at most your own.
    pub scope: Scope,
    /// Days until it expires; 90 by default.
    pub expires_in_days: Option<u32>,
    /// Whether it never expires.
    #[serde(default)]
    pub never_expires: bool,
}

/// Lifetime of a token whose creator chooses none, days.
pub const TOKEN_DAYS: u32 = 90;

impl NewToken {
    /// Returns its lifetime in days; none if it never expires.
    pub fn days(&self) -> Result<Option<u32>, String> {
        match (self.expires_in_days, self.never_expires) {
            (Some(_), true) => Err("never_expires: contradicts expires_in_days; set one of them".to_owned()),
            (None, true) => Ok(None),
            (days, false) => Ok(Some(days.unwrap_or(TOKEN_DAYS))),
        }
    }
}

/// A new secret. It cannot be shown again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct CreatedSecret {
    /// Name of the token or agent.
    pub name: String,
    /// The secret.
    pub secret: String,
}
