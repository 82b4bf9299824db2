//! Decisions from tests and effects, by fixed rules.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Better, Decision, Leader, Question, between::squares, spread};

/// What is known of the size of a difference. Without a size there can be a difference all the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Estimate {
    /// Its size.
    Change(Change),
    /// There is no ratio, as a value is not greater than zero. Only the direction is known.
    NoRatio {
        /// Whether the challenger's values are greater.
        is_greater: bool,
        /// Whether that is certain.
        clarity: Clarity,
    },
}

/// Difference between a challenger and its baseline, as a share or in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The difference; positive if the challenger's value is greater.
    pub by: f64,
    /// Whether "no difference" is excluded.
    pub clarity: Clarity,
    /// Smallest difference that matters.
    pub min_effect: f64,
}

/// Whether the interval of a difference excludes "no difference".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clarity {
    /// It does.
    Clear,
    /// It would if the values were exact. They were rounded, and "no difference" is within what that hides.
    Rounded,
    /// It does not.
    Open,
}

impl Clarity {
    /// Returns the clarity of an interval, and of the one that allows for the rounding of the values.
    pub fn of(excludes: bool, excludes_if_rounded: bool) -> Self {
        match (excludes, excludes_if_rounded) {
            (true, true) => Self::Clear,
            (true, false) => Self::Rounded,
            (false, _) => Self::Open,
        }
    }
}

/// Returns the difference between the means of two shares.
///
/// There is no ratio to a share of zero, and a median hides what happens in less than half of the runs.
pub fn points(base: &[f64], challenger: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| spread(values.iter().copied()).map(|spread| spread.mean);
    Some(mean(challenger)? - mean(base)?)
}

/// Returns the standard error of the difference of two means, and its degrees of freedom.
///
/// Source: Welch 1947, "The generalization of 'Student's' problem". None with fewer than two values on a side.
fn welch(base: &[f64], challenger: &[f64]) -> Option<(f64, f64)> {
    let part = |values: &[f64]| {
        let n = values.len() as f64;
        (n > 1.0).then(|| (squares(values.iter().copied()) / (n - 1.0) / n, n - 1.0))
    };
    let ((one, one_degrees), (two, two_degrees)) = (part(base)?, part(challenger)?);
    let degrees = (one + two).powi(2) / (one.powi(2) / one_degrees + two.powi(2) / two_degrees);
    Some(((one + two).sqrt(), degrees))
}

/// Returns half the width of Welch's interval of the difference of two means at `level`.
pub fn welch_margin(base: &[f64], challenger: &[f64], level: f64) -> Option<f64> {
    match welch(base, challenger)? {
        (error, _) if error <= 0.0 => Some(0.0),
        (error, degrees) => Some(StudentsT::new(0.0, 1.0, degrees).ok()?.inverse_cdf(1.0 - level / 2.0) * error),
    }
}

/// Returns the two-sided p-value of a difference of two means other than `expected`, by Welch's test.
pub fn welch_p(base: &[f64], challenger: &[f64], expected: f64) -> Option<f64> {
    let distance = (points(base, challenger)? - expected).abs();
    match welch(base, challenger)? {
        (error, _) if error <= 0.0 => Some(if distance > 0.0 { 0.0 } else { 1.0 }),
        (error, degrees) => Some((2.0 * StudentsT::new(0.0, 1.0, degrees).ok()?.sf(distance / error)).min(1.0)),
    }
}

/// Decides whether a challenger differs from its baseline.
pub fn decide(question: &Question, estimate: Estimate, better: Better) -> Decision {
    let (is_greater, clarity, is_small) = match estimate {
        Estimate::Change(change) => (change.by > 0.0, change.clarity, change.by.abs() < change.min_effect),
        Estimate::NoRatio { is_greater, clarity } => (is_greater, clarity, false),
    };
    match clarity {
        Clarity::Clear if question.is_rejected() && is_small => Decision::BelowMinEffect,
        Clarity::Clear if question.is_rejected() && is_greater == (better == Better::Higher) => Decision::Better,
        Clarity::Clear if question.is_rejected() => Decision::Worse,
        Clarity::Rounded if question.is_rejected() => Decision::TooCoarse,
        _ if question.can_be_answered => Decision::NoDifference,
        _ => Decision::TooFew,
    }
}

/// Finds the leader among `sides`, where `decision(one, other)` compares two of them; none if one lacks the metric.
///
/// `fewest` is the fewest repetitions of a pair that has too few.
/// The leader is better than each of the others. That needs no further correction (Berger 1982, "Multiparameter
/// hypothesis testing and acceptance sampling": a union of hypotheses is rejected only if all of them are).
pub fn lead(sides: usize, decision: impl Fn(usize, usize) -> Option<Decision>, fewest: usize) -> Leader {
    if sides < 2 {
        return Leader::Alone;
    }
    let others = |one: usize| (0..sides).filter(move |other| *other != one);
    let beats_all = |one: &usize| others(*one).all(|other| decision(*one, other) == Some(Decision::Better));
    let has = |wanted: Option<Decision>| (0..sides).any(|one| others(one).any(|other| decision(one, other) == wanted));
    match (0..sides).find(beats_all) {
        Some(one) => Leader::Of(one),
        None if has(Some(Decision::NotComparable)) => Leader::NotComparable,
        None if has(None) => Leader::Missing,
        None if has(Some(Decision::NotInTurn)) => Leader::NotInTurn,
        None if has(Some(Decision::TooFew)) => Leader::TooFew(fewest),
        None if has(Some(Decision::TooCoarse)) => Leader::TooCoarse,
        None => Leader::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Question =
        Question { p: 0.001, corrected: 0.01, level: 0.005, level_among_related: 0.005, can_be_answered: true };
    const UNSURE: Question =
        Question { p: 0.02, corrected: 0.2, level: 0.005, level_among_related: 0.005, can_be_answered: true };

    fn change(by: f64, is_clear: bool) -> Estimate {
        let clarity = Clarity::of(is_clear, is_clear);
        Estimate::Change(Change { by, clarity, min_effect: 0.01 })
    }

    #[test]
    fn a_winner_needs_test_interval_and_minimum_effect() {
        assert_eq!(decide(&SURE, change(0.2, true), Better::Higher), Decision::Better);
        assert_eq!(decide(&SURE, change(0.2, true), Better::Lower), Decision::Worse);
        assert_eq!(decide(&SURE, change(-0.2, true), Better::Lower), Decision::Better);
        for (question, change) in [(UNSURE, change(0.2, true)), (SURE, change(0.2, false))] {
            assert_eq!(decide(&question, change, Better::Higher), Decision::NoDifference, "{question:?} {change:?}");
        }
        assert_eq!(decide(&SURE, change(0.009, true), Better::Higher), Decision::BelowMinEffect);
    }

    #[test]
    fn failures_in_less_than_half_of_the_runs_are_found() {
        let base = [0.0; 15];
        let failing = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005];
        let by = points(&base, &failing).expect("a difference");
        assert!((by - 0.035 / 15.0).abs() < 1e-12);
        let change = Estimate::Change(Change { by, clarity: Clarity::Clear, min_effect: 0.001 });
        assert_eq!(decide(&SURE, change, Better::Lower), Decision::Worse);
        assert_eq!(points(&[], &failing), None);
    }

    /// R: `t.test(c(1, 2, 3, 4), c(2, 4, 6, 8))`: −6.45 to 1.45, 4.41 degrees of freedom.
    #[test]
    fn the_interval_of_means_matches_the_table() {
        let margin = welch_margin(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 6.0, 8.0], 0.05).expect("a margin");
        assert!((margin - 3.866).abs() < 0.02, "{margin}");
        let p = welch_p(&[1.0, 2.0, 3.0, 4.0], &[2.0, 4.0, 6.0, 8.0], 0.0).expect("a p-value");
        assert!((p - 0.154).abs() < 0.005, "{p}");
        assert_eq!(welch_p(&[0.0; 4], &[0.005; 4], 0.001), Some(0.0));
        assert_eq!(welch_margin(&[0.0; 4], &[0.0; 4], 0.05), Some(0.0));
        assert_eq!(welch_margin(&[0.0], &[0.0; 4], 0.05), None);
    }

    #[test]
    fn the_absence_of_a_ratio_is_not_the_absence_of_a_difference() {
        let zeros = |is_greater, clarity| Estimate::NoRatio { is_greater, clarity };
        assert_eq!(decide(&SURE, zeros(true, Clarity::Clear), Better::Lower), Decision::Worse);
        assert_eq!(decide(&SURE, zeros(false, Clarity::Clear), Better::Lower), Decision::Better);
        assert_eq!(decide(&UNSURE, zeros(true, Clarity::Clear), Better::Lower), Decision::NoDifference);
        assert_eq!(decide(&SURE, zeros(true, Clarity::Rounded), Better::Lower), Decision::TooCoarse);
    }

    #[test]
    fn what_rounding_hides_is_not_decided() {
        let rounded = Estimate::Change(Change { by: 0.5, clarity: Clarity::of(true, false), min_effect: 0.01 });
        assert_eq!(decide(&SURE, rounded, Better::Lower), Decision::TooCoarse);
        assert_eq!(Clarity::of(false, true), Clarity::Open);
    }

    #[test]
    fn unanswerable_questions_have_too_few_repetitions() {
        let question =
            Question { p: 0.1, corrected: 1.0, level: 0.05, level_among_related: 0.05, can_be_answered: false };
        assert_eq!(decide(&question, change(5.0, true), Better::Higher), Decision::TooFew);
    }

    #[test]
    fn a_leader_is_better_than_all_others() {
        use Decision::{Better, NoDifference as None, NotInTurn, TooFew, Worse};
        let of = |table: [[Decision; 3]; 3]| lead(3, move |one, other| Some(table[one][other]), 4);
        assert_eq!(of([[None, Worse, None], [Better, None, Better], [None, Worse, None]]), Leader::Of(1));
        assert_eq!(of([[None; 3]; 3]), Leader::Unclear);
        assert_eq!(of([[None, Better, TooFew], [Worse, None, TooFew], [TooFew; 3]]), Leader::TooFew(4));
        assert_eq!(of([[None, Better, NotInTurn], [Worse, None, TooFew], [NotInTurn; 3]]), Leader::NotInTurn);
        assert_eq!(lead(1, |_, _| Some(None), 1), Leader::Alone);
        assert_eq!(lead(3, |one, _| (one < 2).then_some(None), 1), Leader::Missing);
    }
}
