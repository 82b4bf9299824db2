//! Expires leases, unless the server itself was unavailable.
//!
//! Leases use the wall clock because they outlive the server process. If that clock was changed, or the server was
//! suspended or stopped, an overdue heartbeat does not show that the agent is gone.

use std::time::{Duration, Instant};

use brewbench_wire::now_ms;

use crate::{
    app::{error::Result, state::AppState},
    dispatch::renewal::{give_up_expired, renew_all},
};

/// Leases are checked every second; after a longer gap the server was suspended.
const MAX_GAP: Duration = Duration::from_secs(4);
/// Network time synchronization moves the clock by less than this.
const MAX_CLOCK_JUMP_MS: u64 = 1_000;

/// The time of a check of all leases.
#[derive(Clone, Copy, Debug)]
pub struct LeaseCheck {
    /// By the wall clock.
    unix_ms: i64,
    at: Instant,
}

impl LeaseCheck {
    /// Returns a check at the current time.
    pub fn now() -> Self {
        Self { unix_ms: now_ms(), at: Instant::now() }
    }

    /// Gives up runs whose lease has expired; renews all leases instead if the time since the last check is unreliable.
    pub async fn run(&mut self, state: &AppState) -> Result<()> {
        let previous = std::mem::replace(self, Self::now());
        if self.is_unreliable_since(&previous) {
            tracing::warn!("the clock was changed or the server was suspended: all leases are renewed");
            renew_all(state).await?;
        }
        give_up_expired(state).await
    }

    fn is_unreliable_since(&self, previous: &Self) -> bool {
        let (passed_ms, gap) = (self.unix_ms.saturating_sub(previous.unix_ms), self.at.duration_since(previous.at));
        let gap_ms = i64::try_from(gap.as_millis()).unwrap_or(i64::MAX);
        gap > MAX_GAP || passed_ms.abs_diff(gap_ms) > MAX_CLOCK_JUMP_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_unreliable_if_it_is_longer_than_the_check_interval() {
        let before = LeaseCheck::now();
        let later = |gap_s: u32| LeaseCheck {
            unix_ms: before.unix_ms + i64::from(gap_s) * 1_000,
            at: before.at + Duration::from_secs(gap_s.into()),
        };
        assert!(!later(1).is_unreliable_since(&before));
        assert!(later(20).is_unreliable_since(&before));
    }

    #[test]
    fn a_clock_change_is_unreliable_in_both_directions() {
        let before = LeaseCheck::now();
        let set_by = |ms: i64| LeaseCheck { unix_ms: before.unix_ms + ms, ..before };
        for hours in [-1, 1] {
            assert!(set_by(hours * 3_600_000).is_unreliable_since(&before));
        }
        assert!(!set_by(200).is_unreliable_since(&before));
    }
}
