//! Percentiles of a histogram, with their error bounds.

use super::Histogram;

/// A percentile, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantile {
    /// Lower bound of the exact percentile.
    pub low: f64,
    /// Most likely value.
    pub estimate: f64,
    /// Upper bound.
    pub high: f64,
}

impl Quantile {
    const ZERO: Self = Self { low: 0.0, estimate: 0.0, high: 0.0 };

    /// Returns the quantile of values that are known to be between these, milliseconds.
    #[must_use]
    pub fn within(self, min: f64, max: f64) -> Self {
        let clamped = |ms: f64| ms.max(min).min(max);
        Self { low: clamped(self.low), estimate: clamped(self.estimate), high: clamped(self.high) }
    }

    /// Returns how far the exact percentile may be from the estimate, milliseconds.
    pub fn error(self) -> f64 {
        (self.estimate - self.low).max(self.high - self.estimate)
    }

    /// Interpolates linearly between two quantiles.
    fn between(self, other: Self, share: f64) -> Self {
        let mix = |from: f64, to: f64| from + (to - from) * share;
        Self {
            low: mix(self.low, other.low),
            estimate: mix(self.estimate, other.estimate),
            high: mix(self.high, other.high),
        }
    }
}

impl Histogram {
    /// Returns the latency below which the share `q` (0 to 1) of the observations lies; `None` without observations.
    ///
    /// Uses k6's definition, the linear interpolation between the two observations next to rank q·(n-1), so k6's own
    /// value lies between `low` and `high`. Within a bucket, observations are assumed to be evenly spread on a
    /// logarithmic scale.
    pub fn quantile(&self, q: f64) -> Option<Quantile> {
        let last = self.total().checked_sub(1)?;
        let rank = q.clamp(0.0, 1.0) * last as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the total")]
        let below = (rank.floor() as u64).min(last);
        let share = (rank - below as f64).clamp(0.0, 1.0);
        let low = self.observation(below);
        Some(if share > 0.0 { low.between(self.observation((below + 1).min(last)), share) } else { low })
    }

    /// Returns the highest latency, within the width of its bucket.
    pub fn max(&self) -> Option<Quantile> {
        self.quantile(1.0)
    }

    /// Returns the bounds of an observation, counted from 0 in ascending order. It must exist.
    fn observation(&self, number: u64) -> Quantile {
        let mut before = self.zero();
        if number < before {
            return Quantile::ZERO;
        }
        for (index, count) in self.buckets() {
            if number - before < count {
                let (low, high) = self.bounds_ms(index);
                let share = ((number - before) as f64 + 0.5) / count as f64;
                return Quantile { low, estimate: low * (high / low).powf(share), high };
            }
            before += count;
        }
        Quantile::ZERO
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SCHEMA: i8 = 3;

    /// Builds a histogram of latencies in milliseconds, by the definition of the buckets.
    #[expect(clippy::cast_possible_truncation, reason = "logarithms are small")]
    fn histogram(latencies: &[f64]) -> Histogram {
        let index = |ms: f64| ((ms / 1e3).log2() * f64::from(SCHEMA).exp2()).ceil() as i32;
        let zero = latencies.iter().filter(|&&ms| ms == 0.0).count() as u64;
        let others = latencies.iter().filter(|&&ms| ms > 0.0);
        Histogram::new(SCHEMA, zero, 0, others.map(|&ms| (index(ms), 1))).expect("a histogram")
    }

    /// k6's formula.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
    fn exact(sorted: &[f64], q: f64) -> f64 {
        let rank = q * (sorted.len() - 1) as f64;
        let (low, high) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
        low + (high - low) * (rank - rank.floor())
    }

    #[test]
    fn without_observations_there_is_no_percentile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(Histogram::default().max(), None);
    }

    #[test]
    fn requests_of_zero_duration_have_a_zero_percentile() {
        assert_eq!(histogram(&[0.0, 0.0]).quantile(0.99), Some(Quantile::ZERO));
    }

    proptest! {
        #[test]
        fn the_exact_percentile_lies_within_the_bounds(
            latencies in proptest::collection::vec(prop_oneof![1 => Just(0.0), 20 => 0.001..60_000_f64], 1..300),
            q in 0.0..=1.0_f64,
        ) {
            let found = histogram(&latencies).quantile(q).expect("observations");
            let mut sorted = latencies;
            sorted.sort_by(f64::total_cmp);
            let exact = exact(&sorted, q);
            let hair = exact * 1e-9;
            prop_assert!(found.low - hair <= exact && exact <= found.high + hair, "{exact} in {found:?}");
            prop_assert!(found.low <= found.estimate && found.estimate <= found.high, "{found:?}");
            let width = (-f64::from(SCHEMA)).exp2().exp2();
            prop_assert!(found.high <= found.low * width * (1.0 + 1e-9), "within one bucket: {found:?}");
        }

        #[test]
        fn percentiles_ascend(latencies in proptest::collection::vec(0.01..1e4_f64, 1..100), a in 0.0..1.0_f64, b in 0.0..1.0_f64) {
            let histogram = histogram(&latencies);
            let at = |q: f64| histogram.quantile(q).expect("observations").estimate;
            prop_assert!(at(a.min(b)) <= at(a.max(b)) * (1.0 + 1e-12));
        }
    }
}
