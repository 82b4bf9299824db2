//! Expires leases, unless the server itself was unavailable.
//!
//! Leases use the wall clock because they outlive the server process. If that clock was changed, or the server was
//! suspended or stopped, an overdue heartbeat does not show that the agent is gone.

use std::time::{Duration, Instant};

use brewbench_agent::host::clocks::Clocks;

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
    clocks: Clocks,
    at: Instant,
}

impl LeaseCheck {
    /// Returns a check at the current time.
    pub fn now() -> Self {
        Self { clocks: Clocks::now(), at: Instant::now() }
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
        self.clocks.jump_ms(&previous.clocks).unsigned_abs() > MAX_CLOCK_JUMP_MS
            || self.at.duration_since(previous.at) > MAX_GAP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_unreliable_if_it_is_longer_than_the_check_interval() {
        let before = LeaseCheck::now();
        let later = |gap: Duration| LeaseCheck { at: before.at + gap, ..before };
        assert!(!later(Duration::from_secs(1)).is_unreliable_since(&before));
        assert!(later(Duration::from_secs(20)).is_unreliable_since(&before));
    }

    #[test]
    fn a_clock_change_is_unreliable_in_both_directions() {
        let before = LeaseCheck::now();
        for hours in [-1, 1] {
            let changed = LeaseCheck { clocks: before.clocks.set_by(hours * 3_600_000), ..before };
            assert!(changed.is_unreliable_since(&before));
        }
        let corrected = LeaseCheck { clocks: before.clocks.set_by(200), ..before };
        assert!(!corrected.is_unreliable_since(&before));
    }
}
