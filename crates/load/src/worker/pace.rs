//! When requests start: at once after a response, after a rest, or on schedule.

use std::collections::VecDeque;

use super::Worker;
use super::slot::Phase;
use crate::clock::{Clock, ms};
use crate::schedule::Arrivals;
use crate::work::{Work, backoff_ns};

/// Connections of a closed load, of all threads, that may wait for their first response before the next ones open: the
/// shortest usual queue of a listening socket. If it overflows, connections wait for seconds.
const MOST_WAITING: u32 = 128;

/// A target that is slow for another reason gets more connections after this time.
const PATIENCE_NS: u64 = ms(20);

/// How often connections follow a level that changes.
const LEVEL_NS: u64 = ms(10);

/// What starts requests.
pub enum Pace {
    /// Slots below this number send one request after the other.
    Closed {
        active: usize,
        /// How many more may begin before one has its first response.
        allowed: u32,
        /// When it became the maximum again.
        allowed_ns: u64,
    },
    /// Free slots take the arrivals.
    Open {
        arrivals: Box<Arrivals>,
        /// Free slots that have been in use, the longest free one first, so that all take turns.
        free: VecDeque<usize>,
        /// Slots that have never been in use.
        fresh: std::ops::Range<usize>,
    },
}

fn most_waiting(work: &Work) -> u32 {
    (MOST_WAITING / work.threads).max(1)
}

impl Pace {
    pub fn new(work: &Work, thread: u32, clock: Clock) -> Self {
        let slots = usize::try_from(work.connections(thread)).unwrap_or(usize::MAX);
        match work.arrivals(thread, clock) {
            None => Self::Closed { active: 0, allowed: most_waiting(work), allowed_ns: 0 },
            Some(arrivals) => {
                Self::Open { arrivals: Box::new(arrivals), free: VecDeque::with_capacity(slots), fresh: 0..slots }
            }
        }
    }

    /// Returns the arrivals of an open load.
    pub fn arrivals(&self) -> Option<&Arrivals> {
        match self {
            Self::Closed { .. } => None,
            Self::Open { arrivals, .. } => Some(arrivals),
        }
    }

    /// Returns the next intended start, if a slot is free for it.
    pub fn next_start_ns(&self) -> Option<u64> {
        match self {
            Self::Open { arrivals, free, fresh } if !(free.is_empty() && fresh.is_empty()) => arrivals.next_ns(),
            _ => None,
        }
    }

    /// Returns when to compare the number of connections with the level again.
    pub fn next_level_ns(&self, now_ns: u64) -> u64 {
        match self {
            Self::Closed { .. } => now_ns + LEVEL_NS,
            Self::Open { .. } => u64::MAX,
        }
    }
}

impl Worker {
    /// Lets as many connections send as the level of a closed load says.
    pub(super) fn follow_level(&mut self) {
        if !self.turn.contains(self.now_ns) {
            return;
        }
        let Pace::Closed { active: before, allowed, allowed_ns } = &mut self.pace else { return };
        if self.now_ns >= *allowed_ns + PATIENCE_NS {
            (*allowed, *allowed_ns) = (most_waiting(&self.work), self.now_ns);
        }
        let level = self.work.active_connections(self.thread, self.clock.open_ns(self.now_ns));
        let level = usize::try_from(level).unwrap_or(usize::MAX).min(self.slots.len());
        let first = *before;
        let active = level.min(first.saturating_add(*allowed as usize));
        *allowed -= u32::try_from(active.saturating_sub(first)).unwrap_or(u32::MAX);
        *before = active;
        for place in first..active {
            // One that was switched off before may still have its last request.
            if self.slots[place].phase == Phase::Off {
                self.start(place, None);
            }
        }
        for place in active..first {
            if self.slots[place].phase == Phase::Resting {
                self.switch_off(place);
            }
        }
    }

    /// Notes that a connection has its first response.
    pub(super) fn confirm(&mut self) {
        if let Pace::Closed { allowed, .. } = &mut self.pace {
            *allowed = (*allowed + 1).min(most_waiting(&self.work));
        }
    }

    /// Starts the requests of an open load that are due, as far as connections are free and it has its turn.
    pub(super) fn start_due(&mut self) {
        while let Some(due_ns) = self.pace.next_start_ns().filter(|&due_ns| due_ns <= self.now_ns) {
            self.now_ns = self.clock.now_ns();
            if self.has_ended() || !self.turn.contains(self.now_ns) {
                return;
            }
            self.start_next(due_ns);
        }
    }

    /// Starts the requests that were due before the end, as far as connections are free. Later ones are too late.
    pub(super) fn start_last(&mut self) {
        while let Some(due_ns) = self.pace.next_start_ns() {
            self.now_ns = self.clock.now_ns();
            self.start_next(due_ns);
        }
    }

    fn start_next(&mut self, due_ns: u64) {
        let Pace::Open { arrivals, free, fresh } = &mut self.pace else { return };
        let Some(place) = free.pop_front().or_else(|| fresh.next()) else { return };
        arrivals.advance();
        let free_ns = self.slots[place].free_ns;
        let late_ns = self.now_ns.saturating_sub(due_ns.max(free_ns));
        let tally = self.tally();
        tally.scheduling.record(late_ns);
        tally.counts.waited += u64::from(free_ns > due_ns);
        self.start(place, Some(due_ns));
    }

    /// Decides what a slot does after a request. It rests after a failure of its connection.
    pub(super) fn follow_up(&mut self, place: usize, after_failure: bool) {
        let has_ended = self.has_ended();
        let slot = &mut self.slots[place];
        let rest_ns = if after_failure { backoff_ns(slot.failures) } else { self.work.think_ns };
        slot.free_ns = self.now_ns;
        let goes_on = match self.pace {
            Pace::Closed { active, .. } => place < active,
            Pace::Open { .. } => true,
        };
        if has_ended || !goes_on {
            self.switch_off(place);
        } else if rest_ns > 0 {
            self.rest(place, self.now_ns + rest_ns);
        } else {
            self.release(place);
        }
    }

    fn rest(&mut self, place: usize, until_ns: u64) {
        let slot = &mut self.slots[place];
        slot.phase = Phase::Resting;
        slot.wakes_ns = until_ns;
        self.timers.rest(place, until_ns);
    }

    /// Wakes slots that have rested.
    pub(super) fn wake(&mut self) {
        while let Some((until_ns, place)) = self.timers.rested(self.now_ns) {
            let slot = &mut self.slots[place];
            // One that was switched off may rest again, until another time.
            if slot.phase == Phase::Resting && slot.wakes_ns == until_ns {
                slot.free_ns = until_ns;
                self.release(place);
            }
        }
    }

    /// Lets a slot send the next request now, in the next turn, or when it is due.
    fn release(&mut self, place: usize) {
        match &mut self.pace {
            Pace::Closed { .. } if self.turn.contains(self.now_ns) => self.start(place, None),
            Pace::Closed { .. } => self.rest(place, self.clock.turn(self.now_ns).opens_ns),
            Pace::Open { free, .. } => {
                self.slots[place].phase = Phase::Idle;
                free.push_back(place);
            }
        }
    }
}
