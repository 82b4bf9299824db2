//! Ends a load before its time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Ends a load from another thread; its generator checks it at least every 50 ms.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    requested: AtomicBool,
    fault: OnceLock<String>,
}

impl Stop {
    /// Ends the load. Its summary says that it was interrupted.
    pub fn request(&self) {
        self.0.requested.store(true, Ordering::Relaxed);
    }

    /// Whether the load ends.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(Ordering::Relaxed)
    }

    /// Ends the load because of a fault of this machine. The first one counts.
    pub(crate) fn fail(&self, fault: String) {
        // Later ones are its consequences.
        let _ = self.0.fault.set(fault);
        self.request();
    }

    /// Returns the fault of this machine that ended the load.
    pub(crate) fn fault(&self) -> Option<&str> {
        self.0.fault.get().map(String::as_str)
    }
}
