//! Shares of simulated rounds, and whether they are within what simulation allows.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rand::{SeedableRng, rngs::StdRng};

/// How often something happened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// How often.
    pub hits: usize,
    /// Of so many.
    pub of: usize,
}

impl Share {
    /// Counts one round.
    pub fn count(&mut self, hit: bool) {
        self.hits += usize::from(hit);
        self.of += 1;
    }

    /// Adds the rounds of another.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { hits: self.hits + other.hits, of: self.of + other.of }
    }

    /// The share; none of nothing.
    pub fn value(self) -> Option<f64> {
        (self.of > 0).then(|| self.hits as f64 / self.of as f64)
    }

    /// In percent, for a table.
    pub fn percent(self) -> String {
        self.value().map_or_else(|| "–".to_owned(), |share| format!("{:.1}", share * 100.0))
    }
}

#[cfg(test)]
impl Share {
    /// Whether a true share of at most `most` explains it: within three standard errors.
    pub fn is_at_most(self, most: f64) -> bool {
        self.value().is_none_or(|share| share <= most + 3.0 * (most * (1.0 - most) / self.of as f64).sqrt())
    }

    /// Whether a true share of at least `least` explains it.
    pub fn is_at_least(self, least: f64) -> bool {
        self.value().is_none_or(|share| share >= least - 3.0 * (least * (1.0 - least) / self.of as f64).sqrt())
    }
}

/// Simulates rounds on all processors; each round has a seed of its own, so that the result does not depend on their number.
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
