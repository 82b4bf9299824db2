//! Whether the machine's clock was set: what the clock on the wall says against one that only counts.

use std::time::{Duration, Instant};

use crate::wire::now_ms;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    unix_ms: i64,
    counted: Instant,
}

impl Clocks {
    /// Now.
    pub fn now() -> Self {
        Self { unix_ms: now_ms(), counted: Instant::now() }
    }

    /// The same moment on a clock that was set by so much.
    #[must_use]
    pub fn set_by(self, ms: i64) -> Self {
        Self { unix_ms: self.unix_ms.saturating_add(ms), ..self }
    }

    /// By how much the clock was set since an earlier moment, milliseconds; negative if back. A machine that slept
    /// meanwhile counts as one whose clock was set forward: its time went on and nothing was measured. One more or less
    /// is rounding.
    pub fn jump_ms(&self, since: &Self) -> i64 {
        jump_ms(self.unix_ms.saturating_sub(since.unix_ms), self.counted.duration_since(since.counted))
    }
}

fn jump_ms(told_ms: i64, counted: Duration) -> i64 {
    told_ms.saturating_sub(i64::try_from(counted.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_noticed_either_way() {
        let before = Clocks::now();
        let later = |told_ms: i64| Clocks {
            unix_ms: before.unix_ms + told_ms,
            counted: before.counted + Duration::from_secs(30),
        };
        assert_eq!(later(30_000).jump_ms(&before), 0);
        assert_eq!(later(3_630_000).jump_ms(&before), 3_600_000);
        assert_eq!(later(-970_000).jump_ms(&before), -1_000_000);
        assert_eq!(before.jump_ms(&later(0)), 0, "no time has gone by before it began");
    }
}
