//! Whether an agent's silence proves anything. Leases end by the clock on the wall, because they outlive the server; if that
//! clock is set, or the server itself was away (its machine slept, it was stopped), nobody can be blamed.

use std::time::{Duration, Instant};

use brewbench_agent::host::clocks::Clocks;

use crate::{
    app::{error::Result, state::AppState},
    dispatch::renewal::{give_up_expired, prolong_all},
};

/// Leases are looked at every second: who comes later than this was away.
const AWAY: Duration = Duration::from_secs(4);
/// Clocks that are kept right by the network are moved by less than this.
const SET_MS: u64 = 1_000;

/// When leases were looked at.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    clocks: Clocks,
    at: Instant,
}

impl Look {
    /// Now.
    pub fn now() -> Self {
        Self { clocks: Clocks::now(), at: Instant::now() }
    }

    /// Gives up what nobody has prolonged; after a time that proves nothing, everybody gets a whole lease.
    pub async fn again(&mut self, state: &AppState) -> Result<()> {
        let before = std::mem::replace(self, Self::now());
        if self.proves_nothing_since(&before) {
            tracing::warn!("the clock was set, or this server was away: all agents get a whole lease");
            prolong_all(state).await?;
        }
        give_up_expired(state).await
    }

    fn proves_nothing_since(&self, before: &Self) -> bool {
        self.clocks.jump_ms(&before.clocks).unsigned_abs() > SET_MS || self.at.duration_since(before.at) > AWAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_proves_something_and_a_server_that_was_away_nothing() {
        let before = Look::now();
        let later = |away: Duration| Look { at: before.at + away, ..before };
        assert!(!later(Duration::from_secs(1)).proves_nothing_since(&before));
        assert!(later(Duration::from_secs(20)).proves_nothing_since(&before));
    }

    #[test]
    fn a_clock_that_was_set_proves_nothing_either_way() {
        let before = Look::now();
        for hours in [-1, 1] {
            let set = Look { clocks: before.clocks.set_by(hours * 3_600_000), ..before };
            assert!(set.proves_nothing_since(&before));
        }
        let corrected = Look { clocks: before.clocks.set_by(200), ..before };
        assert!(!corrected.proves_nothing_since(&before));
    }
}
