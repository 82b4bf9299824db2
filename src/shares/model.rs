//! A share link. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::ids::{RunId, joined};

/// A share link, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Share {
    /// Its id, a sequence number.
    pub id: i64,
    /// The title of the comparison when the link was created.
    pub title: String,
    /// Ids of the runs that it shows.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
    /// The other query parameters of the comparison, e.g. `baseline=servy`.
    pub query: String,
    /// The user who created it.
    pub created_by: String,
    /// When it was created, unix ms.
    pub created_at_ms: i64,
    /// When it expires, unix ms; null if it never expires.
    pub expires_at_ms: Option<i64>,
    /// When it was revoked, unix ms.
    pub revoked_at_ms: Option<i64>,
}

/// All share links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ShareList {
    /// Newest first.
    pub shares: Vec<Share>,
}

/// A share link to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewShare {
    /// The query of the comparison, after `/compare?`, e.g. `runs=ID,ID&baseline=servy`.
    pub query: String,
    /// Days until it expires; it never expires if absent.
    #[serde(default)]
    pub expires_in_days: Option<u32>,
}

/// A created share link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedShare {
    /// Its id, for revoking it.
    pub id: i64,
    /// The URL with its secret, which is shown only once.
    pub url: String,
}

impl Share {
    /// Returns `open`, `expired` or `revoked`, at a time.
    pub fn state(&self, now_ms: i64) -> &'static str {
        match self {
            Self { revoked_at_ms: Some(_), .. } => "revoked",
            Self { expires_at_ms: Some(end), .. } if *end <= now_ms => "expired",
            _ => "open",
        }
    }

    /// Returns the complete query of its comparison.
    pub fn whole_query(&self) -> String {
        let runs = format!("runs={}", joined(&self.runs));
        if self.query.is_empty() { runs } else { format!("{runs}&{}", self.query) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_open_until_it_expires_or_is_revoked() {
        let share = Share {
            id: 1,
            title: String::new(),
            runs: vec!["a".to_owned().into(), "b".to_owned().into()],
            query: String::new(),
            created_by: String::new(),
            created_at_ms: 0,
            expires_at_ms: Some(10),
            revoked_at_ms: None,
        };
        assert_eq!((share.state(9), share.state(10)), ("open", "expired"));
        assert_eq!(share.whole_query(), "runs=a,b");
        let revoked = Share { revoked_at_ms: Some(5), query: "baseline=x".to_owned(), ..share };
        assert_eq!((revoked.state(6), revoked.whole_query().as_str()), ("revoked", "runs=a,b&baseline=x"));
    }
}
