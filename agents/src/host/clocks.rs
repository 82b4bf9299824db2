//! Whether the machine's clock was set: what the clock on the wall says against one that only counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use crate::wire::now_ms;

/// How often a clock is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Two clocks that are read within this are read at one moment.
const AT_ONCE: Duration = Duration::from_millis(2);
/// How often that is tried.
const TRIES: u32 = 10;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    unix_ms: i64,
    counted: Instant,
}

impl Clocks {
    /// Now. Between one clock and the other this thread may have to wait for a processor, which is no jump: then both are
    /// read again.
    pub fn now() -> Self {
        let read = || {
            let before = Instant::now();
            let both = Self { unix_ms: now_ms(), counted: Instant::now() };
            (both.counted.duration_since(before), both)
        };
        let mut best = read();
        for _ in 0..TRIES {
            if best.0 <= AT_ONCE {
                break;
            }
            let again = read();
            if again.0 < best.0 {
                best = again;
            }
        }
        best.1
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

/// Looks at the clock while a run lasts: one that was set and set back is right again at the end.
#[derive(Debug)]
pub struct Watch {
    begun: Clocks,
    farthest_ms: Arc<AtomicI64>,
    _looking: AbortOnDropHandle<()>,
}

impl Watch {
    /// From now on, until this is dropped. It must be called within a runtime.
    pub fn begin() -> Self {
        let (begun, farthest_ms) = (Clocks::now(), Arc::new(AtomicI64::new(0)));
        let noted = Arc::clone(&farthest_ms);
        let looking = tokio::spawn(async move {
            let mut turn = tokio::time::interval(EVERY);
            loop {
                turn.tick().await;
                let seen = farther(noted.load(Ordering::Relaxed), Clocks::now().jump_ms(&begun));
                noted.store(seen, Ordering::Relaxed);
            }
        });
        Self { begun, farthest_ms, _looking: AbortOnDropHandle::new(looking) }
    }

    /// How far it was off at most, ms; negative if it was set back.
    pub fn farthest_ms(&self) -> i64 {
        farther(self.farthest_ms.load(Ordering::Relaxed), Clocks::now().jump_ms(&self.begun))
    }
}

fn farther(one_ms: i64, other_ms: i64) -> i64 {
    if other_ms.unsigned_abs() > one_ms.unsigned_abs() { other_ms } else { one_ms }
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

    #[test]
    fn a_clock_that_was_set_and_set_back_was_off_nevertheless() {
        assert_eq!([farther(0, 3), farther(-3_600_000, 2), farther(500, -900)], [3, -3_600_000, -900]);
    }

    #[tokio::test]
    async fn the_farthest_that_was_seen_stays() {
        let watch = Watch::begin();
        watch.farthest_ms.store(-3_600_000, Ordering::Relaxed);
        assert_eq!(watch.farthest_ms(), -3_600_000);
    }
}
