//! What somebody should look at now, in memory: whoever watches over agents and queue sets it, every page may show it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::web::time_ago::{self, Moment};

/// One thing that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What it is about: `agent.away` or `queue.standstill`.
    pub kind: &'static str,
    /// Of which agent, or nothing.
    pub subject: String,
    /// What is wrong.
    pub sentence: String,
    /// The page where it can be looked at.
    pub href: String,
    /// When it began, unix ms.
    pub since_ms: i64,
    /// When it was raised, unix ms.
    pub raised_at_ms: i64,
}

impl Notice {
    /// When it began, for pages.
    pub fn began(&self) -> Moment {
        time_ago::ago(Some(self.since_ms))
    }
}

/// All of them; cheap to clone.
#[derive(Clone, Debug)]
pub struct Notices(watch::Sender<Arc<[Notice]>>);

impl Default for Notices {
    fn default() -> Self {
        Self(watch::Sender::new(Arc::default()))
    }
}

impl Notices {
    /// All that there are now.
    pub fn now(&self) -> Arc<[Notice]> {
        Arc::clone(&self.0.borrow())
    }

    /// Takes the place of all that there were; who listens hears of it only if that changes anything.
    pub fn set(&self, all: Vec<Notice>) {
        self.0.send_if_modified(|held| {
            let differs = **held != *all;
            if differs {
                *held = all.into();
            }
            differs
        });
    }

    /// Changes whenever they do.
    pub fn listen(&self) -> watch::Receiver<Arc<[Notice]>> {
        self.0.subscribe()
    }
}
