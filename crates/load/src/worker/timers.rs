//! Deadlines of requests, and rests of connections. Pure.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::clock::ms;

/// Deadlines and rests of the slots of a thread.
pub struct Timers {
    /// The deadline of each slot; `u64::MAX` without one. They are searched from time to time, which is cheaper than
    /// an order for each request.
    deadlines: Vec<u64>,
    sweep_ns: u64,
    swept_ns: u64,
    rests: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Timers {
    /// Creates them for some slots. `timeout_ns` is the shortest time until a deadline.
    pub fn new(slots: usize, timeout_ns: u64) -> Self {
        Self {
            deadlines: vec![u64::MAX; slots],
            sweep_ns: (timeout_ns / 20).clamp(ms(1), ms(100)),
            swept_ns: 0,
            rests: BinaryHeap::with_capacity(2 * slots),
        }
    }

    /// Sets the deadline of a slot.
    pub fn set_deadline(&mut self, slot: usize, ns: u64) {
        self.deadlines[slot] = ns;
    }

    /// Wakes a slot at a time.
    pub fn rest(&mut self, slot: usize, until_ns: u64) {
        self.rests.push(Reverse((until_ns, slot)));
    }

    /// Returns when something may be due.
    pub fn next_ns(&self, has_deadlines: bool) -> u64 {
        let sweep = if has_deadlines { self.swept_ns + self.sweep_ns } else { u64::MAX };
        self.rests.peek().map_or(sweep, |Reverse((ns, _))| sweep.min(*ns))
    }

    /// Returns the next slot that has rested, and until when.
    pub fn rested(&mut self, now_ns: u64) -> Option<(u64, usize)> {
        let Reverse(rest) = *self.rests.peek()?;
        if rest.0 > now_ns {
            return None;
        }
        self.rests.pop();
        Some(rest)
    }

    /// Begins to search the deadlines, if it is time to.
    pub fn begin_sweep(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.swept_ns + self.sweep_ns;
        if is_due {
            self.swept_ns = now_ns;
        }
        is_due
    }

    /// Returns the first slot from a number whose deadline has passed.
    pub fn expired(&self, from: usize, now_ns: u64) -> Option<usize> {
        self.deadlines.iter().skip(from).position(|&deadline| deadline <= now_ns).map(|place| from + place)
    }
}
