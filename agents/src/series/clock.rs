//! The clock of a run's series.

use std::time::Instant;

use brewbench_wire::now_ms;

/// Unix milliseconds that neither jump nor run backwards: read once, then advanced by a monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    set_at: Instant,
    unix_ms: i64,
}

impl Clock {
    /// Sets the clock to the machine's time.
    #[expect(clippy::new_without_default, reason = "two clocks set at different times differ")]
    pub fn new() -> Self {
        Self { set_at: Instant::now(), unix_ms: now_ms() }
    }

    /// Returns the current time, unix milliseconds.
    pub fn now_ms(&self) -> i64 {
        let since = i64::try_from(self.set_at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.unix_ms.saturating_add(since)
    }
}
