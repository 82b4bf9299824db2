//! Splits a load among generators and their threads. Pure.

use brewbench_wire::job::Segment;

/// One of several equal parts of a load: of a numbered sequence, every `of`-th from `index`. All parts together have
/// each number once.
///
/// As k6's segments, parts interleave: no part is late because another begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Index, from 0.
    pub index: u64,
    /// Number of parts.
    pub of: u64,
}

impl Share {
    /// Returns the part of a thread of a generator.
    pub fn of_thread(segment: Option<Segment>, thread: u32, threads: u32) -> Self {
        let Segment { index, of } = segment.unwrap_or(Segment { index: 0, of: 1 });
        Self { index: u64::from(index) + u64::from(of) * u64::from(thread), of: u64::from(of) * u64::from(threads) }
    }

    /// Returns how many of the numbers below `total` it has.
    pub fn count(self, total: u64) -> u64 {
        (total + self.of - 1 - self.index) / self.of
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_parts_have_each_number_once(of in 1..6_u32, threads in 1..5_u32, total in 0..100_u64) {
            let parts = (0..of).flat_map(|index| {
                (0..threads).map(move |thread| Share::of_thread(Some(Segment { index, of }), thread, threads))
            });
            let mut numbers = Vec::new();
            for share in parts {
                let own: Vec<u64> = (share.index..total).step_by(usize::try_from(share.of).expect("few")).collect();
                prop_assert_eq!(own.len() as u64, share.count(total));
                numbers.extend(own);
            }
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..total).collect::<Vec<_>>());
        }
    }
}
