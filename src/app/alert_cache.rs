//! Active alerts in memory: `alerts::watch` updates them, pages show them.

use std::sync::Arc;

use tokio::sync::watch;

use crate::web::time_ago::{self, Moment};

/// An active alert as pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveAlert {
    /// Kind of the alert: `agent.disconnected` or `queue.stalled`.
    pub kind: &'static str,
    /// Name of the agent; empty for the queue.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// Path of the page with details.
    pub href: String,
    /// When it began, unix ms.
    pub since_ms: i64,
    /// When it was raised, unix ms.
    pub raised_at_ms: i64,
}

impl ActiveAlert {
    /// Returns when it began, for pages.
    pub fn began(&self) -> Moment {
        time_ago::ago(Some(self.since_ms))
    }
}

/// All active alerts; cheap to clone.
#[derive(Clone, Debug)]
pub struct ActiveAlerts(watch::Sender<Arc<[ActiveAlert]>>);

impl Default for ActiveAlerts {
    fn default() -> Self {
        Self(watch::Sender::new(Arc::default()))
    }
}

impl ActiveAlerts {
    /// Returns the active alerts.
    pub fn now(&self) -> Arc<[ActiveAlert]> {
        Arc::clone(&self.0.borrow())
    }

    /// Replaces all alerts. Listeners are notified only if something changed.
    pub fn set(&self, all: Vec<ActiveAlert>) {
        self.0.send_if_modified(|current| {
            let differs = **current != *all;
            if differs {
                *current = all.into();
            }
            differs
        });
    }

    /// Returns a receiver that is notified of changes.
    pub fn listen(&self) -> watch::Receiver<Arc<[ActiveAlert]>> {
        self.0.subscribe()
    }
}
