//! Detects changes of the system time by comparing it with a monotonic clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use tokio_util::task::AbortOnDropHandle;

use brewbench_wire::now_ms;

/// How often the clock is checked during a run.
const EVERY: Duration = Duration::from_secs(1);

/// Two clocks read within this time count as read simultaneously.
const SIMULTANEOUS: Duration = Duration::from_millis(2);
/// Retries to read them simultaneously.
const TRIES: u32 = 10;

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    unix_ms: i64,
    counted: Instant,
}

impl Clocks {
    /// Reads both clocks. If the thread is preempted between the two reads, which would look like a jump, it retries.
    pub fn now() -> Self {
        let read = || {
            let before = Instant::now();
            let both = Self { unix_ms: now_ms(), counted: Instant::now() };
            (both.counted.duration_since(before), both)
        };
        let mut best = read();
        for _ in 0..TRIES {
            if best.0 <= SIMULTANEOUS {
                break;
            }
            let again = read();
            if again.0 < best.0 {
                best = again;
            }
        }
        best.1
    }

    /// Returns by how much the clock was set since an earlier moment, milliseconds; negative if back. Sleep of the
    /// machine counts as a jump forward, because nothing was measured during it. One millisecond more or less is
    /// rounding.
    pub fn jump_ms(&self, since: &Self) -> i64 {
        jump_ms(self.unix_ms.saturating_sub(since.unix_ms), self.counted.duration_since(since.counted))
    }
}

fn jump_ms(elapsed_ms: i64, counted: Duration) -> i64 {
    elapsed_ms.saturating_sub(i64::try_from(counted.as_millis()).unwrap_or(i64::MAX))
}

/// Watches the clock during a run, as one that was set and set back is right again at the end.
#[derive(Debug)]
pub struct Watch {
    begun: Clocks,
    farthest_ms: Arc<AtomicI64>,
    _watching: AbortOnDropHandle<()>,
}

impl Watch {
    /// Starts watching, until dropped. Must be called within a runtime.
    pub fn begin() -> Self {
        let (begun, farthest_ms) = (Clocks::now(), Arc::new(AtomicI64::new(0)));
        let recorded = Arc::clone(&farthest_ms);
        let watching = tokio::spawn(async move {
            let mut ticks = tokio::time::interval(EVERY);
            loop {
                ticks.tick().await;
                let seen = farther(recorded.load(Ordering::Relaxed), Clocks::now().jump_ms(&begun));
                recorded.store(seen, Ordering::Relaxed);
            }
        });
        Self { begun, farthest_ms, _watching: AbortOnDropHandle::new(watching) }
    }

    /// Returns the largest deviation, ms; negative if the clock was set back.
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
    fn a_jump_is_detected_in_both_directions() {
        let before = Clocks::now();
        let later = |elapsed_ms: i64| Clocks {
            unix_ms: before.unix_ms + elapsed_ms,
            counted: before.counted + Duration::from_secs(30),
        };
        assert_eq!(later(30_000).jump_ms(&before), 0);
        assert_eq!(later(3_630_000).jump_ms(&before), 3_600_000);
        assert_eq!(later(-970_000).jump_ms(&before), -1_000_000);
        assert_eq!(before.jump_ms(&later(0)), 0, "no time passed");
    }

    #[test]
    fn a_clock_set_and_set_back_still_counts_as_off() {
        assert_eq!([farther(0, 3), farther(-3_600_000, 2), farther(500, -900)], [3, -3_600_000, -900]);
    }

    #[tokio::test]
    async fn the_largest_deviation_is_remembered() {
        let watch = Watch::begin();
        watch.farthest_ms.store(-3_600_000, Ordering::Relaxed);
        assert_eq!(watch.farthest_ms(), -3_600_000);
    }
}
