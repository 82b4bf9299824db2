//! What the API says about people and what is theirs: passkeys, sessions, invitations, tokens.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::auth::model::{Role, Scope};

/// A person as administrators see her.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Person {
    /// Unique name.
    pub name: String,
    /// What she is.
    pub role: Role,
    /// How many passkeys she has.
    pub passkeys: i64,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms, to the minute; null for never.
    pub last_seen_at_ms: Option<i64>,
}

/// Everybody.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PersonList {
    /// By name.
    pub people: Vec<Person>,
}

/// What a person is to become.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NewRole {
    /// The role.
    pub role: Role,
}

/// The person who asks.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Account {
    /// Unique name.
    pub name: String,
    /// What she is.
    pub role: Role,
    /// The oldest first; never none.
    pub passkeys: Vec<OwnPasskey>,
    /// This one first, then the one that was used last.
    pub sessions: Vec<OwnSession>,
}

/// A passkey as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OwnPasskey {
    /// For addresses.
    pub id: i64,
    /// As its owner calls it.
    pub name: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms; null if nobody has logged in with it yet.
    pub last_used_at_ms: Option<i64>,
}

/// A session as its owner sees it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OwnSession {
    /// For addresses.
    pub id: i64,
    /// In words: `Firefox on Linux`.
    pub device: String,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms, to the minute.
    pub last_used_at_ms: i64,
    /// Unix ms: earlier if it is not used for seven days.
    pub expires_at_ms: i64,
    /// Whether it is the one that asks.
    pub this: bool,
}

/// Another name.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Renamed {
    /// 1 to 80 characters on one line.
    pub name: String,
}

/// An invitation to be made.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct NewInvite {
    /// What somebody new becomes; `member` unless told.
    #[serde(default)]
    pub role: Role,
    /// Somebody who is there already and gets another passkey by it; the role stays what it is.
    pub person: Option<String>,
    /// Whether that person's passkeys and sessions of before end when it is used.
    #[serde(default)]
    pub ends_passkeys: bool,
}

/// A one-time registration link. Its secret can't be shown again.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct Invite {
    /// What the invited person becomes, or is.
    pub role: Role,
    /// Who gets another passkey by it; null for somebody new.
    pub person: Option<String>,
    /// Where to register, once.
    pub url: String,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// An invitation that can still be used, without its secret.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OpenInvite {
    /// For addresses.
    pub id: i64,
    /// `viewer`, `member` or `admin`.
    pub role: String,
    /// Who gets another passkey by it; null for somebody new.
    pub person: Option<String>,
    /// Whether that person's passkeys and sessions of before end when it is used.
    pub ends_passkeys: bool,
    /// Who made it; null if that is not known.
    pub created_by: Option<String>,
    /// Unix ms.
    pub created_at_ms: i64,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// Invitations that can still be used.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct InviteList {
    /// The one that ends first first.
    pub invites: Vec<OpenInvite>,
}

/// A token as lists show it; its secret is nowhere.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Token {
    /// Unique name.
    pub name: String,
    /// `read`, `submit` or `admin`; it never reaches farther than its owner.
    pub scope: String,
    /// Whose it is: it ends with the person. Null for one made on the server's own machine.
    pub owner: Option<String>,
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

/// Tokens.
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
    /// How far it reaches: no farther than its maker.
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
