//! Active alerts in memory: `alerts::watch` updates them, pages show them.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::web::time_ago::{self, RelativeTime};

/// An active alert as pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveAlert {
    /// Kind of the alert: `agent.disconnected`, `queue.stalled`, `database.damaged` or `database.log_lost`.
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
    pub fn began(&self) -> RelativeTime {
        time_ago::ago(Some(self.since_ms))
    }
}

/// All active alerts; cheap to clone.
#[derive(Clone, Debug)]
pub struct ActiveAlerts {
    all: watch::Sender<Arc<[ActiveAlert]>>,
    /// Those that are active until the server stops.
    lasting: Arc<Mutex<Vec<ActiveAlert>>>,
}

impl Default for ActiveAlerts {
    fn default() -> Self {
        Self { all: watch::Sender::new(Arc::default()), lasting: Arc::default() }
    }
}

impl ActiveAlerts {
    /// Returns the active alerts.
    pub fn now(&self) -> Arc<[ActiveAlert]> {
        Arc::clone(&self.all.borrow())
    }

    /// Adds an alert that is active until the server stops.
    pub fn add(&self, alert: ActiveAlert) {
        self.lasting.lock().unwrap_or_else(PoisonError::into_inner).push(alert.clone());
        self.all.send_modify(|current| *current = [alert].into_iter().chain(current.iter().cloned()).collect());
    }

    /// Replaces all alerts but those that last. Listeners are notified only if something changed.
    pub fn set(&self, others: Vec<ActiveAlert>) {
        let all: Vec<ActiveAlert> =
            self.lasting.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().chain(others).collect();
        self.all.send_if_modified(|current| {
            let differs = **current != *all;
            if differs {
                *current = all.into();
            }
            differs
        });
    }

    /// Returns a receiver that is notified of changes.
    pub fn listen(&self) -> watch::Receiver<Arc<[ActiveAlert]>> {
        self.all.subscribe()
    }
}
