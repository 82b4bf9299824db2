//! The time since the start of a load, on the monotonic clock: steps of the system's clock do not matter.

use std::time::{Duration, Instant};

/// The start of a load.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the nanoseconds since the start.
    pub fn now_ns(self) -> u64 {
        nanoseconds(self.0.elapsed())
    }
}

/// Returns the nanoseconds of a duration.
pub fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(u64::from(duration.subsec_nanos()))
}

/// Returns the nanoseconds of milliseconds.
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1_000_000)
}
