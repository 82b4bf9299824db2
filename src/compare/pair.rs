//! Compares two cells in one metric, before and after the correction for all questions. Pure.

use super::{
    cell::Cell,
    metric::Metric,
    past::{self, History, observations},
    statistics::{
        self, ALPHA, Better, Block, Change, Decision, Design, Effect, Evidence, Question, Stratum, Test, TooLittlePast,
        decide, power,
    },
};
use crate::{
    compare::{chosen::Options, more::MoreRepetitions, stat::CrossExperimentStat},
    runs::model::Run,
};

/// The data that a comparison of two cells is based on.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// Runs measured in turn, in the blocks that both sides completed.
    InTurn(Vec<Stratum>, Vec<Block>),
    /// Runs of different experiments in one stratum, and their variation in the past.
    Apart(Vec<Stratum>, Result<past::CrossExperimentDifference, TooLittlePast>),
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairAnswer {
    /// Decision on the other side compared with the baseline.
    pub decision: Decision,
    /// The ratio; none for a share.
    pub effect: Option<Effect>,
    /// The difference in points; none unless it is a share.
    pub points: Option<f64>,
    /// Number of compared runs of the baseline and of the other side.
    pub compared: [usize; 2],
    /// The p-value, corrected for all questions of the page.
    pub p: Option<f64>,
    /// Minimum detectable effect, found in 80 % of such comparisons, as a share.
    pub detectable: Option<f64>,
    /// Repetitions that would find a smaller difference.
    pub more: Option<MoreRepetitions>,
    /// Variation between experiments, if they were not measured in turn.
    pub apart: Option<CrossExperimentStat>,
}

/// Returns the basis for comparing two cells in a metric. None if one of them has no values.
pub fn basis(base: &[&Run], other: &[&Run], metric: Metric, history: &History) -> Option<Basis> {
    let (one, two) = (observations(base, metric), observations(other, metric));
    (!one.is_empty() && !two.is_empty()).then_some(())?;
    if let Design::InTurn { strata, blocks } = statistics::design(&one, &two) {
        return Some(Basis::InTurn(strata, blocks));
    }
    let values = |side: &[statistics::Observation]| side.iter().map(|one| one.value).collect();
    let strata = vec![Stratum { base: values(&one), other: values(&two) }];
    let apart = past::apart(base, other, metric, history).unwrap_or(Err(TooLittlePast::FewExperiments));
    Some(Basis::Apart(strata, apart))
}

impl PairAnswer {
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

impl Basis {
    fn strata(&self) -> &[Stratum] {
        let (Self::InTurn(strata, _) | Self::Apart(strata, _)) = self;
        strata
    }

    /// When the runs of a repetition were measured.
    pub fn order(&self) -> power::Order {
        power::Order::of(self.strata())
    }

    /// Number of values of the baseline and of the other side.
    pub fn counts(&self) -> [usize; 2] {
        let sum = |of: fn(&Stratum) -> usize| self.strata().iter().map(of).sum();
        [sum(|stratum| stratum.base.len()), sum(|stratum| stratum.other.len())]
    }

    /// Why the result is "cannot say", if it is.
    pub fn too_little_past(&self) -> Option<TooLittlePast> {
        match self {
            Self::Apart(_, Err(why)) if !self.is_flat() => Some(*why),
            _ => None,
        }
    }

    /// Whether all values are equal, which needs no past to decide.
    fn is_flat(&self) -> bool {
        statistics::rank_test(self.strata()).is_some_and(|test| test.is_flat)
    }

    /// Returns the question whether the sides differ; none if there is nothing to test.
    pub fn test(&self, pair: usize, is_primary: bool) -> Option<Test> {
        let evidence = match self {
            Self::Apart(_, apart) if !self.is_flat() => Evidence::Apart(apart.as_ref().ok()?.p(0.0)),
            _ => Evidence::in_turn(self.on_scale(0.0))?,
        };
        Some(Test { pair, blocks: self.blocks(), is_primary, evidence })
    }

    /// Returns the question whether the difference is another one than `limit`, a share or points.
    ///
    /// Shares are mostly zero, so their ranks say little about points: their means decide, if the ranks differ at all.
    pub fn test_of_limit(&self, pair: usize, is_primary: bool, metric: Metric, limit: f64) -> Option<Test> {
        let evidence = match self {
            // Equal values differ by nothing, whatever the past says about experiments.
            Self::Apart(_, Err(_)) if self.is_flat() => Evidence::Apart(1.0),
            Self::Apart(_, apart) => {
                let limit = if metric.is_share() { limit } else { limit.ln_1p() };
                Evidence::Apart(apart.as_ref().ok()?.p(limit))
            }
            Self::InTurn(strata, _) if metric.is_share() => {
                let [base, other] = self.sides();
                let means = statistics::welch_p(&base, &other, limit)?;
                Evidence::Apart(means.max(statistics::rank_test(strata)?.p))
            }
            Self::InTurn(..) => Evidence::in_turn(self.on_scale(limit.ln_1p()))?,
        };
        Some(Test { pair, blocks: self.blocks(), is_primary, evidence })
    }

    fn blocks(&self) -> Vec<Block> {
        match self {
            Self::InTurn(_, blocks) => blocks.clone(),
            Self::Apart(..) => Vec::new(),
        }
    }

    /// Returns all values of the baseline and of the other side.
    fn sides(&self) -> [Vec<f64>; 2] {
        let all = |of: fn(&Stratum) -> &Vec<f64>| self.strata().iter().flat_map(of).copied().collect();
        [all(|one| &one.base), all(|one| &one.other)]
    }

    /// Returns the strata as logarithms if possible, as latencies and throughputs differ by factors; the other side
    /// without a difference of `shift`.
    fn on_scale(&self, shift: f64) -> Vec<Stratum> {
        let strata = self.strata();
        let values = || strata.iter().flat_map(|stratum| stratum.base.iter().chain(&stratum.other));
        if values().any(|value| *value <= 0.0) {
            return strata.to_vec();
        }
        let log = |values: &[f64], shift: f64| values.iter().map(|value| value.ln() - shift).collect();
        strata.iter().map(|one| Stratum { base: log(&one.base, 0.0), other: log(&one.other, shift) }).collect()
    }

    /// Returns the effect with the interval at a level.
    pub fn effect(&self, metric: Metric, level: f64) -> Option<Effect> {
        if metric.is_share() {
            return None;
        }
        match self {
            Self::InTurn(strata, _) => statistics::effect(strata, level),
            Self::Apart(_, Ok(apart)) => {
                let margin = apart.between.margin(level, apart.experiments);
                let at = |shift: f64| (apart.difference + shift).exp();
                Some(Effect { ratio: at(0.0), low: Some(at(-margin)), high: Some(at(margin)) })
            }
            // The interval of the ranks ignores the variation between experiments.
            Self::Apart(strata, Err(_)) => {
                let effect = statistics::effect(strata, level)?;
                Some(Effect { low: None, high: None, ..effect })
            }
        }
    }

    /// Returns the difference of a share in points: the difference of the means.
    pub fn points(&self, metric: Metric) -> Option<f64> {
        let [base, other] = self.sides();
        metric.is_share().then(|| statistics::points(&base, &other))?
    }

    /// Returns the interval of the difference of a share by Welch's method.
    ///
    /// Failure rates are mostly zero, so a shift of their ranks says nothing about points.
    pub fn points_interval(&self, level: f64) -> Option<[f64; 2]> {
        let [base, other] = self.sides();
        let by = statistics::points(&base, &other)?;
        let margin = match self {
            _ if self.is_flat() => 0.0,
            Self::InTurn(..) => statistics::welch_margin(&base, &other, level)?,
            Self::Apart(_, Ok(apart)) => apart.between.margin(level, apart.experiments),
            Self::Apart(_, Err(_)) => return None,
        };
        Some([by - margin, by + margin])
    }

    /// Returns the change, and whether its interval at a level excludes "no difference".
    pub fn change(&self, metric: Metric, level: f64, min_effect: f64) -> Option<Change> {
        if !metric.is_share() {
            return self.effect(metric, level).map(|effect| Change::of(&effect, min_effect));
        }
        let by = self.points(metric)?;
        let is_clear = match self {
            Self::Apart(_, Ok(apart)) => by.abs() > apart.between.margin(level, apart.experiments),
            _ => true,
        };
        Some(Change { by, is_clear, min_effect })
    }

    /// Answers the corrected question; `cells` are the baseline and the other side.
    pub fn answer(
        &self,
        question: Option<Question>,
        cells: [&Cell; 2],
        metric: Metric,
        options: &Options,
    ) -> PairAnswer {
        let level = question.map_or(ALPHA, |question| question.level);
        // A question that can't be answered at its level is shown with the interval of a single question.
        let shown = if question.is_some_and(|question| question.can_be_answered) { level } else { ALPHA };
        let decision = match question {
            Some(question) => {
                let change = self.change(metric, level, options.min_effect.for_metric(metric));
                decide(&question, change, metric.better().unwrap_or(Better::Higher))
            }
            None if self.too_little_past().is_some() => Decision::NotInTurn,
            None => Decision::NoDifference,
        };
        let noise = cells.map(|cell| cell.noise.get(&metric).copied());
        let effect = self.effect(metric, shown);
        let min_effect = options.min_effect.for_metric(metric);
        let detectable = question.and_then(|_| self.detectable(metric, noise, level, min_effect));
        let more = detectable.filter(|_| decision == Decision::NoDifference);
        PairAnswer {
            decision,
            effect: if decision == Decision::NoDifference { effect.map(Effect::undecided) } else { effect },
            points: self.points(metric),
            compared: self.counts(),
            p: question.map(|question| question.corrected),
            detectable,
            more: more.and_then(|found| self.more(found, noise, level, min_effect)),
            apart: self.apart_stat(metric, noise, level, min_effect),
        }
    }

    /// Returns the baseline's figure beside a ratio or a difference in points.
    pub fn base(&self, metric: Metric, ratio: Option<f64>) -> Option<f64> {
        metric.middle_of(self.aligned(ratio, true))
    }

    /// Returns the values of the other side without its ratio to the baseline, and those of the baseline.
    ///
    /// Without a ratio only the baseline's.
    pub fn aligned(&self, ratio: Option<f64>, with_base: bool) -> Vec<f64> {
        let [mut base, other] = self.sides();
        base.truncate(if with_base { base.len() } else { 0 });
        base.extend(ratio.into_iter().flat_map(|ratio| other.iter().map(move |value| value / ratio)));
        base
    }

    /// Returns the answer for cells that are not comparable, which gives no difference to quote.
    pub fn not_compared(&self) -> PairAnswer {
        PairAnswer {
            decision: Decision::NotComparable,
            effect: None,
            points: None,
            compared: self.counts(),
            p: None,
            detectable: None,
            more: None,
            apart: None,
        }
    }

    fn detectable(
        &self,
        metric: Metric,
        noise: [Option<statistics::Noise>; 2],
        level: f64,
        min_effect: f64,
    ) -> Option<f64> {
        if metric.is_share() {
            return None;
        }
        match self {
            Self::InTurn(strata, _) => power::detectable(strata, noise, level, min_effect),
            Self::Apart(_, Ok(apart)) => {
                let found = apart.between.detectable(level, apart.experiments, min_effect);
                (found > 0.0).then(|| found.exp_m1())
            }
            Self::Apart(_, Err(_)) => None,
        }
    }

    /// Returns how many more repetitions would find less than `found`.
    fn more(
        &self,
        found: f64,
        noise: [Option<statistics::Noise>; 2],
        level: f64,
        min_effect: f64,
    ) -> Option<MoreRepetitions> {
        let Self::InTurn(strata, _) = self else { return None };
        let now = self.counts().into_iter().min()?;
        MoreRepetitions::for_less(now, found, power::scatter(strata, noise)?, level, min_effect)
    }

    fn apart_stat(
        &self,
        metric: Metric,
        noise: [Option<statistics::Noise>; 2],
        level: f64,
        min_effect: f64,
    ) -> Option<CrossExperimentStat> {
        let Self::Apart(strata, apart) = self else { return None };
        let repetitions = self.counts().into_iter().min().unwrap_or(0);
        let scatter = if metric.is_share() { None } else { power::scatter(strata, noise) };
        let interleaved = scatter.and_then(|scatter| power::detectable_with(repetitions, scatter, level, min_effect));
        Some(match apart {
            Ok(apart) => {
                let margin = apart.between.margin(level, apart.experiments);
                let margin = if metric.is_share() { margin } else { margin.exp_m1() };
                CrossExperimentStat {
                    because: None,
                    experiments: Some(apart.between.experiments),
                    margin: Some(margin),
                    interleaved,
                }
            }
            Err(why) => CrossExperimentStat { because: Some(*why), experiments: None, margin: None, interleaved },
        })
    }
}
