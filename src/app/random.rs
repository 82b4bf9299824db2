//! Reproducible random numbers. Pure.

use rand_chacha::{ChaCha8Rng, rand_core::RngCore};

/// Returns a uniformly random number below a bound, by rejecting the incomplete top of the range.
pub fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let drawn = random.next_u64();
        if drawn < fair {
            return usize::try_from(drawn % bound).unwrap_or_default();
        }
    }
}
