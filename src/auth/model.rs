//! Scopes, roles and sessions. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a caller may do. Each scope includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// View everything.
    Read,
    /// Submit and cancel runs, import summaries.
    Submit,
    /// Manage users, tokens, agents and sizes.
    Admin,
}

impl Scope {
    /// All of them, in ascending order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Admin];

    /// Returns the text stored in the database and used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }

    /// Describes what the scope allows.
    pub fn reach(self) -> &'static str {
        match self {
            Self::Read => "view everything",
            Self::Submit => "also submit, cancel, import and delete runs",
            Self::Admin => "also manage users, tokens, agents and sizes",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a scope, use read, submit or admin"))
    }
}

/// A user's role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Submits.
    #[default]
    Member,
    /// Manages.
    Admin,
}

impl Role {
    /// All of them, in ascending order.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Admin];

    /// Returns the text stored in the database and used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
        }
    }

    /// Returns the scope of the role.
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
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is not a role, use viewer, member or admin"))
    }
}

/// The session that a caller uses.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Its id, which is no secret.
    pub id: i64,
    /// When its user last confirmed their identity with a passkey, unix ms.
    pub proved_at_ms: i64,
}
