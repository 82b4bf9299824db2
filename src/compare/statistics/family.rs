//! All questions that one page asks, held together: who asks often enough finds a difference anywhere.

use super::{ALPHA, Ranks};

/// One question of a page: is this pair of cells different in this figure?
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question {
    /// What the test alone says.
    pub p: f64,
    /// The same, corrected for all other questions: the page shows a difference where this is at most [`ALPHA`].
    pub corrected: f64,
    /// Whether so many repetitions could show anything, in spite of the correction.
    pub can_be_answered: bool,
}

/// Corrects after Holm (1979, "A simple sequentially rejective multiple test procedure"): the smallest p times the number
/// of questions, the next times one less, and so on, never falling. Questions that could not be answered even if they
/// were the only one don't count among them (Tarone 1990, "A modified Bonferroni method for discrete data"): the answer
/// that they can't give can't be wrong.
pub fn holm(tests: &[Ranks]) -> Vec<Question> {
    let counts = |test: &Ranks| test.least_p <= ALPHA;
    let mut order: Vec<usize> = (0..tests.len()).filter(|place| counts(&tests[*place])).collect();
    order.sort_by(|a, b| tests[*a].p.total_cmp(&tests[*b].p));
    let asked = order.len();
    let enough = |test: &Ranks| test.untied_p * asked.max(1) as f64 <= ALPHA;
    let alone = |test: &Ranks| Question { p: test.p, corrected: 1.0, can_be_answered: enough(test) };
    let mut questions: Vec<Question> = tests.iter().map(alone).collect();
    let mut greatest: f64 = 0.0;
    for (place, test) in order.into_iter().enumerate() {
        greatest = greatest.max((tests[test].p * (asked - place) as f64).min(1.0));
        questions[test].corrected = greatest;
    }
    questions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(p: f64) -> Ranks {
        Ranks { p, least_p: 1e-6, untied_p: 1e-6, is_flat: false }
    }

    /// R: `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")`.
    #[test]
    fn the_corrections_are_holms() {
        let corrected: Vec<f64> =
            holm(&[0.01, 0.04, 0.03, 0.005].map(test)).iter().map(|question| question.corrected).collect();
        for (ours, theirs) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((ours - theirs).abs() < 1e-12, "{corrected:?}");
        }
    }

    #[test]
    fn what_cannot_be_answered_takes_nothing_from_the_others() {
        let flat = Ranks { p: 1.0, least_p: 1.0, untied_p: 1e-6, is_flat: true };
        let questions = holm(&[flat, test(0.02), flat]);
        assert!((questions[1].corrected - 0.02).abs() < 1e-12);
        assert!(questions.iter().all(|question| question.can_be_answered), "that all are alike is an answer");
        let five = Ranks { p: 2.0 / 252.0, least_p: 2.0 / 252.0, untied_p: 2.0 / 252.0, is_flat: false };
        assert!(holm(&[five; 6]).iter().all(|question| question.can_be_answered && question.corrected <= ALPHA));
        assert!(holm(&[five; 7]).iter().all(|question| !question.can_be_answered && question.corrected > ALPHA));
        assert_eq!(holm(&[]), []);
    }
}
