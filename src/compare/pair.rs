//! The answer to whether two cells differ in one metric, after the correction for all questions. Pure.

use super::{
    basis::Basis,
    cell::Cell,
    metric::Metric,
    statistics::{ALPHA, Better, Decision, Effect, Question, decide},
};
use crate::compare::{chosen::Options, more::MoreRepetitions, stat::CrossExperimentStat};

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairAnswer {
    /// Decision on the other side compared with the baseline; none unless the metric is judged.
    pub decision: Option<Decision>,
    /// The ratio; none for a share, or without one.
    pub effect: Option<Effect>,
    /// The difference in points; none unless it is a share.
    pub points: Option<f64>,
    /// Number of compared runs of the baseline and of the other side.
    pub compared: [usize; 2],
    /// The p-value, corrected for all questions of the page.
    pub p: Option<f64>,
    /// Minimum detectable effect, found in 80 % of such comparisons, as a share.
    pub detectable: Option<f64>,
    /// The most by which a value may differ from the one that was read; none if values are exact.
    pub rounding: Option<f64>,
    /// Repetitions that would find a smaller difference.
    pub more: Option<MoreRepetitions>,
    /// Variation between experiments, if they were not measured in turn.
    pub apart: Option<CrossExperimentStat>,
}

impl PairAnswer {
    /// Answers the corrected question; `cells` are the baseline and the other side.
    pub fn new(
        basis: &Basis,
        question: Option<Question>,
        cells: [&Cell; 2],
        metric: Metric,
        options: &Options,
    ) -> Self {
        let level = question.map_or(ALPHA, |question| question.level);
        // A question that can't be answered at its level is shown with the interval of a single question.
        let shown = if question.is_some_and(|question| question.can_be_answered) { level } else { ALPHA };
        let min_effect = options.min_effect.for_metric(metric);
        let decision = match question {
            Some(question) => {
                let estimate = basis.estimate(metric, level, min_effect);
                Some(decide(&question, estimate, metric.better().unwrap_or(Better::Higher)))
            }
            None => basis.too_little_past().map(|_| Decision::NotInTurn),
        };
        let noise = cells.map(|cell| cell.noise.get(&metric).copied());
        let effect = basis.effect(metric, shown);
        let is_undecided = decision == Some(Decision::NoDifference);
        let estimated_at = question.map_or(ALPHA, |question| question.level_among_related);
        let detectable = question.and_then(|_| basis.detectable(metric, noise, estimated_at, min_effect));
        let more = detectable.filter(|_| is_undecided);
        Self {
            decision,
            effect: if is_undecided { effect.map(Effect::undecided) } else { effect },
            points: basis.points(metric),
            compared: basis.counts(),
            p: question.map(|question| question.corrected),
            detectable,
            rounding: basis.rounding(),
            more: more.and_then(|found| basis.more(found, noise, estimated_at, min_effect)),
            apart: basis.apart(metric, noise, level, min_effect),
        }
    }

    /// Returns the answer for cells that are not comparable, which gives no difference to quote.
    pub fn not_compared(basis: &Basis) -> Self {
        Self {
            decision: Some(Decision::NotComparable),
            effect: None,
            points: None,
            compared: basis.counts(),
            p: None,
            detectable: None,
            rounding: basis.rounding(),
            more: None,
            apart: None,
        }
    }

    /// Returns the other side's value beside this one of the baseline, as the estimate says. None if there is no
    /// estimate.
    pub fn beside(&self, base: f64) -> Option<f64> {
        let points = || self.points.map(|points| (base + points).clamp(0.0, 1.0));
        self.effect.map(|effect| base * effect.ratio).or_else(points)
    }

    /// Returns the difference of one side from the other, as a share or in points, if `is_reversed` of the baseline.
    pub fn by(&self, is_reversed: bool) -> Option<f64> {
        let ratio = self.effect.map(|effect| if is_reversed { 1.0 / effect.ratio } else { effect.ratio });
        let points = self.points.map(|points| if is_reversed { -points } else { points });
        ratio.map(|ratio| ratio - 1.0).or(points)
    }
}
