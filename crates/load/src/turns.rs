//! Two loads that take turns, so that their targets are never loaded at the same time. Pure.
//!
//! The machine's monotonic clock is divided into pairs of turns. Which of the two loads has the first one of a pair is
//! drawn at random from a seed that both know, so that they need not speak with each other. A turn ends with a pause, in
//! which no request starts and those in flight end.

use std::time::Duration;

use brewbench_wire::duet::{PAUSE, TURN};
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::clock::nanoseconds;

/// The length of a turn with its pause.
const TURN_NS: u64 = nanoseconds(TURN);

/// The pause at the end of a turn.
const PAUSE_NS: u64 = nanoseconds(PAUSE);

/// The time in which requests start.
const OPEN_NS: u64 = TURN_NS - PAUSE_NS;

/// Which turns a load has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turns {
    /// Seed of the order, the same for both loads.
    pub seed: u64,
    /// Whether this load has the turns that the other one has not.
    pub is_second: bool,
}

/// A time in which requests may start, nanoseconds since the start of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub opens_ns: u64,
    pub closes_ns: u64,
}

/// The turns of a load that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Course {
    turns: Turns,
    /// Number of the pair with which the load begins, since the boot of the machine.
    first: u64,
}

impl Turn {
    /// The turn of a load that shares the time with no other.
    pub const ALWAYS: Self = Self { opens_ns: 0, closes_ns: u64::MAX };

    /// Whether a time is in it.
    pub fn contains(self, ns: u64) -> bool {
        (self.opens_ns..self.closes_ns).contains(&ns)
    }
}

impl Turns {
    /// Returns how long a load takes with the turns of the other one.
    pub fn lasts(duration: Duration) -> Duration {
        Duration::from_nanos(pairs(duration) * 2 * TURN_NS)
    }

    /// Returns in how much of that time requests start: the duration, rounded up to complete turns.
    pub fn open(duration: Duration) -> Duration {
        Duration::from_nanos(pairs(duration) * OPEN_NS)
    }

    /// Returns the turns of a load that begins with the next pair, and the time until then. `now` is the monotonic clock.
    pub(crate) fn begin(self, now: Duration) -> (Course, Duration) {
        let now_ns = nanoseconds(now);
        let first = now_ns / (2 * TURN_NS) + 1;
        (Course { turns: self, first }, Duration::from_nanos(first * 2 * TURN_NS - now_ns))
    }
}

impl Course {
    /// Returns the turn at a time, or the next one.
    pub fn turn(self, now_ns: u64) -> Turn {
        let pair = now_ns / (2 * TURN_NS);
        let turn = self.of_pair(pair);
        if now_ns < turn.closes_ns { turn } else { self.of_pair(pair + 1) }
    }

    /// Returns the time at which this load has had so much time to start requests.
    pub fn at(self, open_ns: u64) -> u64 {
        self.of_pair(open_ns / OPEN_NS).opens_ns + open_ns % OPEN_NS
    }

    /// Returns how much time to start requests it has had at a time.
    pub fn open_ns(self, now_ns: u64) -> u64 {
        let pair = now_ns / (2 * TURN_NS);
        pair * OPEN_NS + now_ns.saturating_sub(self.of_pair(pair).opens_ns).min(OPEN_NS)
    }

    fn of_pair(self, pair: u64) -> Turn {
        let mut rng = ChaCha8Rng::seed_from_u64(self.turns.seed);
        rng.set_word_pos((self.first + pair).into());
        let is_later = (rng.next_u32() % 2 == 1) != self.turns.is_second;
        let opens_ns = pair * 2 * TURN_NS + if is_later { TURN_NS } else { 0 };
        Turn { opens_ns, closes_ns: opens_ns + OPEN_NS }
    }
}

fn pairs(duration: Duration) -> u64 {
    nanoseconds(duration).div_ceil(OPEN_NS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ms;

    fn both(seed: u64, now: Duration) -> [Course; 2] {
        [false, true].map(|is_second| Turns { seed, is_second }.begin(now).0)
    }

    #[test]
    fn both_loads_have_one_turn_of_each_pair_in_random_order() {
        let [one, other] = both(7, Duration::from_secs(1_000));
        let mut first = 0;
        for pair in 0..1_000 {
            let from = pair * 2 * TURN_NS;
            let (one, other) = (one.turn(from), other.turn(from));
            assert_eq!([one, other].map(|turn| turn.closes_ns - turn.opens_ns), [OPEN_NS; 2]);
            let mut starts = [one.opens_ns, other.opens_ns];
            starts.sort_unstable();
            assert_eq!(starts, [from, from + TURN_NS]);
            first += u32::from(one.opens_ns == from);
        }
        // Five standard deviations.
        assert!((420..580).contains(&first), "{first}");
    }

    #[test]
    fn loads_that_begin_in_different_pairs_agree() {
        let [one, _] = both(7, Duration::from_secs(1_000));
        let [_, later] = both(7, Duration::from_secs(1_000) + 3 * Duration::from_nanos(2 * TURN_NS));
        for pair in 0..100 {
            let (one, later) = (one.of_pair(pair + 3), later.of_pair(pair));
            assert_eq!(one.opens_ns.abs_diff(later.opens_ns + 6 * TURN_NS), TURN_NS);
        }
    }

    #[test]
    fn time_in_turns_is_counted_back_and_forth() {
        let (course, wait) = Turns { seed: 3, is_second: true }.begin(Duration::from_millis(1_234));
        assert_eq!(wait, Duration::from_millis(166));
        for open_ns in [0, 1, OPEN_NS - 1, OPEN_NS, 10 * OPEN_NS + ms(17)] {
            let at_ns = course.at(open_ns);
            assert!(course.turn(at_ns).contains(at_ns));
            assert_eq!(course.open_ns(at_ns), open_ns);
        }
        let turn = course.turn(0);
        assert_eq!((course.open_ns(turn.closes_ns), course.open_ns(turn.closes_ns + PAUSE_NS)), (OPEN_NS, OPEN_NS));
        assert!(course.turn(turn.closes_ns).opens_ns > turn.closes_ns, "the pause is in no turn");
        assert_eq!(Turns::lasts(Duration::from_secs(1)), Duration::from_millis(2_200));
        assert_eq!(Turns::open(Duration::from_secs(1)), Duration::from_millis(1_045));
    }
}
