//! By how much two cells differ, and how sure that is.
//!
//! The ratio is the median of the ratios of each repetition of the one to each of the other (Hodges & Lehmann 1963, on
//! the logarithms), and its interval holds all ratios that the test of the ranks would not refuse (Moses; Hollander &
//! Wolfe 1999, "Nonparametric Statistical Methods", section 4.3). So figure, interval and test never contradict each
//! other, a run that a neighbour disturbed moves none of them far, and nothing is drawn by lot: the same runs give the
//! same interval on every page. A bootstrap of the ratio of two medians holds the truth as often, but is wider, as the
//! simulation beside this shows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ranks, spread::sorted};

/// By what factor two cells differ: 1.28 is 28 % more than the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Challenger ÷ baseline.
    pub ratio: f64,
    /// Where its 95 % interval begins; null with fewer than four repetitions on both sides, which can't give one.
    pub low: Option<f64>,
    /// Where it ends.
    pub high: Option<f64>,
}

impl Difference {
    /// The difference relative to the baseline: 0.28 is 28 % more.
    pub fn change(&self) -> f64 {
        self.ratio - 1.0
    }

    /// Its interval, relative to the baseline.
    pub fn interval(&self) -> Option<(f64, f64)> {
        Some((self.low? - 1.0, self.high? - 1.0))
    }

    /// How wide the interval is, as a share of the baseline.
    pub fn width(&self) -> Option<f64> {
        Some(self.high? - self.low?)
    }

    /// Whether "no difference" lies outside of the interval.
    pub fn is_clear(&self) -> bool {
        self.interval().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The difference of a challenger to its baseline. None where there is nothing on a side, or a figure of the baseline is
/// not greater than zero: a ratio to zero says nothing.
pub fn difference(base: &[f64], challenger: &[f64]) -> Option<Difference> {
    let (base, challenger) = (sorted(base.iter().copied()), sorted(challenger.iter().copied()));
    if *base.first()? <= 0.0 || challenger.is_empty() {
        return None;
    }
    let count = base.len() * challenger.len();
    let at = |place: usize| ratio_at(&base, &challenger, place);
    let ratio = f64::midpoint(at((count - 1) / 2), at(count / 2));
    let (low, high) =
        ranks::refused(base.len(), challenger.len()).map(|place| (at(place), at(count - 1 - place))).unzip();
    Some(Difference { ratio, low, high })
}

/// The ratio at a place among all of them, from the least, without writing millions of them down: halved is the range of
/// all numbers, whose bits are in the order of their values, and counted is how many ratios lie below. Both sides must
/// be sorted and greater than zero.
fn ratio_at(base: &[f64], challenger: &[f64], place: usize) -> f64 {
    let (mut low, mut high) = (0, f64::MAX.to_bits());
    while low < high {
        let middle = u64::midpoint(low, high);
        if count_upto(base, challenger, f64::from_bits(middle)) > place {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    f64::from_bits(low)
}

/// How many ratios are at most so great: the greater the challenger's figure, the fewer of the baseline's are too small.
fn count_upto(base: &[f64], challenger: &[f64], most: f64) -> usize {
    let mut too_small = 0;
    let mut count = 0;
    for value in challenger {
        too_small += base[too_small..].iter().take_while(|below| value / *below > most).count();
        count += base.len() - too_small;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_relative_to_the_baseline_and_its_interval_holds_it() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        let difference = difference(&base, &base.map(|value| value * 1.28)).expect("one");
        assert!((difference.change() - 0.28).abs() < 1e-12);
        let (low, high) = difference.interval().expect("an interval");
        assert!(low > 0.25 && low < 0.28 && high > 0.28 && high < 0.31, "{low} {high}");
        assert!(difference.is_clear());
    }

    /// The table of Hollander & Wolfe for 5 and 5 at 95 %: the third and the twenty-third of 25.
    #[test]
    fn the_ends_are_those_of_the_table() {
        let base = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];
        let challenger = [2.0, 21.0, 230.0, 2_500.0, 27_000.0];
        let mut ratios: Vec<f64> = challenger.iter().flat_map(|c| base.iter().map(move |b| c / b)).collect();
        ratios.sort_by(f64::total_cmp);
        let found = difference(&base, &challenger).expect("one");
        assert_eq!((found.low, found.high), (Some(ratios[2]), Some(ratios[22])));
    }

    #[test]
    fn a_ratio_is_found_where_it_stands_among_all() {
        let base: Vec<f64> = (1..40).map(|n| f64::from(n * 7919 % 101) + 1.0).collect();
        let challenger: Vec<f64> = (1..30).map(|n| f64::from(n * 104_729 % 97) + 0.5).collect();
        let (base, challenger) = (sorted(base), sorted(challenger));
        let all = sorted(challenger.iter().flat_map(|value| base.iter().map(move |below| value / below)));
        for (place, ratio) in all.iter().enumerate() {
            assert!((ratio_at(&base, &challenger, place) - ratio).abs() < f64::EPSILON * ratio, "{place}");
        }
    }

    #[test]
    fn equal_sides_are_not_clear_even_without_any_noise() {
        let same = difference(&[5.0; 5], &[5.0; 5]).expect("one");
        assert_eq!((same.ratio, same.interval(), same.is_clear()), (1.0, Some((0.0, 0.0)), false));
    }

    #[test]
    fn without_enough_there_is_a_ratio_but_no_interval_and_to_zero_there_is_none() {
        let one = difference(&[100.0], &[200.0]).expect("one");
        assert_eq!((one.ratio, one.low, one.is_clear()), (2.0, None, false));
        assert_eq!(difference(&[1.0; 3], &[2.0; 3]).expect("one").low, None);
        assert_eq!(difference(&[0.0, 1.0, 1.0], &[1.0; 3]), None);
        assert_eq!(difference(&[], &[1.0]), None);
        assert_eq!(difference(&[1.0], &[]), None);
    }
}
