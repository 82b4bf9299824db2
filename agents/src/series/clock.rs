//! The clock of a run's series.

use std::time::Instant;

use crate::wire::now_ms;

/// Unix milliseconds that neither jump nor run backwards: set once, then counted.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    set_at: Instant,
    unix_ms: i64,
}

impl Clock {
    /// Set by the machine's clock.
    #[expect(clippy::new_without_default, reason = "two clocks that were set at different times are not the same")]
    pub fn new() -> Self {
        Self { set_at: Instant::now(), unix_ms: now_ms() }
    }

    /// Now, in unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        let since = i64::try_from(self.set_at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.unix_ms.saturating_add(since)
    }
}
