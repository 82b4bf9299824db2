//! What an agent can make the server log: short texts, and a bounded number of them.

use std::{num::NonZeroU32, sync::LazyLock, time::Duration};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

/// Maximum characters of a text of an agent in the log.
const MAX_CHARACTERS: usize = 300;

/// Texts of one agent at once; after that one every [`PAUSE`].
const BURST: NonZeroU32 = NonZeroU32::new(30).unwrap();
const PAUSE: Duration = Duration::from_secs(10);

/// Of all agents by name, so that reconnecting does not help.
static LIMIT: LazyLock<DefaultKeyedRateLimiter<String>> = LazyLock::new(|| {
    let quota = Quota::with_period(PAUSE).unwrap_or_else(|| Quota::per_minute(BURST));
    RateLimiter::keyed(quota.allow_burst(BURST))
});

/// Logs texts that come from an agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct AgentLog<'a> {
    /// The agent.
    pub name: &'a str,
}

impl AgentLog<'_> {
    /// Logs a warning with a text of the agent, unless it has sent too many.
    pub(super) fn warn(&self, text: &str, what: &str) {
        if self.may_say_more() {
            tracing::warn!(agent = self.name, reason = shortened(text), "{what}");
        }
    }

    fn may_say_more(&self) -> bool {
        LIMIT.check_key(&self.name.to_owned()).is_ok()
    }
}

/// Shortens a text of an agent.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_texts_is_not_logged() {
        let flood = AgentLog { name: "flood" };
        let said = (0..100_000).filter(|_| flood.may_say_more()).count();
        assert!((30..100).contains(&said), "{said} of 100,000 texts");
        assert!(AgentLog { name: "another" }.may_say_more());
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("busy"), "busy");
        assert_eq!(shortened(&"é".repeat(100_000)).chars().count(), MAX_CHARACTERS + 1);
    }
}
