//! The time since the start of a load, on the monotonic clock: steps of the system's clock do not matter.

use std::thread;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use crate::turns::{Course, Turn, Turns};

/// The start of a load, and its turns.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    course: Option<Course>,
}

impl Clock {
    /// Starts now, or with the next pair of turns, for which it waits.
    pub fn start(turns: Option<Turns>) -> Self {
        let Some(turns) = turns else { return Self { start: Instant::now(), course: None } };
        // The same clock as that of `Instant`, which hides its time. Linux always has it.
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from).unwrap_or_default();
        let (course, wait) = turns.begin(now);
        let start = Instant::now() + wait;
        thread::sleep(wait);
        Self { start, course: Some(course) }
    }

    /// Returns the nanoseconds since the start.
    pub fn now_ns(self) -> u64 {
        nanoseconds(self.start.elapsed())
    }

    /// Returns the turn at a time, or the next one.
    pub fn turn(self, now_ns: u64) -> Turn {
        self.course.map_or(Turn::ALWAYS, |course| course.turn(now_ns))
    }

    /// Returns when the load has had so much time to start requests.
    pub fn at(self, open_ns: u64) -> u64 {
        self.course.map_or(open_ns, |course| course.at(open_ns))
    }

    /// Returns how much time to start requests the load has had at a time.
    pub fn open_ns(self, now_ns: u64) -> u64 {
        self.course.map_or(now_ns, |course| course.open_ns(now_ns))
    }
}

/// Returns the nanoseconds of a duration.
pub const fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs().saturating_mul(1_000_000_000).saturating_add(duration.subsec_nanos() as u64)
}

/// Returns the nanoseconds of milliseconds.
pub const fn ms(milliseconds: u64) -> u64 {
    milliseconds.saturating_mul(1_000_000)
}
