//! Shares of simulated rounds, and checks that allow for simulation error.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rand::{SeedableRng, rngs::StdRng};

/// A share of rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// Number of hits.
    pub hits: usize,
    /// Number of rounds.
    pub total: usize,
}

impl Share {
    /// Counts a round.
    pub fn count(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.total += 1;
    }

    /// Adds the rounds of another share.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { hits: self.hits + other.hits, total: self.total + other.total }
    }

    /// Returns the share; `None` without rounds.
    pub fn value(self) -> Option<f64> {
        (self.total > 0).then(|| self.hits as f64 / self.total as f64)
    }

    /// Formats the share in percent, for a table.
    pub fn percent(self) -> String {
        self.value().map_or_else(|| "–".to_owned(), |share| format!("{:.1}", share * 100.0))
    }
}

#[cfg(test)]
impl Share {
    /// Returns whether the share is consistent with a true one of at most `most`, within three standard errors.
    pub fn is_at_most(self, most: f64) -> bool {
        self.value().is_none_or(|share| share <= most + 3.0 * (most * (1.0 - most) / self.total as f64).sqrt())
    }

    /// Returns whether the share is consistent with a true one of at least `least`, likewise.
    pub fn is_at_least(self, least: f64) -> bool {
        self.value().is_none_or(|share| share >= least - 3.0 * (least * (1.0 - least) / self.total as f64).sqrt())
    }
}

/// Simulates rounds on all processors. Each round has its own seed, so the result does not depend on their number.
pub fn rounds<T: Send>(count: usize, seed: u64, round: impl Fn(&mut StdRng) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return done;
            }
            let mut random = StdRng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
            done.push(round(&mut random));
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from).min(count.max(1));
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("a simulation does not panic")).collect()
    })
}
