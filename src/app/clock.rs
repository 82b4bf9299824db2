//! Decides whether the system clock is reliable enough to delete old data.
//!
//! A machine that boots with a wrong clock must not prune audit entries or series that are not old. Nothing is deleted
//! while the clock is suspect: while it is before the build time of this program, and for a day after a start or a jump
//! that puts it more than a day before, or more than 30 days after, the newest stored data. The day leaves time to see
//! the warning; after it, a server that was off for long or holds data from the future recovers by itself. Expiry is
//! not affected: only deletion waits.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use brewbench_wire::now_ms;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// How far the clock may be behind the newest stored data, because clocks get corrected.
const BEHIND_MS: i64 = DAY_MS;
/// How far it may be ahead, because a server may have been off.
const AHEAD_MS: i64 = 30 * DAY_MS;
/// How long a clock stays suspect.
const SUSPECT_FOR: Duration = Duration::from_hours(24);

/// Why the clock is suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It is before the build time of this program.
    BeforeBuild,
    /// It is before the newest stored data.
    BeforeNewest,
    /// It is far after the newest stored data.
    FarAhead,
}

impl Doubt {
    fn describe(self) -> &'static str {
        match self {
            Self::BeforeBuild => "it is before this program was built",
            Self::BeforeNewest => "it is more than a day before the newest stored data",
            Self::FarAhead => "it is more than 30 days after the newest stored data",
        }
    }
}

/// Returns why a time is suspect, given the newest stored time and the build time, all unix ms.
pub fn doubt(now: i64, newest: Option<i64>, built: i64) -> Option<Doubt> {
    if now < built {
        return Some(Doubt::BeforeBuild);
    }
    let newest = newest?;
    if now < newest.saturating_sub(BEHIND_MS) {
        return Some(Doubt::BeforeNewest);
    }
    (now > newest.saturating_add(AHEAD_MS)).then_some(Doubt::FarAhead)
}

/// Returns the build time of this program, unix ms.
fn built() -> i64 {
    env!("BREWBENCH_BUILT_AT_MS").parse().unwrap_or_default()
}

/// The clock of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Watch>>);

#[derive(Debug)]
struct Watch {
    /// The last observed time: unix ms, and the same moment on the monotonic clock.
    anchor: (i64, Instant),
    /// Nothing is deleted until then.
    suspect_until: Option<Instant>,
    built: i64,
}

impl Clock {
    /// Creates the clock at the start of a server; `newest` is the newest stored time.
    pub fn start(newest: Option<i64>) -> Self {
        Self::at((now_ms(), Instant::now()), newest, built())
    }

    fn at((now, tick): (i64, Instant), newest: Option<i64>, built: i64) -> Self {
        let mut watch = Watch { anchor: (now, tick), suspect_until: None, built };
        if let Some(doubt) = doubt(now, newest, built) {
            watch.suspect(doubt, tick);
        }
        Self(Arc::new(Mutex::new(watch)))
    }

    /// Returns whether old data may be deleted.
    pub fn may_delete(&self) -> bool {
        self.may_delete_at(now_ms(), Instant::now())
    }

    fn may_delete_at(&self, now: i64, tick: Instant) -> bool {
        let mut watch = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, since) = watch.anchor;
        let passed = i64::try_from(tick.saturating_duration_since(since).as_millis()).unwrap_or(i64::MAX);
        let expected = then.saturating_add(passed);
        watch.anchor = (now, tick);
        if let Some(doubt @ (Doubt::FarAhead | Doubt::BeforeBuild)) = doubt(now, Some(expected), watch.built) {
            watch.suspect(doubt, tick);
        }
        watch.suspect_until.is_none_or(|until| until <= tick)
    }
}

impl Watch {
    /// Stops deletion for a day and logs that once.
    fn suspect(&mut self, doubt: Doubt, tick: Instant) {
        if self.suspect_until.is_none_or(|until| until <= tick) {
            tracing::warn!(
                reason = doubt.describe(),
                "the system clock is suspect, so old data is kept for another day; if the clock is wrong, set it and restart"
            );
        }
        self.suspect_until = Some(tick + SUSPECT_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn clocks_that_contradict_stored_data_or_the_build_are_suspect() {
        for (now, newest, built, expected) in [
            (NOW, None, NOW, None),
            (NOW, Some(NOW), NOW, None),
            (NOW, Some(NOW + DAY_MS), 0, None),
            (NOW, Some(NOW + DAY_MS + 1), 0, Some(Doubt::BeforeNewest)),
            (NOW, Some(NOW - 30 * DAY_MS), 0, None),
            (NOW, Some(NOW - 30 * DAY_MS - 1), 0, Some(Doubt::FarAhead)),
            (NOW, Some(NOW), NOW + 1, Some(Doubt::BeforeBuild)),
            (0, None, NOW, Some(Doubt::BeforeBuild)),
            (i64::MAX, Some(i64::MIN), 0, Some(Doubt::FarAhead)),
        ] {
            assert_eq!(doubt(now, newest, built), expected, "{now} {newest:?} {built}");
        }
    }

    const HOUR_MS: i64 = DAY_MS / 24;

    /// Returns whether deletion is allowed some hours after the start, after a jump by some days.
    fn may_delete(clock: &Clock, start: Instant, hours: u32, jump_days: i64) -> bool {
        let now = NOW + i64::from(hours) * HOUR_MS + jump_days * DAY_MS;
        clock.may_delete_at(now, start + Duration::from_secs(u64::from(hours) * 3_600))
    }

    #[test]
    fn a_suspect_clock_is_accepted_after_a_day_unless_it_is_before_the_build() {
        let start = Instant::now();
        let clock = Clock::at((NOW, start), Some(NOW - 40 * DAY_MS), 0);
        assert!(!may_delete(&clock, start, 0, 0) && !may_delete(&clock, start, 23, 0));
        assert!(may_delete(&clock, start, 25, 0));
        let early = Clock::at((NOW, start), None, NOW + 90 * DAY_MS);
        assert!(!may_delete(&early, start, 48, 0));
    }

    #[test]
    fn a_clock_that_jumps_far_ahead_is_suspect_again() {
        let start = Instant::now();
        let clock = Clock::at((NOW, start), Some(NOW), 0);
        assert!(may_delete(&clock, start, 0, 0));
        assert!(!may_delete(&clock, start, 1, 31));
        assert!(!may_delete(&clock, start, 2, 0), "after the jump back it is unknown which time was right");
        assert!(may_delete(&clock, start, 26, 0));
    }
}
