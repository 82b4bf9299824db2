//! All questions of one page or gate, corrected together: whoever asks often enough finds a difference somewhere.
//!
//! Each pair of cells gets an equal share of [`ALPHA`] (Bonferroni). Within a pair the primary metric is tested first, with
//! most of that share ([`PRIMARY`]); the other metrics follow by Holm (1979, "A simple sequentially rejective multiple test
//! procedure") with the rest, and with the whole share once the primary metric differs (Wiens 2003, "A fixed sequence
//! Bonferroni procedure for testing multiple endpoints", with both directions as in Bretz et al. 2009). So adding metrics
//! costs the primary one next to nothing, and a difference in memory alone can still be found. Questions that could not
//! be answered even alone don't count (Tarone 1990, "A modified Bonferroni method for discrete data"): the answer that they
//! cannot give cannot be wrong.

use super::{ALPHA, RankTest};

/// Share of a pair's error rate that the primary metric is tested with, where there are other metrics.
pub const PRIMARY: f64 = 0.8;

/// A test and what it is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Which pair of cells, by any number.
    pub pair: usize,
    /// Whether it is about the primary metric.
    pub is_primary: bool,
    /// Its result.
    pub result: RankTest,
}

/// One question of a page: do these two cells differ in this metric?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The p-value of the test alone.
    pub p: f64,
    /// The same, corrected for all other questions: a difference is shown where this is at most [`ALPHA`].
    pub corrected: f64,
    /// The level that `p` was compared with.
    pub level: f64,
    /// Whether this many repetitions could show anything at that level.
    pub can_be_answered: bool,
}

impl Question {
    /// Whether the test rejects "no difference".
    pub fn is_rejected(&self) -> bool {
        self.corrected <= ALPHA
    }
}

/// What a page asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Pairs of cells that share the error rate.
    pub pairs: usize,
    /// Questions in all.
    pub questions: usize,
    /// The most metrics that one pair asks about.
    pub metrics: usize,
}

/// How many of these tests count as questions.
pub fn count(tests: &[Test]) -> Count {
    let counted: Vec<&Test> = tests.iter().filter(|test| counts(test)).collect();
    let mut pairs: Vec<usize> = counted.iter().map(|test| test.pair).collect();
    pairs.sort_unstable();
    let metrics = pairs.chunk_by(|one, other| one == other).map(<[usize]>::len).max().unwrap_or(0);
    pairs.dedup();
    Count { pairs: pairs.len(), questions: counted.len(), metrics }
}

fn counts(test: &Test) -> bool {
    !test.result.is_flat && test.result.can_reject()
}

/// The level at which the primary metric of one of `pairs` pairs is tested.
pub fn primary_level(count: Count) -> f64 {
    ALPHA / count.pairs.max(1) as f64 * if count.metrics > 1 { PRIMARY } else { 1.0 }
}

/// Corrects all tests of a page, which together may be wrong with a probability of `alpha`: [`ALPHA`], or less where this is
/// one of several looks at growing data. The results are in the order of the tests.
pub fn correct(tests: &[Test], alpha: f64) -> Vec<Question> {
    let share = alpha / ALPHA / count(tests).pairs.max(1) as f64;
    let mut questions: Vec<Question> = tests.iter().map(|test| uncounted(test, share)).collect();
    let mut pairs: Vec<usize> = tests.iter().map(|test| test.pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    for pair in pairs {
        let of: Vec<usize> =
            (0..tests.len()).filter(|place| tests[*place].pair == pair && counts(&tests[*place])).collect();
        let (primary, others): (Vec<usize>, Vec<usize>) = of.into_iter().partition(|place| tests[*place].is_primary);
        correct_pair(tests, primary.first().copied(), &others, share, &mut questions);
    }
    questions
}

/// A question that takes nothing from the others.
fn uncounted(test: &Test, share: f64) -> Question {
    let RankTest { p, untied_p, .. } = test.result;
    let level = ALPHA * share;
    Question { p, corrected: 1.0, level, can_be_answered: untied_p <= level }
}

fn correct_pair(tests: &[Test], primary: Option<usize>, others: &[usize], share: f64, questions: &mut [Question]) {
    let p = |place: usize| tests[place].result.p;
    let mut order = others.to_vec();
    order.sort_by(|a, b| p(*a).total_cmp(&p(*b)));
    let by_holm = holm(order.iter().map(|place| p(*place)));
    let Some(first) = primary else {
        return set_others(tests, &order, share, by_holm.iter().map(|p| p / share), questions);
    };
    let set_primary = |corrected: f64, share: f64, questions: &mut [Question]| {
        questions[first] = question(tests[first].result, corrected, ALPHA * share);
    };
    let Some(last) = by_holm.last() else {
        return set_primary(p(first) / share, share, questions);
    };
    // Two ways to reject the primary metric: with its own part, or with the whole share once all others are rejected.
    let (own, rest) = (share * PRIMARY, share * (1.0 - PRIMARY));
    let primary_corrected = (p(first) / own).min((p(first) / share).max(last / rest));
    set_primary(primary_corrected, if last / rest <= ALPHA { share } else { own }, questions);
    // And two for the others: with the rest, or with the whole share once the primary metric is rejected.
    let corrected = by_holm.iter().map(|p| (p / rest).min((p / share).max(primary_corrected)));
    let open = if primary_corrected <= ALPHA { share } else { rest };
    set_others(tests, &order, open, corrected, questions);
}

/// Holm's corrected p-values of sorted ones: the smallest times their number, the next times one less, never falling.
fn holm(sorted: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let all = sorted.len();
    let mut greatest: f64 = 0.0;
    let step = |(place, p): (usize, f64)| {
        greatest = greatest.max(p * (all - place) as f64);
        greatest
    };
    sorted.enumerate().map(step).collect()
}

/// Writes the questions that Holm's procedure decides with `share` of [`ALPHA`], in the order of their p-values. All from
/// the first on that is not rejected were compared with the same level.
fn set_others(
    tests: &[Test],
    order: &[usize],
    share: f64,
    corrected: impl Iterator<Item = f64>,
    questions: &mut [Question],
) {
    let all = order.len();
    let mut rejected = 0;
    for (place, corrected) in order.iter().zip(corrected) {
        let level = ALPHA * share / all.saturating_sub(rejected).max(1) as f64;
        questions[*place] = question(tests[*place].result, corrected, level);
        rejected += usize::from(corrected <= ALPHA);
    }
}

fn question(result: RankTest, corrected: f64, level: f64) -> Question {
    let RankTest { p, untied_p, .. } = result;
    Question { p, corrected: corrected.min(1.0), level, can_be_answered: untied_p <= level }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(p: f64) -> RankTest {
        RankTest { p, least_p: 1e-6, untied_p: 1e-6, is_flat: false }
    }

    fn test(pair: usize, is_primary: bool, p: f64) -> Test {
        Test { pair, is_primary, result: result(p) }
    }

    fn corrected(tests: &[Test]) -> Vec<f64> {
        correct(tests, ALPHA).iter().map(|question| question.corrected).collect()
    }

    fn near(ours: &[f64], theirs: &[f64]) -> bool {
        ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| (one - other).abs() < 1e-12)
    }

    /// R: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`.
    #[test]
    fn without_a_primary_metric_the_correction_is_holms() {
        let tests = [0.01, 0.04, 0.03, 0.005].map(|p| test(0, false, p));
        assert!(near(&corrected(&tests), &[0.03, 0.06, 0.06, 0.02]), "{:?}", corrected(&tests));
    }

    #[test]
    fn a_single_question_is_not_corrected_and_pairs_share() {
        assert!(near(&corrected(&[test(0, true, 0.02)]), &[0.02]));
        assert!(near(&corrected(&[test(0, true, 0.02), test(1, true, 0.03)]), &[0.04, 0.06]));
    }

    #[test]
    fn the_primary_metric_comes_first_and_opens_the_others() {
        let open = corrected(&[test(0, true, 0.03), test(0, false, 0.02), test(0, false, 0.04)]);
        assert!(near(&open, &[0.0375, 0.04, 0.04]), "{open:?}");
        let closed = corrected(&[test(0, true, 0.3), test(0, false, 0.02), test(0, false, 0.004)]);
        assert!(near(&closed, &[0.3, 0.1, 0.04]) || closed[2] <= ALPHA && closed[1] > ALPHA, "{closed:?}");
        let back = corrected(&[test(0, true, 0.045), test(0, false, 0.002), test(0, false, 0.003)]);
        assert!(
            back.iter().all(|p| *p <= ALPHA),
            "all others differ, so their part goes to the primary metric: {back:?}"
        );
    }

    #[test]
    fn a_question_is_rejected_exactly_if_its_p_value_is_at_most_its_level() {
        let mut p = 0.0;
        let mut next = || {
            p = (p + 0.618_033_988_75) % 1.0;
            p * p * p * 0.2
        };
        for _ in 0..500 {
            let tests: Vec<Test> = (0..9).map(|n| test(n / 4, n % 4 == 0, next())).collect();
            for question in correct(&tests, ALPHA) {
                assert_eq!(question.is_rejected(), question.p <= question.level, "{question:?} {tests:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_answered_takes_nothing_from_the_others() {
        let flat = RankTest { p: 1.0, least_p: 1.0, untied_p: 1e-6, is_flat: true };
        let flat = |pair| Test { pair, is_primary: true, result: flat };
        let questions = correct(&[flat(0), test(1, true, 0.02), flat(2)], ALPHA);
        assert!((questions[1].corrected - 0.02).abs() < 1e-12);
        assert!(questions.iter().all(|question| question.can_be_answered), "that all are alike is an answer");
        assert_eq!(correct(&[], ALPHA), []);
        assert_eq!(count(&[flat(0), test(1, true, 0.02)]), Count { pairs: 1, questions: 1, metrics: 1 });
    }

    #[test]
    fn five_repetitions_answer_the_primary_metric_of_five_pairs_and_not_of_six() {
        let five = RankTest { p: 2.0 / 252.0, least_p: 2.0 / 252.0, untied_p: 2.0 / 252.0, is_flat: false };
        let pairs = |all: usize| -> Vec<Test> {
            (0..2 * all).map(|n| Test { pair: n / 2, is_primary: n % 2 == 0, result: five }).collect()
        };
        assert!(correct(&pairs(5), ALPHA).iter().step_by(2).all(|one| one.can_be_answered && one.is_rejected()));
        assert!(correct(&pairs(6), ALPHA).iter().step_by(2).all(|one| !one.can_be_answered && !one.is_rejected()));
    }

    #[test]
    fn looking_again_costs() {
        assert!(near(&[correct(&[test(0, true, 0.02)], ALPHA / 3.0)[0].corrected], &[0.06]));
    }
}
