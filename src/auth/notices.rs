//! Notices about a user's account at the next visit: what another person may have done. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Something that happened to the account of a user, from the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Notice {
    /// Unix ms.
    pub at_ms: i64,
    /// The action, as the audit log names it.
    pub action: String,
    /// The user or token that did it.
    pub actor: String,
    /// Name of the passkey or token.
    pub object: String,
    /// The caller's address.
    pub address: Option<String>,
    /// Description such as `Firefox on Linux`; of logins only.
    pub device: Option<String>,
}

impl Notice {
    /// Returns a sentence without a full stop.
    pub fn describe(&self) -> String {
        let Self { actor, object, .. } = self;
        match self.action.as_str() {
            "logged in" => "New login to your account".to_owned(),
            "access recovered" => format!("Passkey {object} was registered with a recovery link"),
            "passkey added" => format!("Passkey {object} was added to your account"),
            "token created" => format!("Token {object} was created by {actor}"),
            "invitation created" => format!("{actor} created a recovery link for your account"),
            other => format!("{other}: {object}"),
        }
    }

    /// Returns from where it was done, such as `from 192.0.2.1`; empty if that is unknown.
    pub fn origin(&self) -> String {
        let parts = [self.device.as_deref(), self.address.as_deref()];
        let parts = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        if parts.is_empty() { parts } else { format!("from {parts}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_says_what_was_done_and_from_where() {
        let notice = Notice {
            at_ms: 0,
            action: "token created".to_owned(),
            actor: "token ci".to_owned(),
            object: "deploy".to_owned(),
            address: Some("192.0.2.1".to_owned()),
            device: None,
        };
        assert_eq!(notice.describe(), "Token deploy was created by token ci");
        assert_eq!(notice.origin(), "from 192.0.2.1");
        let device = Some("Firefox on Linux".to_owned());
        let login = Notice { action: "logged in".to_owned(), device, ..notice };
        assert_eq!(
            (login.describe().as_str(), login.origin().as_str()),
            ("New login to your account", "from Firefox on Linux, 192.0.2.1")
        );
    }
}
