//! Which share of a difference a part explains, with a confidence interval. Pure.
//!
//! The share R is a ratio of two differences that both vary. As Fieller (1954) does, the interval consists of all R for
//! which "part − R × whole" does not differ between the sides; here by the exact permutation test instead of
//! Student's. For one assignment that holds between two roots of a quadratic equation around the estimate, so an end of
//! the interval is a quantile of these roots. It is bounded exactly if the whole differs significantly. Noise that
//! affects part and whole alike, such as a slow run, cancels.
//!
//! The set of all R that are not rejected contains the true share in 95 % of comparisons. Only bounded sets are shown.
//! If a difference is so small that few comparisons find it, fewer of these intervals contain the true share: 88 % in a
//! simulation in which one of nine found it.

use serde::{Deserialize, Serialize};

use crate::profiles::{max_t::Interval, permutation::Assignments};

/// Relative difference below which numbers are equal: rounding errors are smaller.
const TIE: f64 = 1e-9;

/// The share of a difference that a part explains: 0.62 is 62 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Explained {
    /// Estimated share.
    pub share: f64,
    /// 95 % confidence interval; None if it is unbounded.
    pub interval: Option<Interval>,
}

/// Estimates which share of the difference of `whole` is that of `part`.
///
/// None if `whole` has no difference.
pub fn explained(part: &[f64], whole: &[f64], assignments: &Assignments) -> Option<Explained> {
    let pairs = || assignments.differences(part).zip(assignments.differences(whole));
    let (of_part, of_whole) = pairs().next().filter(|(_, of_whole)| *of_whole != 0.0)?;
    let share = of_part / of_whole;
    let (mut below, mut above) = (Vec::new(), Vec::new());
    for (part, whole) in pairs() {
        let (low, high) = unrejected((part, whole), (of_part, of_whole));
        below.push((share - low).max(0.0));
        above.push((high - share).max(0.0));
    }
    let interval = || {
        let low = share - assignments.limit(below)?;
        let high = share + assignments.limit(above)?;
        Some(Interval { low, high })
    };
    Some(Explained { share, interval: interval() })
}

/// Returns between which shares an assignment is at least as extreme as the observed one.
fn unrejected((part, whole): (f64, f64), (of_part, of_whole): (f64, f64)) -> (f64, f64) {
    if whole.abs() >= of_whole.abs() * (1.0 - TIE) {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let one = (part - of_part) / (whole - of_whole);
    let other = (part + of_part) / (whole + of_whole);
    (one.min(other), one.max(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::permutation::Sides;

    fn assignments() -> Assignments {
        Assignments::new(Sides { baseline: 4, candidate: 4 })
    }

    const WHOLE: [f64; 8] = [10.0, 10.2, 9.9, 10.1, 12.1, 12.0, 12.3, 11.8];

    #[test]
    fn a_part_that_is_the_whole_explains_all_of_it() {
        let all = explained(&WHOLE, &WHOLE, &assignments()).expect("a difference");
        let interval = all.interval.expect("bounded");
        for value in [all.share, interval.low, interval.high] {
            assert!((value - 1.0).abs() < 1e-9, "{all:?}");
        }
    }

    #[test]
    fn noise_of_the_whole_run_cancels() {
        let part = WHOLE.map(|whole| 0.3 * whole);
        let third = explained(&part, &WHOLE, &assignments()).expect("a difference");
        let interval = third.interval.expect("bounded");
        assert!((third.share - 0.3).abs() < 1e-9 && interval.high - interval.low < 1e-9, "{third:?}");
    }

    #[test]
    fn the_interval_contains_exactly_the_shares_that_are_not_rejected() {
        let part = [3.0, 3.3, 3.1, 2.9, 4.6, 4.1, 4.4, 4.5];
        let explained = explained(&part, &WHOLE, &assignments()).expect("a difference");
        let interval = explained.interval.expect("bounded");
        let p = |share: f64| {
            let rest: Vec<f64> = part.iter().zip(&WHOLE).map(|(part, whole)| part - share * whole).collect();
            let differences: Vec<f64> = assignments().differences(&rest).map(f64::abs).collect();
            let extreme = differences.iter().filter(|one| **one >= differences[0] * (1.0 - 1e-9)).count();
            extreme as f64 / differences.len() as f64
        };
        for (share, is_inside) in
            [(interval.low, true), (interval.high, true), (interval.low - 1e-6, false), (interval.high + 1e-6, false)]
        {
            assert_eq!(p(share) > crate::compare::statistics::ALPHA, is_inside, "{share}: {}", p(share));
        }
        assert!(interval.contains(explained.share));
    }

    #[test]
    fn a_whole_without_significant_difference_has_no_bounds() {
        let whole = [10.0, 12.2, 9.9, 12.1, 12.1, 10.0, 12.3, 11.8];
        assert_eq!(explained(&WHOLE, &whole, &assignments()).expect("a difference").interval, None);
        assert_eq!(explained(&WHOLE, &[1.0; 8], &assignments()), None);
    }
}
