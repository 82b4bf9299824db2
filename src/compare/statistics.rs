//! What repetitions say about each other. Pure.
//!
//! The rule for a winner, until there are intervals: on each side at least [`ENOUGH`] repetitions; every repetition of
//! the winner better than every one of the other; between the nearest two a gap at least as wide as the wider of the
//! two spreads; and medians at least [`LEAST_DIFFERENCE`] apart.
//!
//! Why: with three repetitions a side, pure chance separates two equal targets completely in 10 % of comparisons
//! (2 of 20 orders). Asking for the gap too brings that to about 1 %, whatever the noise (a test simulates it); the least
//! difference keeps a difference that nobody would act upon from being one. The rule is strict and misses small true
//! differences: a wrong winner is worse than none. It is for one figure; who looks at nine at once meets chance nine times.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Fewer repetitions than this rule nothing.
pub const ENOUGH: usize = 3;

/// The least difference of medians that counts, as a share of the greater.
pub const LEAST_DIFFERENCE: f64 = 0.01;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Latency, failures.
    Lower,
}

/// One figure over the repetitions of a cell. A percentile is never averaged: each repetition has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Spread {
    /// The middle one; between the middle two of an even number.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// How many repetitions have it.
    pub count: usize,
}

/// How one side stands against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Clearly better.
    Better,
    /// Clearly worse.
    Worse,
    /// No clear difference.
    Unclear,
    /// Too few repetitions to say.
    TooFew,
}

/// Who is clearly better than everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lead {
    /// This one, by its place among those asked about.
    Of(usize),
    /// Nobody.
    Unclear,
    /// Somebody has too few repetitions; so many has who has fewest.
    TooFew(usize),
    /// There are not two to compare.
    Alone,
}

/// The spread of what is known; nothing when nothing is.
pub fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (min, max, count) = (*values.first()?, *values.last()?, values.len());
    let median = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
    Some(Spread { median, min, max, count })
}

/// How `one` stands against `other`.
pub fn stand(one: &Spread, other: &Spread, better: Better) -> Standing {
    if one.count < ENOUGH || other.count < ENOUGH {
        return Standing::TooFew;
    }
    let widest = (one.max - one.min).max(other.max - other.min);
    let (gap, one_is_higher) =
        if one.min > other.max { (one.min - other.max, true) } else { (other.min - one.max, false) };
    let least = LEAST_DIFFERENCE * one.median.abs().max(other.median.abs());
    if gap <= 0.0 || gap < widest || (one.median - other.median).abs() < least {
        Standing::Unclear
    } else if one_is_higher == (better == Better::Higher) {
        Standing::Better
    } else {
        Standing::Worse
    }
}

/// Who leads. One that lacks the figure can't be beaten in it, so nobody leads then.
pub fn lead(sides: &[Option<Spread>], better: Better) -> Lead {
    if sides.len() < 2 {
        return Lead::Alone;
    }
    let Some(known) = sides.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() else { return Lead::Unclear };
    let fewest = known.iter().map(|side| side.count).min().unwrap_or(0);
    if fewest < ENOUGH {
        return Lead::TooFew(fewest);
    }
    let beats_all = |one: usize| {
        (0..known.len()).all(|other| other == one || stand(known[one], known[other], better) == Standing::Better)
    };
    (0..known.len()).find(|one| beats_all(*one)).map_or(Lead::Unclear, Lead::Of)
}

/// The difference of two medians as a ratio to the baseline's: 0.28 is 28 % more. Unknown where the baseline is zero.
pub fn change(of: &Spread, baseline: &Spread) -> Option<f64> {
    (baseline.median != 0.0).then(|| of.median / baseline.median - 1.0)
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    fn of(values: &[f64]) -> Spread {
        spread(values.iter().copied()).expect("values")
    }

    #[test]
    fn the_median_is_the_middle_and_what_is_no_number_is_left_out() {
        assert_eq!(of(&[3.0, 1.0, 2.0]), Spread { median: 2.0, min: 1.0, max: 3.0, count: 3 });
        assert_eq!(of(&[4.0, 1.0, f64::NAN, 2.0, 3.0]), Spread { median: 2.5, min: 1.0, max: 4.0, count: 4 });
        assert_eq!(spread([f64::INFINITY]), None);
    }

    #[test]
    fn who_is_better_in_every_repetition_by_a_wide_gap_wins() {
        let (fast, slow) = (of(&[120.0, 121.0, 122.0]), of(&[100.0, 101.0, 103.0]));
        assert_eq!(stand(&fast, &slow, Better::Higher), Standing::Better);
        assert_eq!(stand(&slow, &fast, Better::Higher), Standing::Worse);
        assert_eq!(stand(&fast, &slow, Better::Lower), Standing::Worse);
    }

    #[test]
    fn overlap_a_narrow_gap_or_less_than_one_percent_is_no_difference() {
        let base = of(&[100.0, 101.0, 103.0]);
        for other in [[102.0, 110.0, 120.0], [105.0, 107.0, 109.0]] {
            assert_eq!(stand(&of(&other), &base, Better::Higher), Standing::Unclear, "{other:?}");
        }
        assert_eq!(stand(&of(&[100.5; 3]), &of(&[100.0; 3]), Better::Higher), Standing::Unclear);
        assert_eq!(stand(&of(&[0.0; 3]), &of(&[0.0; 3]), Better::Lower), Standing::Unclear);
    }

    #[test]
    fn two_repetitions_rule_nothing() {
        assert_eq!(stand(&of(&[500.0, 501.0]), &of(&[100.0, 101.0, 103.0]), Better::Higher), Standing::TooFew);
        assert_eq!(lead(&[Some(of(&[500.0])), Some(of(&[1.0; 3]))], Better::Higher), Lead::TooFew(1));
    }

    #[test]
    fn a_leader_beats_every_other_one() {
        let (a, b, c) = (of(&[120.0, 121.0, 122.0]), of(&[100.0, 101.0, 102.0]), of(&[119.0, 121.5, 123.0]));
        assert_eq!(lead(&[Some(b.clone()), Some(a.clone())], Better::Higher), Lead::Of(1));
        assert_eq!(lead(&[Some(a.clone()), Some(b), Some(c)], Better::Higher), Lead::Unclear);
        assert_eq!(lead(&[Some(a.clone()), None], Better::Higher), Lead::Unclear);
        assert_eq!(lead(&[Some(a)], Better::Higher), Lead::Alone);
    }

    #[test]
    fn a_change_is_relative_to_the_baseline() {
        let ratio = change(&of(&[128.0]), &of(&[100.0])).expect("known");
        assert!((ratio - 0.28).abs() < 1e-12);
        assert_eq!(change(&of(&[1.0]), &of(&[0.0])), None);
    }

    /// Equal targets must seldom have a winner: 20,000 comparisons for each noise and number of repetitions.
    #[test]
    fn equal_targets_are_told_apart_in_at_most_one_of_twenty_comparisons() {
        const ROUNDS: u32 = 20_000;
        let mut random = StdRng::seed_from_u64(1);
        for sigma in [0.01, 0.03, 0.1, 0.5] {
            for count in [3, 5] {
                let alarms = (0..ROUNDS).filter(|_| {
                    let [one, other] = [(); 2].map(|()| spread((0..count).map(|_| log_normal(&mut random, sigma))));
                    matches!(lead(&[one, other], Better::Higher), Lead::Of(_))
                });
                let share = f64::from(u32::try_from(alarms.count()).expect("at most ROUNDS")) / f64::from(ROUNDS);
                println!("A/A, {count} repetitions, log-normal noise {sigma}: {:.2} % false alarms", share * 100.0);
                assert!(share <= 0.05, "{share} with noise {sigma} and {count} repetitions");
            }
        }
    }

    /// Box and Muller's transform of two uniform numbers.
    fn log_normal(random: &mut StdRng, sigma: f64) -> f64 {
        let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        (sigma * normal).exp()
    }
}
