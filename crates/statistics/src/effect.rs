//! Estimates by which ratio two cells differ, with a confidence interval.
//!
//! The effect is the shift of the logarithms at which the deciding test is balanced (Hodges & Lehmann 1963). With one
//! stratum it is the median of the ratios between all runs of both sides, the middle two averaged as logarithms. Its
//! interval contains all ratios that the test does not reject (Moses; Hollander & Wolfe 1999, "Nonparametric
//! Statistical Methods", section 4.3). So effect, interval and test never contradict each other. Exchanging the sides
//! inverts the ratio exactly, one disturbed run has little influence, and the result is deterministic. A bootstrap of
//! the ratio of two medians has the same coverage but is wider, as the simulation shows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Stratum,
    describe::sorted,
    rank_sum::rejected,
    rank_test::{Shifts, untied},
};

/// Ratio between two cells: 1.28 is 28 % more than the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Challenger ÷ baseline.
    pub ratio: f64,
    /// Lower end of the interval; null with too few repetitions.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

impl Effect {
    /// The difference relative to the baseline: 0.28 is 28 % more.
    pub fn change(&self) -> f64 {
        self.ratio - 1.0
    }

    /// The interval relative to the baseline.
    pub fn interval(&self) -> Option<(f64, f64)> {
        Some((self.low? - 1.0, self.high? - 1.0))
    }

    /// The same with an interval that includes "no difference", as that of a question that was not decided must: the
    /// test of all questions together can keep the hypothesis that the interval of this one alone excludes. A wider
    /// interval holds its level.
    #[must_use]
    pub fn undecided(self) -> Self {
        Self { low: self.low.map(|low| low.min(1.0)), high: self.high.map(|high| high.max(1.0)), ..self }
    }

    /// The same with an interval that allows for rounded values: from that of the lowest possible ratios to that of the
    /// highest ones. Without a ratio it has no end.
    #[must_use]
    pub fn rounded(self, lowest: Option<Self>, highest: Option<Self>) -> Self {
        let low = self.low.zip(lowest.and_then(|effect| effect.low)).map(|(own, low)| own.min(low));
        let high = self.high.zip(highest.and_then(|effect| effect.high)).map(|(own, high)| own.max(high));
        Self { low, high, ..self }
    }

    /// The width of the interval, as a share of the baseline.
    pub fn width(&self) -> Option<f64> {
        Some(self.high? - self.low?)
    }

    /// Whether the interval excludes "no difference".
    pub fn is_clear(&self) -> bool {
        self.interval().is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// Steps of a bisection, which starts with the range of the values.
const STEPS: usize = 22;

/// Returns the ratio of the other side to the baseline, with the interval of the test at `level`.
///
/// None if a side has no values, or if a value is not greater than zero, as it has no logarithm.
pub fn effect(strata: &[Stratum], level: f64) -> Option<Effect> {
    let logs = logarithms(strata)?;
    let shift = shift(&logs);
    let ends = match logs.as_slice() {
        [one] => ends_of_one(one, level),
        many => ends_of_many(many, shift, level),
    };
    let (low, high) = ends.map(|(low, high)| (ratio(low), ratio(high))).unzip();
    Some(Effect { ratio: ratio(shift), low, high })
}

/// Converts a logarithm to a ratio without its rounding error.
fn ratio(log: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    (log.exp() * DIGITS).round() / DIGITS
}

/// Returns the shift at which the test is balanced. Both sides need a value.
pub(crate) fn shift(strata: &[Stratum]) -> f64 {
    if let [one] = strata {
        let (base, other) = sides(one);
        let count = base.len() * other.len();
        let at = |place: usize| difference_at(&base, &other, place);
        return f64::midpoint(at((count - 1) / 2), at(count / 2));
    }
    let (least, most) = range(strata);
    let shifts = Shifts::new(strata);
    let from = boundary(least, most, |shift| shifts.excess_at(shift) <= 1e-9);
    let to = boundary(least, most, |shift| shifts.excess_at(shift) < -1e-9);
    f64::midpoint(from, to)
}

/// Returns the strata as logarithms; none if a value has none or a side has no values.
pub(crate) fn logarithms(strata: &[Stratum]) -> Option<Vec<Stratum>> {
    let log = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln())).collect()
    };
    let of = |stratum: &Stratum| Some(Stratum { base: log(&stratum.base)?, other: log(&stratum.other)? });
    let logs: Vec<Stratum> = strata.iter().map(of).collect::<Option<_>>()?;
    let is_measured =
        logs.iter().any(|stratum| !stratum.base.is_empty()) && logs.iter().any(|stratum| !stratum.other.is_empty());
    is_measured.then_some(logs)
}

/// Returns both sides in ascending order.
fn sides(stratum: &Stratum) -> (Vec<f64>, Vec<f64>) {
    (sorted(stratum.base.iter().copied()), sorted(stratum.other.iter().copied()))
}

fn ends_of_one(stratum: &Stratum, level: f64) -> Option<(f64, f64)> {
    let (base, other) = sides(stratum);
    let place = rejected(base.len(), other.len(), level)?;
    let at = |place: usize| difference_at(&base, &other, place);
    Some((at(place), at(base.len() * other.len() - 1 - place)))
}

/// Returns the n-th smallest of all pairwise differences by bisection. Both sides must be sorted.
fn difference_at(base: &[f64], other: &[f64], place: usize) -> f64 {
    // Narrows the bounds down to the nearest difference.
    let (mut low, mut high) = (other[0] - base[base.len() - 1], other[other.len() - 1] - base[0]);
    for _ in 0..64 {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if count_upto(base, other, middle) > place { high = middle } else { low = middle }
    }
    if count_upto(base, other, low) > place { low } else { high }
}

/// Counts the pairwise differences that are at most `max`. Both sides must be sorted.
fn count_upto(base: &[f64], other: &[f64], max: f64) -> usize {
    let mut too_small = 0;
    let mut count = 0;
    for value in other {
        too_small += base[too_small..].iter().take_while(|below| value - *below > max).count();
        count += base.len() - too_small;
    }
    count
}

/// Returns the range of shifts that the test of several strata accepts.
fn ends_of_many(strata: &[Stratum], shift: f64, level: f64) -> Option<(f64, f64)> {
    let (least, most) = range(strata);
    (untied(strata) <= level).then(|| {
        let shifts = Shifts::new(strata);
        let low = boundary(least, shift, |at| shifts.p_at(at) > level);
        let high = boundary(shift, most, |at| shifts.p_at(at) <= level);
        (low, high)
    })
}

/// Returns the range of differences within strata, widened to separate the sides completely.
fn range(strata: &[Stratum]) -> (f64, f64) {
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    for Stratum { base, other } in strata {
        for (one, two) in base.iter().flat_map(|one| other.iter().map(move |two| (one, two))) {
            range = (range.0.min(two - one), range.1.max(two - one));
        }
    }
    (range.0 - 1e-6, range.1 + 1e-6)
}

/// Finds by bisection where a condition starts to hold; it holds at `after`.
fn boundary(mut before: f64, mut after: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = f64::midpoint(before, after);
        if holds(middle) { after = middle } else { before = middle }
    }
    f64::midpoint(before, after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank_test;

    fn of(base: &[f64], other: &[f64]) -> Option<Effect> {
        effect(&[Stratum { base: base.to_vec(), other: other.to_vec() }], 0.05)
    }

    #[test]
    fn effects_are_relative_to_the_baseline_and_within_the_interval() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        let effect = of(&base, &base.map(|value| value * 1.28)).expect("one");
        assert!((effect.change() - 0.28).abs() < 1e-9, "{effect:?}");
        let (low, high) = effect.interval().expect("an interval");
        assert!(low > 0.25 && low < 0.28 && high > 0.28 && high < 0.31, "{low} {high}");
        assert!(effect.is_clear());
    }

    /// The table of Hollander & Wolfe for 5 and 5 at 95 %: the third and the twenty-third of 25.
    #[test]
    fn the_interval_matches_the_table() {
        let base = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];
        let other = [2.0, 21.0, 230.0, 2_500.0, 27_000.0];
        let ratios = sorted(other.iter().flat_map(|c| base.iter().map(move |b| c / b)));
        let found = of(&base, &other).expect("one");
        let near = |one: Option<f64>, other: f64| (one.expect("an end") / other - 1.0).abs() < 1e-9;
        assert!(near(found.low, ratios[2]) && near(found.high, ratios[22]), "{found:?}");
    }

    #[test]
    fn the_nth_difference_matches_a_sorted_list() {
        let base = sorted((1..40).map(|n| f64::from(n * 7919 % 101) + 1.0));
        let other = sorted((1..30).map(|n| f64::from(n * 104_729 % 97) + 0.5));
        let all = sorted(other.iter().flat_map(|value| base.iter().map(move |below| value - below)));
        for (place, difference) in all.iter().enumerate() {
            assert!((difference_at(&base, &other, place) - difference).abs() < 1e-9, "{place}");
        }
    }

    #[test]
    fn exchanging_the_sides_inverts_the_ratio() {
        let (base, other) = ([100.0, 110.0, 90.0, 104.0], [130.0, 90.0, 150.0, 101.0]);
        let (there, back) = (of(&base, &other).expect("one"), of(&other, &base).expect("one"));
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12, "{there:?} {back:?}");
        let strata = |one: &[f64], two: &[f64]| -> Vec<Stratum> {
            let pair = |(one, two): (&[f64], &[f64])| Stratum { base: one.to_vec(), other: two.to_vec() };
            one.chunks(2).zip(two.chunks(2)).map(pair).collect()
        };
        let there = effect(&strata(&base, &other), 0.05).expect("one");
        let back = effect(&strata(&other, &base), 0.05).expect("one");
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-6, "{there:?} {back:?}");
    }

    /// Levels vary by far more than the effect: only the strata show it.
    #[test]
    fn the_interval_of_strata_agrees_with_their_test() {
        let stratum = |(place, level): (usize, f64)| {
            let wobble = |k: usize| 1.0 + 0.001 * ((place * 4 + k) * 7919 % 13) as f64;
            let at = |k: usize, factor: f64| level * factor * wobble(k);
            Stratum { base: vec![at(0, 1.0), at(1, 1.0)], other: vec![at(2, 1.03), at(3, 1.03)] }
        };
        let strata: Vec<Stratum> = [1_000.0, 2_000.0, 1_500.0, 900.0].into_iter().enumerate().map(stratum).collect();
        let logs = logarithms(&strata).expect("values");
        let shifts = Shifts::new(&logs);
        for level in [0.05, 0.01, 0.002] {
            let found = effect(&strata, level).expect("one");
            assert!((found.change() - 0.03).abs() < 0.01, "{found:?}");
            let (low, high) = found.low.zip(found.high).expect("an interval");
            assert!(low < found.ratio && found.ratio < high, "{found:?}");
            for (end, step) in [(low, -1.0), (high, 1.0)] {
                assert!(shifts.p_at(end.ln() + step * 1e-4) <= level, "{level}: beyond {end} is rejected");
                assert!(shifts.p_at(end.ln() - step * 1e-4) > level, "{level}: before {end} is not");
            }
            assert_eq!(found.is_clear(), rank_test(&logs).expect("a test").p <= level);
        }
        assert_eq!(effect(&strata, 1e-6).expect("one").low, None, "four strata can't reach this level");
    }

    #[test]
    fn equal_sides_without_noise_are_not_clear() {
        let same = of(&[5.0; 5], &[5.0; 5]).expect("one");
        assert!((same.ratio - 1.0).abs() < 1e-12 && !same.is_clear(), "{same:?}");
        let strata = vec![Stratum { base: vec![5.0; 2], other: vec![5.0; 2] }; 3];
        let same = effect(&strata, 0.05).expect("one");
        assert!((same.ratio - 1.0).abs() < 1e-6 && !same.is_clear(), "{same:?}");
    }

    #[test]
    fn few_values_have_no_interval_and_zero_has_no_ratio() {
        let one = of(&[100.0], &[200.0]).expect("one");
        assert!((one.ratio - 2.0).abs() < 1e-12 && one.low.is_none() && !one.is_clear());
        assert_eq!(of(&[1.0; 3], &[2.0; 3]).expect("one").low, None);
        assert_eq!(of(&[0.0, 1.0, 1.0], &[1.0; 3]), None);
        assert_eq!(of(&[], &[1.0]), None);
        assert_eq!(of(&[1.0], &[]), None);
    }
}
