//! Exponential histograms of latencies. Unlike percentiles, they add up exactly, over time and over generators.
//!
//! Buckets are those of Prometheus' native histograms: bucket `i` holds latencies above 2^((i-1)/2^schema) seconds and
//! up to 2^(i/2^schema) seconds. With k6's schema 3 a bucket is 9 % wide.

pub mod quantile;
pub mod sparse;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

pub use quantile::Quantile;

/// The schemas of native histograms, from the coarsest to the finest.
pub const SCHEMAS: std::ops::RangeInclusive<i8> = -4..=8;

/// Largest exponent of a latency in seconds; no clock measures beyond 2^-64 and 2^64 seconds.
const MAX_EXPONENT: i32 = 64;

/// Number of observations per latency bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    schema: i8,
    zero: u64,
    sum_ns: u64,
    /// Only buckets that are not empty.
    buckets: BTreeMap<i32, u64>,
}

impl Default for Histogram {
    /// Empty, with the finest schema, because adding uses the coarser one.
    fn default() -> Self {
        Self { schema: *SCHEMAS.end(), zero: 0, sum_ns: 0, buckets: BTreeMap::new() }
    }
}

impl Histogram {
    /// Builds a histogram from `zero` observations of zero, a sum of `sum_ns` nanoseconds, and buckets by index, in any
    /// order. `None` if a schema or an index does not exist, or the total overflows.
    pub fn new(schema: i8, zero: u64, sum_ns: u64, buckets: impl IntoIterator<Item = (i32, u64)>) -> Option<Self> {
        let limit = max_index(schema)?;
        let mut histogram = Self { schema, zero, sum_ns, buckets: BTreeMap::new() };
        let mut total = zero;
        for (index, count) in buckets {
            total = total.checked_add(count)?;
            if !(-limit..=limit).contains(&index) {
                return None;
            }
            histogram.put(index, count);
        }
        Some(histogram)
    }

    /// Returns the number of observations.
    pub fn total(&self) -> u64 {
        self.buckets.values().fold(self.zero, |total, &count| total.saturating_add(count))
    }

    /// Whether there are no observations.
    pub fn is_empty(&self) -> bool {
        self.zero == 0 && self.buckets.is_empty()
    }

    /// Returns the schema: buckets grow by the factor 2^(2^-schema).
    pub fn schema(&self) -> i8 {
        self.schema
    }

    /// Returns the number of zero observations.
    pub fn zero(&self) -> u64 {
        self.zero
    }

    /// Returns the sum of all observations, nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Returns index and count of each bucket that is not empty, ascending.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = (i32, u64)> {
        self.buckets.iter().map(|(&index, &count)| (index, count))
    }

    /// Returns the lower and upper bound of a bucket, milliseconds.
    pub fn bounds_ms(&self, index: i32) -> (f64, f64) {
        (self.edge_ms(index - 1), self.edge_ms(index))
    }

    /// Returns the mean, milliseconds; exact except for k6's own rounding.
    pub fn mean_ms(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum_ns as f64 / 1e6 / total as f64)
    }

    /// Adds all observations of another histogram. The result has the coarser schema of both.
    pub fn add(&mut self, other: &Self) {
        // An empty histogram does not affect the schema.
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            self.clone_from(other);
            return;
        }
        self.coarsen(other.schema);
        self.zero = self.zero.saturating_add(other.zero);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        for (index, count) in other.buckets() {
            self.put(coarser(index, other.schema, self.schema), count);
        }
    }

    /// Returns the observations added since an earlier state of the same histogram; `None` if observations disappeared,
    /// which means that it was restarted.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let mut rest = self.clone();
        if earlier.is_empty() {
            return Some(rest);
        }
        rest.coarsen(earlier.schema);
        rest.zero = self.zero.checked_sub(earlier.zero)?;
        // Sums are derived from floats and may shrink slightly.
        rest.sum_ns = self.sum_ns.saturating_sub(earlier.sum_ns);
        let mut before = earlier.clone();
        before.coarsen(rest.schema);
        for (index, count) in before.buckets() {
            let Entry::Occupied(mut bucket) = rest.buckets.entry(index) else { return None };
            match bucket.get().checked_sub(count)? {
                0 => drop(bucket.remove()),
                left => *bucket.get_mut() = left,
            }
        }
        Some(rest)
    }

    fn put(&mut self, index: i32, count: u64) {
        if count > 0 {
            let bucket = self.buckets.entry(index).or_default();
            *bucket = bucket.saturating_add(count);
        }
    }

    /// Merges buckets if this schema is coarser.
    pub fn coarsen(&mut self, schema: i8) {
        if schema < self.schema {
            let (from, buckets) = (self.schema, std::mem::take(&mut self.buckets));
            self.schema = schema;
            for (index, count) in buckets {
                self.put(coarser(index, from, schema), count);
            }
        }
    }

    /// Returns the upper bound of a bucket, milliseconds.
    fn edge_ms(&self, index: i32) -> f64 {
        (f64::from(index) * (-f64::from(self.schema)).exp2()).exp2() * 1e3
    }
}

impl<'a> std::iter::Sum<&'a Self> for Histogram {
    fn sum<I: Iterator<Item = &'a Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }
}

/// Returns the highest index of a schema; `None` if the schema does not exist.
fn max_index(schema: i8) -> Option<i32> {
    SCHEMAS.contains(&schema).then(|| if schema < 0 { MAX_EXPONENT >> -schema } else { MAX_EXPONENT << schema })
}

/// Returns the index of the bucket that contains a finer schema's bucket.
fn coarser(index: i32, from: i8, to: i8) -> i32 {
    ((index - 1) >> (from - to)) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_histogram() -> impl Strategy<Value = Histogram> {
        let buckets = proptest::collection::vec((-4..=4_i32, 0..1000_u64), 0..20);
        (SCHEMAS, 0..5_u64, 0..1_000_000_u64, buckets)
            .prop_map(|(schema, zero, sum, buckets)| Histogram::new(schema, zero, sum, buckets).expect("a histogram"))
    }

    fn sum(parts: &[&Histogram]) -> Histogram {
        parts.iter().copied().sum()
    }

    #[test]
    fn bucket_bounds_match_prometheus() {
        let histogram = Histogram::new(0, 0, 0, [(0, 1)]).expect("a histogram");
        assert_eq!(histogram.bounds_ms(0), (500.0, 1000.0));
        assert_eq!(histogram.bounds_ms(1), (1000.0, 2000.0));
    }

    #[test]
    fn a_counter_that_goes_backwards_has_no_difference() {
        let (small, large) = (Histogram::new(3, 0, 9, [(1, 4)]), Histogram::new(3, 0, 10, [(1, 5)]));
        let (small, large) = (small.expect("one"), large.expect("one"));
        assert_eq!(large.since(&small), Histogram::new(3, 0, 1, [(1, 1)]));
        assert_eq!(small.since(&large), None);
    }

    proptest! {
        #[test]
        fn since_reverses_add(earlier in any_histogram(), more in any_histogram()) {
            let later = sum(&[&earlier, &more]);
            let since = later.since(&earlier).expect("nothing disappeared");
            prop_assert_eq!(since.total(), more.total());
            prop_assert_eq!(sum(&[&earlier, &since]), later);
        }

        #[test]
        fn the_order_of_adding_does_not_matter(a in any_histogram(), b in any_histogram(), c in any_histogram()) {
            prop_assert_eq!(sum(&[&sum(&[&a, &b]), &c]), sum(&[&a, &sum(&[&b, &c])]));
            prop_assert_eq!(sum(&[&a, &b]), sum(&[&b, &a]));
        }

        #[test]
        fn a_coarser_bucket_contains_the_finer_ones(place in -1.0..=1.0_f64, from in SCHEMAS, by in 0..4_i8) {
            let max = max_index(from).expect("a schema");
            #[expect(clippy::cast_possible_truncation, reason = "an index")]
            let index = (place * f64::from(max)) as i32;
            let to = (from - by).max(*SCHEMAS.start());
            let at = |schema| Histogram::new(schema, 0, 0, []).expect("a histogram");
            let (fine, wide) = (at(from).bounds_ms(index), at(to).bounds_ms(coarser(index, from, to)));
            prop_assert!(wide.0 <= fine.0 && fine.1 <= wide.1, "{fine:?} in {wide:?}");
        }
    }
}
