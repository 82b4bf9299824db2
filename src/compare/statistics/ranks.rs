//! How often chance alone separates two cells as far as they are: the exact permutation test of the rank sums.
//!
//! If both sides were the same program, every order of their repetitions would be as likely as every other one. Counted
//! are the orders in which the sum of one side's ranks lies at least as far from its mean as it does (Mann & Whitney
//! 1947; with ties by midranks, Lehmann 1975, "Nonparametrics", section 1.4). Counting is by adding one rank after the
//! other to what sums there can be, so it is exact for any ties, and fast.

use statrs::distribution::{ContinuousCDF, Normal};

use super::{ALPHA, spread::sorted};

/// More repetitions together than this are not counted but judged by the normal distribution, which is true then: counting
/// takes as long as the fourth power of their number.
const MOST_COUNTED: usize = 40;

/// What the test says of two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranks {
    /// The share of orders that separate at least as far.
    pub p: f64,
    /// The least that this could have come to with so many repetitions and such ties.
    pub least_p: f64,
    /// The same without ties: what so many repetitions are able to show.
    pub untied_p: f64,
    /// Whether all figures of both sides are alike.
    pub is_flat: bool,
}

/// Tests two sides. None where one has nothing.
pub fn ranks(one: &[f64], other: &[f64]) -> Option<Ranks> {
    let (one, other) = (sorted(one.iter().copied()), sorted(other.iter().copied()));
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let doubled = doubled_midranks(&one, &other);
    let all = one.len() + other.len();
    // Ranks are doubled so that the middle of two is a whole number, and so is the mean of their sums.
    let mean = one.len() * (all + 1);
    let seen: usize = doubled[..one.len()].iter().sum();
    let untied_p = (2.0 / chosen(all, one.len())).min(1.0);
    let is_flat = doubled.windows(2).all(|pair| pair[0] == pair[1]);
    if is_flat {
        return Some(Ranks { p: 1.0, least_p: 1.0, untied_p, is_flat });
    }
    if all > MOST_COUNTED {
        return Some(Ranks { p: for_many(&doubled, one.len(), seen.abs_diff(mean)), least_p: 0.0, untied_p, is_flat });
    }
    let ways = ways(&doubled, one.len());
    let total: f64 = ways.iter().sum();
    let beyond = |distance: usize| {
        let far = ways.iter().enumerate().filter(|(sum, _)| sum.abs_diff(mean) >= distance);
        (far.map(|(_, ways)| ways).sum::<f64>() / total).min(1.0)
    };
    let farthest = ways.iter().enumerate().filter(|(_, ways)| **ways > 0.0).map(|(sum, _)| sum.abs_diff(mean)).max()?;
    Some(Ranks { p: beyond(seen.abs_diff(mean)), least_p: beyond(farthest), untied_p, is_flat })
}

/// How many of the ratios of each to each at either end the test refuses at 5 %; none where it can refuse nothing. The
/// k-th ratio counts in the sum of the ranks as k, so the sums' distribution tells.
pub(super) fn refused(one: usize, other: usize) -> Option<usize> {
    let (all, pairs) = (one + other, one * other);
    if all > MOST_COUNTED {
        let deviation = (pairs as f64 * (all + 1) as f64 / 12.0).sqrt();
        let half = Normal::new(0.0, 1.0).ok()?.inverse_cdf(1.0 - ALPHA / 2.0) * deviation;
        return to_place(pairs as f64 / 2.0 - half);
    }
    // Without ties: doubled ranks are 2, 4, 6, …, and the least sum is that of the first.
    let doubled: Vec<usize> = (1..=all).map(|rank| 2 * rank).collect();
    let ways = ways(&doubled, one);
    let (total, least): (f64, usize) = (ways.iter().sum(), one * (one + 1));
    let mut sum = 0.0;
    let inside = (0..=pairs).find(|place| {
        sum += ways[least + 2 * place];
        sum / total > ALPHA / 2.0
    })?;
    inside.checked_sub(1)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked, and far below 2^52")]
fn to_place(place: f64) -> Option<usize> {
    (place >= 1.0).then(|| place.floor() as usize - 1)
}

/// So many repetitions a side it takes at least until one of so many questions can be answered at all.
pub fn enough(questions: usize) -> usize {
    let needed = ALPHA / questions.max(1) as f64;
    (2..=MOST_COUNTED / 2).find(|n| 2.0 / chosen(2 * n, *n) <= needed).unwrap_or(MOST_COUNTED / 2)
}

/// Twice the midranks of both sides, those of the first side first. Both must be sorted.
fn doubled_midranks(one: &[f64], other: &[f64]) -> Vec<usize> {
    let rank = |value: &f64| {
        let sides = [one, other];
        let below: usize = sides.iter().map(|side| side.partition_point(|known| known < value)).sum();
        let up_to: usize = sides.iter().map(|side| side.partition_point(|known| known <= value)).sum();
        below + up_to + 1
    };
    one.iter().chain(other).map(rank).collect()
}

/// By sum, in how many ways `count` of the ranks come to it.
fn ways(doubled: &[usize], count: usize) -> Vec<f64> {
    let most: usize = doubled.iter().sum();
    let mut by_count = vec![vec![0.0; most + 1]; count + 1];
    by_count[0][0] = 1.0;
    for (seen, rank) in doubled.iter().enumerate() {
        for taken in (0..count.min(seen + 1)).rev() {
            let (fewer, more) = by_count.split_at_mut(taken + 1);
            for (sum, ways) in fewer[taken][..=most - rank].iter().enumerate() {
                if *ways > 0.0 {
                    more[0][sum + rank] += ways;
                }
            }
        }
    }
    by_count.swap_remove(count)
}

/// The normal approximation, corrected for ties and for sums being whole (Lehmann 1975, section 1.5).
fn for_many(doubled: &[usize], count: usize, distance: usize) -> f64 {
    let n = doubled.len() as f64;
    let mean = doubled.iter().sum::<usize>() as f64 / n;
    let variance = doubled.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let share = count as f64 / n;
    let deviation = (variance * n * share * (1.0 - share)).sqrt();
    let z = (distance as f64 - 1.0).max(0.0) / deviation;
    Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.sf(z)).min(1.0))
}

/// In how many ways `k` of `n` can be chosen.
fn chosen(n: usize, k: usize) -> f64 {
    (1..=k).map(|i| (n - k + i) as f64 / i as f64).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(one: &[f64], other: &[f64]) -> f64 {
        ranks(one, other).expect("two sides").p
    }

    /// The p-values of R's `wilcox.test(…, exact = TRUE)`.
    #[test]
    fn the_shares_are_those_of_the_tables() {
        let apart = |n: u32| {
            let one: Vec<f64> = (1..=n).map(f64::from).collect();
            let other: Vec<f64> = (n + 1..=2 * n).map(f64::from).collect();
            p(&one, &other)
        };
        for (n, ways) in [(3, 20.0), (4, 70.0), (5, 252.0), (10, 184_756.0)] {
            assert!((apart(n) - 2.0 / ways).abs() < 1e-12, "{n}: {}", apart(n));
        }
        // U = 4 of 25: 12 of 252 orders lie as far on either side.
        let one = [1.0, 2.0, 3.0, 6.0, 7.0];
        let other = [4.0, 5.0, 8.0, 9.0, 10.0];
        assert!((p(&one, &other) - 24.0 / 252.0).abs() < 1e-12, "{}", p(&one, &other));
        assert!((p(&other, &one) - p(&one, &other)).abs() < 1e-12, "it does not matter who is first");
    }

    #[test]
    fn what_is_all_alike_can_never_differ() {
        for count in [1, 5, 50] {
            let flat = ranks(&vec![0.0; count], &vec![0.0; count]).expect("two sides");
            assert!(flat.is_flat && flat.p > 0.999 && flat.least_p > 0.999, "{flat:?}");
        }
        assert_eq!(ranks(&[], &[1.0]), None);
        let tied = ranks(&[0.0, 0.0, 0.0, 0.0, 1.0], &[0.0; 5]).expect("two sides");
        assert!((tied.least_p - 1.0).abs() < 1e-12, "one that differs can be on either side: {tied:?}");
    }

    #[test]
    fn many_repetitions_agree_with_what_counting_says() {
        let side = |n: u32, shift: f64| (0..n).map(|k| f64::from(k * 7 % 30) + shift).collect::<Vec<f64>>();
        let counted = p(&side(20, 0.0), &side(20, 4.5));
        let (one, other) = (sorted(side(20, 0.0)), sorted(side(20, 4.5)));
        let doubled = doubled_midranks(&one, &other);
        let distance = doubled[..20].iter().sum::<usize>().abs_diff(20 * 41);
        let formula = for_many(&doubled, 20, distance);
        assert!((counted - formula).abs() < 0.003, "{counted} and {formula}");
    }

    #[test]
    fn more_questions_take_more_repetitions() {
        assert_eq!([1, 6, 7, 23, 24, 85, 86].map(enough), [4, 5, 6, 6, 7, 7, 8]);
    }
}
