//! What ends with a user or a role: whatever a user created for others depends on the user's own role. Pure.
//!
//! The database ends it in the transaction of the removal or demotion (`migrations/0026_authority.sql`), and every use
//! checks again that its creator may still grant it.

use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::auth::model::Role;

/// A kind of item that can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// A passkey of the user.
    Passkey,
    /// A session of the user.
    Session,
    /// A token of the user.
    Token,
    /// An invitation that has not been used.
    Invitation,
    /// An unused link for another passkey of an existing user.
    RecoveryLink,
    /// The one-time key of an agent that has not enrolled.
    AgentKey,
    /// A link to a comparison that needs no login.
    ShareLink,
    /// An address to which events are sent.
    Webhook,
}

impl AccessKind {
    /// Returns the singular, for users.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passkey => "passkey",
            Self::Session => "session",
            Self::Token => "token",
            Self::Invitation => "invitation",
            Self::RecoveryLink => "recovery link",
            Self::AgentKey => "agent key",
            Self::ShareLink => "share link",
            Self::Webhook => "webhook",
        }
    }
}

impl std::str::FromStr for AccessKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        use AccessKind::{AgentKey, Invitation, Passkey, RecoveryLink, Session, ShareLink, Token, Webhook};
        [Passkey, Session, Token, Invitation, RecoveryLink, AgentKey, ShareLink, Webhook]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| format!("unknown kind {text:?}"))
    }
}

/// An item that ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ending {
    /// Its kind.
    pub kind: AccessKind,
    /// Its name; for an invitation the granted role, for a webhook its origin.
    pub name: String,
}

/// Items that end, or ended, with a user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndingList {
    /// By kind, then by name.
    pub ends: Vec<Ending>,
}

impl Ending {
    /// Creates an item to show. Of a webhook only the origin remains: its path may be a secret.
    pub fn new(kind: AccessKind, name: String) -> Self {
        let name = match kind {
            AccessKind::Webhook => name.parse::<Url>().map_or(name, |url| url.origin().ascii_serialization()),
            _ => name,
        };
        Self { kind, name }
    }
}

impl EndingList {
    /// Returns a sentence for each kind: `3 share links end: a, b, c.`
    pub fn sentences(&self) -> Vec<String> {
        self.ends
            .chunk_by(|one, next| one.kind == next.kind)
            .map(|same| {
                let names: Vec<&str> = same.iter().map(|ending| ending.name.as_str()).collect();
                let (kind, names) = (same[0].kind.as_str(), names.join(", "));
                match same.len() {
                    1 => format!("1 {kind} ends: {names}."),
                    count => format!("{count} {kind}s end: {names}."),
                }
            })
            .collect()
    }
}

/// Returns whether a role may grant what needs at least the other role.
pub fn suffices(role: Role, needed: Role) -> bool {
    role.scope() >= needed.scope()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_are_grouped_by_kind_and_hide_secrets_of_addresses() {
        let ends = vec![
            Ending::new(AccessKind::ShareLink, "a".to_owned()),
            Ending::new(AccessKind::ShareLink, "b".to_owned()),
            Ending::new(AccessKind::Webhook, "https://hooks.example.com/T0/secret".to_owned()),
        ];
        let sentences = EndingList { ends }.sentences();
        assert_eq!(sentences, ["2 share links end: a, b.", "1 webhook ends: https://hooks.example.com."]);
        assert_eq!("agent key".parse(), Ok(AccessKind::AgentKey));
    }
}
