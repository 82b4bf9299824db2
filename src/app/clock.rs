//! Whether the machine's clock can be believed enough to delete by it.
//!
//! A machine that starts with a wrong clock must not prune an audit log or series that are not old. So nothing that has
//! an age is deleted while the clock is doubtful: while it is before this program was built; and for a day after a start
//! (or a jump) at which it is more than a day before the newest thing that is stored, or more than 30 days after it. The
//! day gives its owner time to see the warning; a server that was off for long, or that holds things from the future,
//! goes on by itself. What has expired stays expired meanwhile: only deleting waits.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use brewbench_agent::wire::now_ms;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The clock may be so far before what is stored: clocks are set.
const BEHIND_MS: i64 = DAY_MS;
/// A server may have been off for so long.
const AHEAD_MS: i64 = 30 * DAY_MS;
/// A doubtful clock that runs for so long is believed.
const DOUBTED_FOR: Duration = Duration::from_hours(24);

/// Why a clock is doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It says that this program has not been built yet.
    BeforeBuild,
    /// What is stored comes from its future.
    BeforeNewest,
    /// Nothing was stored for very long, or it is far ahead.
    FarAhead,
}

impl Doubt {
    fn told(self) -> &'static str {
        match self {
            Self::BeforeBuild => "it is before this program was built",
            Self::BeforeNewest => "it is more than a day before the newest thing that is stored",
            Self::FarAhead => "it is more than 30 days after the newest thing that is stored",
        }
    }
}

/// Why a time is doubtful next to the newest that is stored and that of the build, all unix ms.
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

/// When this program was built, unix ms.
fn built() -> i64 {
    env!("BREWBENCH_BUILT_AT_MS").parse().unwrap_or_default()
}

/// The clock of one server; cheap to clone.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Watch>>);

#[derive(Debug)]
struct Watch {
    /// The newest time that was known to be right, or was stored: unix ms, and when that was by the clock that never jumps.
    anchor: (i64, Instant),
    /// Until when nothing is deleted.
    doubted_until: Option<Instant>,
    built: i64,
}

impl Clock {
    /// At the start of a server; `newest` is the newest time that is stored.
    pub fn start(newest: Option<i64>) -> Self {
        Self::at((now_ms(), Instant::now()), newest, built())
    }

    fn at((now, tick): (i64, Instant), newest: Option<i64>, built: i64) -> Self {
        let mut watch = Watch { anchor: (now, tick), doubted_until: None, built };
        if let Some(doubt) = doubt(now, newest, built) {
            watch.begin(doubt, tick);
        }
        Self(Arc::new(Mutex::new(watch)))
    }

    /// Whether what is old by this clock may be deleted.
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
            watch.begin(doubt, tick);
        }
        watch.doubted_until.is_none_or(|until| until <= tick)
    }
}

impl Watch {
    /// Nothing is deleted for a while. Said once, not each time that somebody asks.
    fn begin(&mut self, doubt: Doubt, tick: Instant) {
        if self.doubted_until.is_none_or(|until| until <= tick) {
            tracing::warn!(
                reason = doubt.told(),
                "this machine's clock is doubtful: nothing old is deleted for a day; set the clock and start again if it is wrong"
            );
        }
        self.doubted_until = Some(tick + DOUBTED_FOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_800_000_000_000;

    #[test]
    fn a_clock_is_doubted_where_what_is_stored_or_the_build_speaks_against_it() {
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

    /// Whether things may be deleted some hours after a start, where the clock goes on and jumps by some days.
    fn may_delete(clock: &Clock, start: Instant, hours: u32, jump_days: i64) -> bool {
        let now = NOW + i64::from(hours) * HOUR_MS + jump_days * DAY_MS;
        clock.may_delete_at(now, start + Duration::from_secs(u64::from(hours) * 3_600))
    }

    #[test]
    fn a_doubtful_clock_is_believed_after_a_day_and_one_before_the_build_never() {
        let start = Instant::now();
        let clock = Clock::at((NOW, start), Some(NOW - 40 * DAY_MS), 0);
        assert!(!may_delete(&clock, start, 0, 0) && !may_delete(&clock, start, 23, 0));
        assert!(may_delete(&clock, start, 25, 0));
        let early = Clock::at((NOW, start), None, NOW + 90 * DAY_MS);
        assert!(!may_delete(&early, start, 48, 0));
    }

    #[test]
    fn a_clock_that_jumps_far_ahead_is_doubted_again() {
        let start = Instant::now();
        let clock = Clock::at((NOW, start), Some(NOW), 0);
        assert!(may_delete(&clock, start, 0, 0));
        assert!(!may_delete(&clock, start, 1, 31));
        assert!(!may_delete(&clock, start, 2, 0), "back again, it is not known which was right");
        assert!(may_delete(&clock, start, 26, 0));
    }
}
