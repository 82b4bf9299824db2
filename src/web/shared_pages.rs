//! The live pages that are shown now, and what they have sent last. `live_shared` renders them.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use axum::response::sse::Event;
use tokio::sync::watch;

/// The pages that are shown now, by what they show; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct SharedPages(Arc<Mutex<HashMap<String, Weak<watch::Sender<LastSent>>>>>);

/// What a page has sent last.
#[derive(Clone, Debug, Default)]
pub struct LastSent {
    /// The last frame that replaces everything.
    pub whole: Arc<[Event]>,
    /// Number of such frames.
    pub wholes: u64,
    /// What was sent after it.
    pub rest: Arc<[Event]>,
}

impl SharedPages {
    /// Subscribes to a page; `start` renders it if nobody follows it.
    pub fn join(&self, key: String, start: impl FnOnce(Arc<watch::Sender<LastSent>>)) -> watch::Receiver<LastSent> {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages.get(&key).and_then(Weak::upgrade) {
            let mut shown = page.subscribe();
            shown.mark_changed();
            return shown;
        }
        pages.retain(|_, page| page.strong_count() > 0);
        let page = Arc::new(watch::Sender::default());
        pages.insert(key, Arc::downgrade(&page));
        let shown = page.subscribe();
        start(page);
        shown
    }
}
