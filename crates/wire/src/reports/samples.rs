//! Collects single measurements in bounded memory: exact as long as there are few different ones, with a stated error
//! after that. Pure.

use std::collections::BTreeMap;

use crate::reports::report::{Definition, Latencies, Population};
use crate::reports::time::Time;

/// Maximum number of different values: some 20 MB.
const DISTINCT_MAX: usize = 500_000;

/// Bits of a float's fraction.
const FRACTION_BITS: u32 = 52;

/// The percentiles that are computed.
pub const PERCENTS: [f64; 8] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9];

/// Counts values, milliseconds.
#[derive(Clone, Debug)]
pub struct Samples {
    /// By the bits of the value without the last `dropped`: bits of floats that are not negative have their order.
    counts: BTreeMap<u64, u64>,
    dropped: u32,
    distinct_max: usize,
    total: u64,
    /// The lowest negative one. None of these is among the others.
    negative_ms: Option<f64>,
    negatives: u64,
    max_ms: f64,
    mean: f64,
    squares: f64,
}

impl Default for Samples {
    fn default() -> Self {
        Self::with_limit(DISTINCT_MAX)
    }
}

impl Samples {
    /// Creates an empty collection that keeps at most this number of different values.
    pub fn with_limit(distinct_max: usize) -> Self {
        let (counts, dropped, total, negative_ms, negatives) = (BTreeMap::new(), 0, 0, None, 0);
        Self { counts, dropped, distinct_max, total, negative_ms, negatives, max_ms: 0.0, mean: 0.0, squares: 0.0 }
    }

    /// Adds a value. A negative one is only noted.
    pub fn add(&mut self, ms: f64) {
        if ms.is_nan() || ms < 0.0 {
            self.negatives += 1;
            self.negative_ms = Some(self.negative_ms.map_or(ms, |before| before.min(ms)));
            return;
        }
        let ms = ms + 0.0;
        self.total += 1;
        self.max_ms = self.max_ms.max(ms);
        let distance = ms - self.mean;
        self.mean += distance / self.total as f64;
        self.squares += distance * (ms - self.mean);
        *self.counts.entry(ms.to_bits() >> self.dropped).or_default() += 1;
        while self.counts.len() > self.distinct_max && self.dropped < FRACTION_BITS {
            self.coarsen();
        }
    }

    fn coarsen(&mut self) {
        self.dropped += 1;
        let fine = std::mem::take(&mut self.counts);
        for (key, count) in fine {
            *self.counts.entry(key >> 1).or_default() += count;
        }
    }

    /// Returns how many values there are, with the negative ones.
    pub fn total(&self) -> u64 {
        self.total + self.negatives
    }

    /// Returns the lowest negative value, if there was one.
    pub fn negative_ms(&self) -> Option<f64> {
        self.negative_ms
    }

    /// Returns the value of a key: the middle of those that it stands for.
    fn value(&self, key: u64) -> Time {
        let low = f64::from_bits(key << self.dropped);
        let high = f64::from_bits(((key + 1) << self.dropped) - 1);
        Time { ms: f64::midpoint(low, high), error_ms: (high - low) / 2.0 }
    }

    /// Returns the values of a percentile: between the two requests around it, as k6 computes it.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rank is within the total")]
    pub fn percentile(&self, percent: f64) -> Option<Time> {
        let rank = percent / 100.0 * self.total.checked_sub(1)? as f64;
        let (low, high) = (self.at(rank.floor() as u64)?, self.at(rank.ceil() as u64)?);
        let ms = low.ms + (high.ms - low.ms) * rank.fract();
        Some(Time { ms, error_ms: low.error_ms.max(high.error_ms) })
    }

    /// Returns the value at a rank from 0.
    fn at(&self, rank: u64) -> Option<Time> {
        let mut before = 0;
        let reaches = |(key, count): (&u64, &u64)| {
            before += count;
            (before > rank).then_some(*key)
        };
        self.counts.iter().find_map(reaches).map(|key| self.value(key))
    }

    /// Returns the distribution.
    pub fn latencies(&self, of: Population) -> Latencies {
        if self.total == 0 {
            return Latencies::default();
        }
        let deviation = (self.squares / self.total as f64).max(0.0).sqrt();
        let min = self.at(0).filter(|_| self.negative_ms.is_none());
        let ends = Latencies {
            min,
            mean: Some(Time::exact(self.mean)),
            max: Some(Time::exact(self.max_ms)),
            stddev: Some(Time::exact(deviation)),
            of,
            definition: Definition::Interpolated,
            ..Latencies::default()
        };
        ends.with_percentiles(PERCENTS.map(|percent| (percent, self.percentile(percent))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn few_different_values_are_exact() {
        let mut samples = Samples::default();
        for ms in 1..=100 {
            samples.add(f64::from(ms));
        }
        let found = samples.latencies(Population::All);
        assert_eq!((found.min, found.max), (Some(Time::exact(1.0)), Some(Time::exact(100.0))));
        assert_eq!((found.mean, found.percentile(50.0)), (Some(Time::exact(50.5)), Some(Time::exact(50.5))));
        assert!((found.percentile(99.0).expect("p99").ms - 99.01).abs() < 1e-9);
        assert!((found.stddev.expect("one").ms - 28.866_07).abs() < 1e-5);
        assert!(Samples::default().latencies(Population::All).is_empty());
    }

    #[test]
    fn a_negative_value_makes_the_minimum_unknown() {
        let mut samples = Samples::default();
        for ms in [5.0, -2.0, 7.0] {
            samples.add(ms);
        }
        assert_eq!((samples.negative_ms(), samples.total()), (Some(-2.0), 3));
        assert_eq!(samples.latencies(Population::All).min, None);
    }

    proptest! {
        #[test]
        fn the_stated_error_holds(values in proptest::collection::vec(0.0..5_000.0_f64, 1..400), limit in 2_usize..500) {
            let (mut exact, mut coarse) = (Samples::with_limit(usize::MAX), Samples::with_limit(limit));
            for value in values {
                exact.add(value);
                coarse.add(value);
            }
            for percent in PERCENTS {
                let (right, found) = (exact.percentile(percent).expect("one"), coarse.percentile(percent).expect("one"));
                prop_assert!((right.ms - found.ms).abs() <= found.error_ms * (1.0 + 1e-9), "{right:?} {found:?}");
            }
            prop_assert!(coarse.counts.len() <= limit || coarse.dropped == FRACTION_BITS);
        }
    }
}
