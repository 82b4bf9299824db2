//! The words that follow from the figures, by fixed rules.

use super::{ALPHA, Better, Difference, Lead, Question, Standing, spread};

/// By how much a challenger differs from its baseline, in whatever the figure's differences are told: a share, or
/// points of a share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Positive if the challenger's median is greater.
    pub by: f64,
    /// Whether its interval leaves "no difference" out.
    pub is_clear: bool,
    /// Less than this matters to nobody.
    pub least: f64,
}

impl Gap {
    /// Of a ratio.
    pub fn of(difference: &Difference, least: f64) -> Self {
        Self { by: difference.change(), is_clear: difference.is_clear(), least }
    }

    /// Of two shares, by their points. The test of the ranks alone tells whether that is clear. None where a side has
    /// nothing.
    pub fn of_shares(base: &[f64], challenger: &[f64], least: f64) -> Option<Self> {
        Some(Self { by: points(base, challenger)?, is_clear: true, least })
    }
}

/// By how much two shares differ: a ratio to a share of zero says nothing. Their means are held against each other, for a
/// median would not see what happens in less than half of the runs.
pub fn points(base: &[f64], challenger: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| spread(values.iter().copied()).map(|spread| spread.mean);
    Some(mean(challenger)? - mean(base)?)
}

/// How a challenger stands against its baseline.
pub fn stand(question: &Question, gap: Option<Gap>, better: Better) -> Standing {
    match gap {
        Some(gap) if question.corrected <= ALPHA && gap.is_clear && gap.by.abs() >= gap.least => {
            if (gap.by > 0.0) == (better == Better::Higher) { Standing::Better } else { Standing::Worse }
        }
        _ if question.can_be_answered => Standing::Unclear,
        _ => Standing::TooFew,
    }
}

/// Who leads among so many: `stands(one, other)` tells how one stands against another. Only who is better than each of
/// the others does; that takes no correction beyond that of the single questions (Berger 1982, "Multiparameter hypothesis
/// testing and acceptance sampling": a union of hypotheses is rejected only with all of them).
pub fn lead(sides: usize, stands: impl Fn(usize, usize) -> Standing, fewest: usize) -> Lead {
    if sides < 2 {
        return Lead::Alone;
    }
    let others = |one: usize| (0..sides).filter(move |other| *other != one);
    let beats_all = |one: &usize| others(*one).all(|other| stands(*one, other) == Standing::Better);
    let may_be_told = |one: usize| others(one).all(|other| stands(one, other) != Standing::TooFew);
    match (0..sides).find(beats_all) {
        Some(one) => Lead::Of(one),
        None if (0..sides).all(may_be_told) => Lead::Unclear,
        None => Lead::TooFew(fewest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SURE: Question = Question { p: 0.001, corrected: 0.01, can_be_answered: true };
    const UNSURE: Question = Question { p: 0.02, corrected: 0.2, can_be_answered: true };

    fn gap(by: f64, is_clear: bool) -> Gap {
        Gap { by, is_clear, least: 0.01 }
    }

    #[test]
    fn a_winner_takes_chance_interval_and_a_difference_that_matters() {
        assert_eq!(stand(&SURE, Some(gap(0.2, true)), Better::Higher), Standing::Better);
        assert_eq!(stand(&SURE, Some(gap(0.2, true)), Better::Lower), Standing::Worse);
        assert_eq!(stand(&SURE, Some(gap(-0.2, true)), Better::Lower), Standing::Better);
        for (question, gap) in [
            (UNSURE, Some(gap(0.2, true))),
            (SURE, Some(gap(0.2, false))),
            (SURE, Some(gap(0.009, true))),
            (SURE, None),
        ] {
            assert_eq!(stand(&question, gap, Better::Higher), Standing::Unclear, "{question:?} {gap:?}");
        }
    }

    #[test]
    fn failures_in_less_than_half_of_the_runs_are_seen() {
        let base = [0.0; 15];
        let failing = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005, 0.005];
        let gap = Gap::of_shares(&base, &failing, 0.001).expect("a gap");
        assert!((gap.by - 0.035 / 15.0).abs() < 1e-12);
        assert_eq!(stand(&SURE, Some(gap), Better::Lower), Standing::Worse);
        assert_eq!(points(&[], &failing), None);
    }

    #[test]
    fn where_no_answer_is_possible_too_few_is_the_answer() {
        let question = Question { p: 0.1, corrected: 1.0, can_be_answered: false };
        assert_eq!(stand(&question, Some(gap(5.0, true)), Better::Higher), Standing::TooFew);
    }

    #[test]
    fn a_leader_is_better_than_every_other_one() {
        use Standing::{Better, TooFew, Unclear, Worse};
        let of = |table: [[Standing; 3]; 3]| lead(3, move |one, other| table[one][other], 4);
        assert_eq!(of([[Unclear, Worse, Unclear], [Better, Unclear, Better], [Unclear, Worse, Unclear]]), Lead::Of(1));
        assert_eq!(of([[Unclear; 3]; 3]), Lead::Unclear);
        assert_eq!(of([[Unclear, Better, TooFew], [Worse, Unclear, TooFew], [TooFew; 3]]), Lead::TooFew(4));
        assert_eq!(lead(1, |_, _| Unclear, 1), Lead::Alone);
    }
}
