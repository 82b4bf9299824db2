//! Corrects all questions of one page or gate together, as many tests find false differences.
//!
//! Each pair of cells gets an equal share of [`ALPHA`] (Bonferroni). Within a pair the primary metric is tested first,
//! with most of that share ([`PRIMARY`]); the other metrics follow by Holm (1979, "A simple sequentially rejective
//! multiple test procedure") with the rest, and with the whole share once the primary metric differs (Wiens 2003, "A
//! fixed sequence Bonferroni procedure for testing multiple endpoints", with both directions as in Bretz et al. 2009).
//! So adding metrics costs the primary one next to nothing, and a difference in memory alone can still be found.
//! Questions that could not be answered even alone don't count (Tarone 1990, "A modified Bonferroni method for discrete
//! data"): they cannot yield a false difference.

use super::{ALPHA, RankTest};

/// Share of a pair's error rate for the primary metric if there are other metrics.
pub const PRIMARY: f64 = 0.8;

/// A test with its pair of cells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// Number that identifies the pair of cells.
    pub pair: usize,
    /// Whether it tests the primary metric.
    pub is_primary: bool,
    /// Result of the test.
    pub result: RankTest,
}

/// One question of a page: do these two cells differ in this metric?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// The uncorrected p-value.
    pub p: f64,
    /// The p-value corrected for all other questions; significant if at most [`ALPHA`].
    pub corrected: f64,
    /// The level that `p` was compared with.
    pub level: f64,
    /// Whether this many repetitions could show a difference at that level.
    pub can_be_answered: bool,
}

impl Question {
    /// Whether the test rejects "no difference".
    pub fn is_rejected(&self) -> bool {
        self.corrected <= ALPHA
    }
}

/// Number of questions on a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of pairs of cells, which share the error rate.
    pub pairs: usize,
    /// Total number of questions.
    pub questions: usize,
    /// Maximum number of metrics per pair.
    pub metrics: usize,
}

/// Counts the tests that are questions.
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

/// Returns the level at which the primary metric of a pair is tested.
pub fn primary_level(count: Count) -> f64 {
    ALPHA / count.pairs.max(1) as f64 * if count.metrics > 1 { PRIMARY } else { 1.0 }
}

/// Corrects all tests of a page for a family-wise error rate of `alpha`.
///
/// `alpha` is [`ALPHA`], or less for one of several looks at growing data. The results are in the order of the tests.
pub fn correct(tests: &[Test], alpha: f64) -> Vec<Question> {
    let share = alpha / ALPHA / count(tests).pairs.max(1) as f64;
    let mut questions: Vec<Question> = tests.iter().map(|test| uncounted(test, share)).collect();
    let mut pairs: Vec<usize> = tests.iter().map(|test| test.pair).collect();
    pairs.sort_unstable();
    pairs.dedup();
    for pair in pairs {
        let places: Vec<usize> =
            (0..tests.len()).filter(|place| tests[*place].pair == pair && counts(&tests[*place])).collect();
        let (primary, others): (Vec<usize>, Vec<usize>) =
            places.into_iter().partition(|place| tests[*place].is_primary);
        correct_pair(tests, primary.first().copied(), &others, share, &mut questions);
    }
    questions
}

/// Returns a question that does not share the error rate.
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

/// Corrects sorted p-values by Holm: the smallest times their number, the next times one less.
fn holm(sorted: impl ExactSizeIterator<Item = f64>) -> Vec<f64> {
    let all = sorted.len();
    let mut greatest: f64 = 0.0;
    let step = |(place, p): (usize, f64)| {
        greatest = greatest.max(p * (all - place) as f64);
        greatest
    };
    sorted.enumerate().map(step).collect()
}

/// Writes the questions decided by Holm's procedure with `share` of [`ALPHA`], ordered by p-value.
///
/// The first that is not rejected and all after it have the same level.
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

    fn near(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12)
    }

    /// R: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`.
    #[test]
    fn without_a_primary_metric_the_correction_is_holms() {
        let tests = [0.01, 0.04, 0.03, 0.005].map(|p| test(0, false, p));
        assert!(near(&corrected(&tests), &[0.03, 0.06, 0.06, 0.02]), "{:?}", corrected(&tests));
    }

    #[test]
    fn a_single_question_is_not_corrected_and_pairs_share_the_error_rate() {
        assert!(near(&corrected(&[test(0, true, 0.02)]), &[0.02]));
        assert!(near(&corrected(&[test(0, true, 0.02), test(1, true, 0.03)]), &[0.04, 0.06]));
    }

    #[test]
    fn the_primary_metric_is_tested_first_and_unlocks_the_others() {
        let open = corrected(&[test(0, true, 0.03), test(0, false, 0.02), test(0, false, 0.04)]);
        assert!(near(&open, &[0.0375, 0.04, 0.04]), "{open:?}");
        let closed = corrected(&[test(0, true, 0.3), test(0, false, 0.02), test(0, false, 0.004)]);
        assert!(near(&closed, &[0.3, 0.1, 0.04]) || closed[2] <= ALPHA && closed[1] > ALPHA, "{closed:?}");
        let back = corrected(&[test(0, true, 0.045), test(0, false, 0.002), test(0, false, 0.003)]);
        assert!(
            back.iter().all(|p| *p <= ALPHA),
            "all others differ, so their share goes to the primary metric: {back:?}"
        );
    }

    #[test]
    fn a_question_is_rejected_if_and_only_if_its_p_value_is_at_most_its_level() {
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
    fn unanswerable_questions_do_not_share_the_error_rate() {
        let flat = RankTest { p: 1.0, least_p: 1.0, untied_p: 1e-6, is_flat: true };
        let flat = |pair| Test { pair, is_primary: true, result: flat };
        let questions = correct(&[flat(0), test(1, true, 0.02), flat(2)], ALPHA);
        assert!((questions[1].corrected - 0.02).abs() < 1e-12);
        assert!(questions.iter().all(|question| question.can_be_answered), "equal values are an answer");
        assert_eq!(correct(&[], ALPHA), []);
        assert_eq!(count(&[flat(0), test(1, true, 0.02)]), Count { pairs: 1, questions: 1, metrics: 1 });
    }

    #[test]
    fn five_repetitions_answer_the_primary_metric_of_five_pairs_but_not_of_six() {
        let five = RankTest { p: 2.0 / 252.0, least_p: 2.0 / 252.0, untied_p: 2.0 / 252.0, is_flat: false };
        let pairs = |all: usize| -> Vec<Test> {
            (0..2 * all).map(|n| Test { pair: n / 2, is_primary: n % 2 == 0, result: five }).collect()
        };
        assert!(correct(&pairs(5), ALPHA).iter().step_by(2).all(|one| one.can_be_answered && one.is_rejected()));
        assert!(correct(&pairs(6), ALPHA).iter().step_by(2).all(|one| !one.can_be_answered && !one.is_rejected()));
    }

    #[test]
    fn repeated_looks_raise_the_corrected_p_value() {
        assert!(near(&[correct(&[test(0, true, 0.02)], ALPHA / 3.0)[0].corrected], &[0.06]));
    }
}
