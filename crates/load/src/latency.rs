//! A histogram of latencies in an array of fixed size, for the hot path. Pure.
//!
//! Its buckets are those of [`Histogram`] with the finest schema, 8: 0.27 % wide, so that histograms of threads, seconds
//! and generators add up exactly. Recording is two lookups: buckets repeat in every octave, and a value's leading bits
//! leave two candidates.

use std::sync::LazyLock;

use brewbench_wire::histogram::Histogram;

/// The schema of the recorded buckets.
pub const SCHEMA: i8 = 8;

/// Buckets of an octave.
const PER_OCTAVE: usize = 1 << SCHEMA;

/// Octaves from 1 ns: the longest latency is 78 hours.
const OCTAVES: usize = 48;

/// Leading bits that select the candidates: a cell is narrower than a bucket, so that it contains at most one edge.
const CELL_BITS: u32 = 9;

/// Octaves between 1 ns and the octave that contains 1 s.
const OCTAVE_OF_A_SECOND: i32 = 29;

/// Buckets between the start of that octave and the upper bound of bucket 0, which is 1 s.
const BEFORE_A_SECOND: i32 = 229;

/// Where buckets begin within an octave.
#[derive(Debug)]
struct Edges {
    /// The first bucket that can contain a value of a cell.
    first: [u16; 1 << CELL_BITS],
    /// The upper bound of each bucket, scaled so that an octave begins at 2^63.
    upper: [u64; PER_OCTAVE + 1],
}

static EDGES: LazyLock<Edges> = LazyLock::new(Edges::new);

impl Edges {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 2^63 and 2^64, saturating")]
    fn new() -> Self {
        let second = 1e9 / f64::from(1_u32 << OCTAVE_OF_A_SECOND);
        let mut upper = [0; PER_OCTAVE + 1];
        for (bucket, edge) in (-BEFORE_A_SECOND..).zip(&mut upper) {
            *edge = ((f64::from(bucket) / PER_OCTAVE as f64).exp2() * second * 63_f64.exp2()) as u64;
        }
        let mut first = [0; 1 << CELL_BITS];
        for (cell, first) in (0_u64..).zip(&mut first) {
            let lowest = 1 << 63 | cell << (63 - CELL_BITS);
            *first = upper.partition_point(|&edge| edge < lowest) as u16;
        }
        Self { first, upper }
    }

    /// Returns the place of the bucket of a latency above zero.
    fn place(&self, ns: u64) -> usize {
        let shift = ns.leading_zeros();
        let scaled = ns << shift;
        let cell = (scaled << 1 >> (64 - CELL_BITS)) as usize;
        let first = usize::from(self.first[cell]);
        let bucket = first + usize::from(scaled > self.upper[first]);
        (63 - shift as usize) * PER_OCTAVE + bucket
    }
}

/// Number of latencies per bucket, with exact sum, minimum and maximum.
#[derive(Clone, Debug)]
pub struct Latencies {
    edges: &'static Edges,
    counts: Box<[u64]>,
    /// One bit for each octave with a count, so that empty ones are neither read nor cleared.
    octaves: u64,
    zero: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            edges: &EDGES,
            counts: vec![0; OCTAVES * PER_OCTAVE + 1].into(),
            octaves: 0,
            zero: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl Latencies {
    /// Adds a latency.
    pub fn record(&mut self, ns: u64) {
        let ns = ns.min((1 << OCTAVES) - 1);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if ns == 0 {
            self.zero += 1;
            return;
        }
        let place = self.edges.place(ns);
        self.octaves |= 1 << (place / PER_OCTAVE);
        self.counts[place] += 1;
    }

    /// Adds all latencies of another histogram.
    pub fn add(&mut self, other: &Self) {
        let Self { edges: _, counts: _, octaves, zero, sum_ns, min_ns, max_ns } = other;
        self.octaves |= octaves;
        self.zero += zero;
        self.sum_ns = self.sum_ns.saturating_add(*sum_ns);
        self.min_ns = self.min_ns.min(*min_ns);
        self.max_ns = self.max_ns.max(*max_ns);
        for (place, count) in other.filled() {
            self.counts[place] += count;
        }
    }

    /// Removes all latencies.
    pub fn clear(&mut self) {
        for (octave, counts) in self.counts.chunks_mut(PER_OCTAVE).enumerate() {
            if self.octaves >> octave & 1 == 1 {
                counts.fill(0);
            }
        }
        (self.octaves, self.zero, self.sum_ns, self.min_ns, self.max_ns) = (0, 0, 0, u64::MAX, 0);
    }

    /// Returns the number of latencies.
    pub fn total(&self) -> u64 {
        self.zero + self.filled().map(|(_, count)| count).sum::<u64>()
    }

    /// Returns the lowest and the highest latency, nanoseconds; `None` without any.
    pub fn range_ns(&self) -> Option<(u64, u64)> {
        (self.min_ns <= self.max_ns).then_some((self.min_ns, self.max_ns))
    }

    /// Returns it in the form that is sent and stored.
    ///
    /// # Panics
    ///
    /// If there are more than 2^64 latencies.
    pub fn histogram(&self) -> Histogram {
        let offset = (OCTAVE_OF_A_SECOND << SCHEMA) + BEFORE_A_SECOND;
        let index = |place: usize| i32::try_from(place).unwrap_or(i32::MAX) - offset;
        let buckets = self.filled().map(|(place, count)| (index(place), count));
        Histogram::new(SCHEMA, self.zero, self.sum_ns, buckets).expect("all places are indices of the schema")
    }

    /// Returns place and count of each bucket that is not empty.
    fn filled(&self) -> impl Iterator<Item = (usize, u64)> {
        let octaves = self.counts.chunks(PER_OCTAVE).enumerate();
        let filled = octaves.filter(|(octave, _)| self.octaves >> octave & 1 == 1);
        let places = filled.flat_map(|(octave, counts)| (octave * PER_OCTAVE..).zip(counts.iter().copied()));
        places.filter(|&(_, count)| count > 0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn recorded(all: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        for &ns in all {
            latencies.record(ns);
        }
        latencies
    }

    #[test]
    fn a_second_is_the_upper_bound_of_bucket_0() {
        let index = |ns| recorded(&[ns]).histogram().buckets().next().map(|(index, _)| index);
        assert_eq!(index(1_000_000_000), Some(0));
        assert_eq!(index(1_000_000_001), Some(1));
        assert_eq!((index(2_000_000_000), index(500_000_000)), (Some(256), Some(-256)));
    }

    #[test]
    fn the_shortest_and_the_longest_latency_have_a_bucket() {
        let histogram = recorded(&[0, 1, u64::MAX]).histogram();
        assert_eq!((histogram.zero(), histogram.total()), (1, 3));
    }

    proptest! {
        #[test]
        fn each_latency_is_in_its_bucket_of_the_wire(exponent in 0..47_u32, mantissa: u64) {
            let ns = (mantissa | 1 << 63) >> (63 - exponent);
            let histogram = recorded(&[ns]).histogram();
            let (index, _) = histogram.buckets().next().expect("one");
            let (low, high) = histogram.bounds_ms(index);
            let (ms, hair) = (ns as f64 / 1e6, 1.0 + 1e-12);
            prop_assert!(low < ms * hair && ms <= high * hair, "{ns} ns in {low}..{high} ms");
        }

        #[test]
        fn parts_add_up(a in proptest::collection::vec(0..1_u64 << 40, 0..50), b in proptest::collection::vec(0..1_u64 << 20, 0..50)) {
            let (all, mut sum) = (recorded(&[a.clone(), b.clone()].concat()), recorded(&a));
            sum.add(&recorded(&b));
            prop_assert_eq!(sum.histogram(), all.histogram());
            prop_assert_eq!((sum.total(), sum.range_ns()), (all.total(), all.range_ns()));
            prop_assert_eq!(sum.total(), (a.len() + b.len()) as u64);
            sum.clear();
            prop_assert_eq!((sum.total(), sum.range_ns()), (0, None));
            prop_assert!(sum.histogram().is_empty());
        }
    }
}
