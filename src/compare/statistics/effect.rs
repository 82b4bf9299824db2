//! By how much two cells differ, and how sure that is.
//!
//! The effect is the shift of the logarithms at which the deciding test is balanced (Hodges & Lehmann 1963): with one
//! stratum the median of the ratios of each run of the one side to each of the other, the middle two averaged as
//! logarithms. Its interval holds all ratios that the test does not reject (Moses; Hollander & Wolfe 1999, "Nonparametric
//! Statistical Methods", section 4.3). So effect, interval and test never contradict each other, exchanging the sides
//! inverts the ratio exactly, one disturbed run moves none of them far, and the same runs give the same interval on every
//! page. A bootstrap of the ratio of two medians covers the truth as often, but is wider, as the simulation shows.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Stratum,
    describe::sorted,
    rank_test::{Shifts, refused, untied},
};

/// By what factor two cells differ: 1.28 is 28 % more than the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    /// Challenger ÷ baseline.
    pub ratio: f64,
    /// Where the interval begins; null where there are too few repetitions for one.
    pub low: Option<f64>,
    /// Where it ends.
    pub high: Option<f64>,
}

impl Effect {
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

/// Steps of a bisection: each halves the range, which begins as wide as the values are apart.
const STEPS: usize = 22;

/// The effect of one side over the other, with the interval of the test at `level`. None where a side has no values, or
/// one that is not greater than zero: it has no logarithm.
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

/// A ratio without what rounding of its logarithm leaves behind.
fn ratio(log: f64) -> f64 {
    const DIGITS: f64 = 1e12;
    (log.exp() * DIGITS).round() / DIGITS
}

/// The shift at which the test is balanced. Needs a value on both sides.
pub(super) fn shift(strata: &[Stratum]) -> f64 {
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

/// Where the interval of these logarithms begins.
pub(super) fn lower_end(strata: &[Stratum], level: f64) -> Option<f64> {
    match strata {
        [one] => ends_of_one(one, level).map(|(low, _)| low),
        many => {
            let (least, most) = range(many);
            let shifts = Shifts::new(many);
            (untied(many) <= level)
                .then(|| boundary(least, most, |at| shifts.p_at(at) > level || shifts.excess_at(at) < 0.0))
        }
    }
}

/// The strata on the scale on which differences are factors.
pub(super) fn logarithms(strata: &[Stratum]) -> Option<Vec<Stratum>> {
    let log = |values: &[f64]| -> Option<Vec<f64>> {
        values.iter().map(|value| (value.is_finite() && *value > 0.0).then(|| value.ln())).collect()
    };
    let of = |stratum: &Stratum| Some(Stratum { base: log(&stratum.base)?, other: log(&stratum.other)? });
    let logs: Vec<Stratum> = strata.iter().map(of).collect::<Option<_>>()?;
    let is_measured =
        logs.iter().any(|stratum| !stratum.base.is_empty()) && logs.iter().any(|stratum| !stratum.other.is_empty());
    is_measured.then_some(logs)
}

/// Both sides, from the least.
fn sides(stratum: &Stratum) -> (Vec<f64>, Vec<f64>) {
    (sorted(stratum.base.iter().copied()), sorted(stratum.other.iter().copied()))
}

fn ends_of_one(stratum: &Stratum, level: f64) -> Option<(f64, f64)> {
    let (base, other) = sides(stratum);
    let place = refused(base.len(), other.len(), level)?;
    let at = |place: usize| difference_at(&base, &other, place);
    Some((at(place), at(base.len() * other.len() - 1 - place)))
}

/// The difference at a place among all of them, from the least, without writing millions of them down: the range is
/// halved, and counted is how many differences lie below. Both sides must be sorted.
fn difference_at(base: &[f64], other: &[f64], place: usize) -> f64 {
    // The nearest difference at or above a bound, once the bound has been narrowed down.
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

/// How many differences are at most this great: the greater the other side's value, the fewer of the base are too small.
fn count_upto(base: &[f64], other: &[f64], most: f64) -> usize {
    let mut too_small = 0;
    let mut count = 0;
    for value in other {
        too_small += base[too_small..].iter().take_while(|below| value - *below > most).count();
        count += base.len() - too_small;
    }
    count
}

/// The range of shifts around the balanced one that the test of several strata accepts.
fn ends_of_many(strata: &[Stratum], shift: f64, level: f64) -> Option<(f64, f64)> {
    let (least, most) = range(strata);
    (untied(strata) <= level).then(|| {
        let shifts = Shifts::new(strata);
        let low = boundary(least, shift, |at| shifts.p_at(at) > level);
        let high = boundary(shift, most, |at| shifts.p_at(at) <= level);
        (low, high)
    })
}

/// A little more than from the least to the greatest difference within a stratum: at both ends the sides are separated
/// completely.
fn range(strata: &[Stratum]) -> (f64, f64) {
    let mut range = (f64::INFINITY, f64::NEG_INFINITY);
    for Stratum { base, other } in strata {
        for (one, two) in base.iter().flat_map(|one| other.iter().map(move |two| (one, two))) {
            range = (range.0.min(two - one), range.1.max(two - one));
        }
    }
    (range.0 - 1e-6, range.1 + 1e-6)
}

/// Where a condition begins to hold between two places, at the second of which it does.
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
    use crate::compare::statistics::rank_test;

    fn of(base: &[f64], other: &[f64]) -> Option<Effect> {
        effect(&[Stratum { base: base.to_vec(), other: other.to_vec() }], 0.05)
    }

    #[test]
    fn an_effect_is_relative_to_the_baseline_and_within_its_interval() {
        let base = [100.0, 101.0, 99.0, 100.5, 99.5];
        let effect = of(&base, &base.map(|value| value * 1.28)).expect("one");
        assert!((effect.change() - 0.28).abs() < 1e-9, "{effect:?}");
        let (low, high) = effect.interval().expect("an interval");
        assert!(low > 0.25 && low < 0.28 && high > 0.28 && high < 0.31, "{low} {high}");
        assert!(effect.is_clear());
    }

    /// The table of Hollander & Wolfe for 5 and 5 at 95 %: the third and the twenty-third of 25.
    #[test]
    fn the_ends_are_those_of_the_table() {
        let base = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];
        let other = [2.0, 21.0, 230.0, 2_500.0, 27_000.0];
        let ratios = sorted(other.iter().flat_map(|c| base.iter().map(move |b| c / b)));
        let found = of(&base, &other).expect("one");
        let near = |one: Option<f64>, other: f64| (one.expect("an end") / other - 1.0).abs() < 1e-9;
        assert!(near(found.low, ratios[2]) && near(found.high, ratios[22]), "{found:?}");
    }

    #[test]
    fn a_difference_is_found_where_it_stands_among_all() {
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

    /// Levels that move by far more than the effect: only the strata show it.
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
        assert_eq!(effect(&strata, 1e-6).expect("one").low, None, "four strata can't be that sure");
    }

    #[test]
    fn equal_sides_are_not_clear_even_without_any_noise() {
        let same = of(&[5.0; 5], &[5.0; 5]).expect("one");
        assert!((same.ratio - 1.0).abs() < 1e-12 && !same.is_clear(), "{same:?}");
        let strata = vec![Stratum { base: vec![5.0; 2], other: vec![5.0; 2] }; 3];
        let same = effect(&strata, 0.05).expect("one");
        assert!((same.ratio - 1.0).abs() < 1e-6 && !same.is_clear(), "{same:?}");
    }

    #[test]
    fn without_enough_there_is_a_ratio_but_no_interval_and_to_zero_there_is_none() {
        let one = of(&[100.0], &[200.0]).expect("one");
        assert!((one.ratio - 2.0).abs() < 1e-12 && one.low.is_none() && !one.is_clear());
        assert_eq!(of(&[1.0; 3], &[2.0; 3]).expect("one").low, None);
        assert_eq!(of(&[0.0, 1.0, 1.0], &[1.0; 3]), None);
        assert_eq!(of(&[], &[1.0]), None);
        assert_eq!(of(&[1.0], &[]), None);
    }
}
