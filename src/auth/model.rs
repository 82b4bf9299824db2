//! Scopes and roles. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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
    /// All, from the least on.
    pub const ALL: [Self; 3] = [Self::Read, Self::Submit, Self::Admin];

    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Submit => "submit",
            Self::Admin => "admin",
        }
    }

    /// What it lets a program do.
    pub fn reach(self) -> &'static str {
        match self {
            Self::Read => "looks at everything",
            Self::Submit => "submits, cancels, imports and deletes runs as well",
            Self::Admin => "manages people, tokens, agents and sizes as well",
        }
    }
}

impl std::str::FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no scope: read, submit or admin"))
    }
}

/// What a person is.
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
    /// All, from the least on.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Member, Self::Admin];

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
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role: viewer, member or admin"))
    }
}
