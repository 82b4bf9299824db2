//! The distribution of a rank sum over all assignments, counted one rank at a time. Pure.

use statrs::distribution::{ContinuousCDF, Normal};

/// Maximum number of runs in one stratum for exact counting, which takes O(n⁴).
pub(crate) const MAX_COUNTED: usize = 40;

/// Returns the binomial coefficient "`n` choose `k`".
pub(crate) fn choose(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| (n - k + i) as f64 / i as f64).product()
}

/// Number of ways to reach each rank sum, from the smallest sum on.
pub(crate) struct Sums {
    pub(crate) min: usize,
    pub(crate) ways: Vec<f64>,
}

impl Sums {
    /// Counts the sums of `count` of the ranks.
    pub(crate) fn choosing(ranks: &[usize], count: usize) -> Self {
        let mut sorted = ranks.to_vec();
        sorted.sort_unstable();
        let min: usize = sorted.iter().take(count).sum();
        let max: usize = sorted.iter().rev().take(count).sum();
        let mut by_count = vec![vec![0.0; max + 1]; count + 1];
        by_count[0][0] = 1.0;
        for (index, rank) in ranks.iter().enumerate().filter(|(_, rank)| **rank <= max) {
            for taken in (0..count.min(index + 1)).rev() {
                let (fewer, more) = by_count.split_at_mut(taken + 1);
                for (sum, ways) in fewer[taken][..=max - rank].iter().enumerate() {
                    if *ways > 0.0 {
                        more[0][sum + rank] += ways;
                    }
                }
            }
        }
        Self { min, ways: by_count.swap_remove(count).split_off(min) }
    }

    /// Counts the sums of two independent sums.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let mut both = vec![0.0; self.ways.len() + other.ways.len() - 1];
        for (sum, ways) in other.ways.iter().enumerate().filter(|(_, ways)| **ways > 0.0) {
            for (both, known) in both[sum..].iter_mut().zip(&self.ways) {
                *both += ways * known;
            }
        }
        Self { min: self.min + other.min, ways: both }
    }

    /// Returns the number of all assignments.
    pub(crate) fn total(&self) -> f64 {
        self.ways.iter().sum()
    }

    pub(crate) fn by_sum(&self) -> impl Iterator<Item = (f64, f64)> {
        self.ways.iter().enumerate().map(|(place, ways)| ((self.min + place) as f64, *ways))
    }
}

/// Returns how many pairwise differences at either end the test of one stratum rejects at `level`.
///
/// None if it can reject none. The k-th difference counts as k in the sum of the ranks, so its distribution decides.
pub(crate) fn rejected(one: usize, other: usize, level: f64) -> Option<usize> {
    let (all, pairs) = (one + other, one * other);
    if all > MAX_COUNTED {
        let deviation = (pairs as f64 * (all + 1) as f64 / 12.0).sqrt();
        let half = Normal::new(0.0, 1.0).ok()?.inverse_cdf(1.0 - level / 2.0) * deviation;
        return to_place(pairs as f64 / 2.0 - half);
    }
    let ranks: Vec<usize> = (1..=all).collect();
    let ways = Sums::choosing(&ranks, one).ways;
    let total: f64 = ways.iter().sum();
    let mut sum = 0.0;
    let inside = (0..=pairs).find(|place| {
        sum += ways[*place];
        sum / total > level / 2.0 * (1.0 + 1e-12)
    })?;
    inside.checked_sub(1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and far below 2^52")]
fn to_place(place: f64) -> Option<usize> {
    (place >= 1.0).then(|| place.floor() as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of Hollander & Wolfe for 5 and 5 at 95 %: the third and the twenty-third of 25.
    #[test]
    fn interval_ends_match_the_table() {
        assert_eq!(rejected(5, 5, 0.05), Some(2));
        assert_eq!(rejected(3, 3, 0.05), None);
        assert_eq!(rejected(5, 5, 2.0 / 252.0), Some(0), "the smallest p-value is enough");
    }
}
