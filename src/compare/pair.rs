//! Two cells and one metric: what the comparison is based on, and what follows once all questions are corrected. Pure.

use super::{
    cell::Cell,
    metric::Metric,
    past::{self, History, observations},
    statistics::{
        self, ALPHA, Better, Change, Decision, Design, Effect, Question, RankTest, Stratum, TooLittlePast, decide,
        power,
    },
};
use crate::{
    compare::{chosen::Options, stat::ApartStat},
    runs::model::Run,
};

/// What a comparison of two cells is based on.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// Runs measured in turn.
    InTurn(Vec<Stratum>),
    /// Runs of different experiments, all in one stratum, and what the past says of such experiments.
    Apart(Vec<Stratum>, Result<past::Apart, TooLittlePast>),
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// How the other side compares with the baseline.
    pub decision: Decision,
    /// By what factor; none of a share.
    pub effect: Option<Effect>,
    /// By how many points; none of a ratio.
    pub points: Option<f64>,
    /// The p-value, corrected for all questions of the page.
    pub p: Option<f64>,
    /// The smallest difference that is found in 80 % of such comparisons, as a share.
    pub detectable: Option<f64>,
    /// Where they were not measured in turn.
    pub apart: Option<ApartStat>,
}

/// What the comparison of two cells in a metric is based on. None where one of them has no values.
pub fn basis(base: &[&Run], other: &[&Run], metric: Metric, history: &History) -> Option<Basis> {
    let (one, two) = (observations(base, metric), observations(other, metric));
    (!one.is_empty() && !two.is_empty()).then_some(())?;
    if let Design::InTurn { strata, .. } = statistics::design(&one, &two) {
        return Some(Basis::InTurn(strata));
    }
    let values = |side: &[statistics::Observation]| side.iter().map(|one| one.value).collect();
    let strata = vec![Stratum { base: values(&one), other: values(&two) }];
    let apart = past::apart(base, other, metric, history).unwrap_or(Err(TooLittlePast::FewExperiments));
    Some(Basis::Apart(strata, apart))
}

impl Basis {
    fn strata(&self) -> &[Stratum] {
        let (Self::InTurn(strata) | Self::Apart(strata, _)) = self;
        strata
    }

    /// How many values the baseline and the other side have in it.
    pub fn counts(&self) -> [usize; 2] {
        let sum = |of: fn(&Stratum) -> usize| self.strata().iter().map(of).sum();
        [sum(|stratum| stratum.base.len()), sum(|stratum| stratum.other.len())]
    }

    /// Whether "cannot say" is all that can be said.
    pub fn too_little_past(&self) -> Option<TooLittlePast> {
        match self {
            Self::Apart(_, Err(why)) if !self.is_flat() => Some(*why),
            _ => None,
        }
    }

    /// Values that are all the same need no past to be the same.
    fn is_flat(&self) -> bool {
        statistics::rank_test(self.strata()).is_some_and(|test| test.is_flat)
    }

    /// The test that decides; none where nothing can be tested.
    pub fn test(&self) -> Option<RankTest> {
        let ranks = statistics::rank_test(&self.on_scale())?;
        match self {
            Self::InTurn(_) => Some(ranks),
            Self::Apart(..) if ranks.is_flat => Some(ranks),
            Self::Apart(_, Ok(apart)) => {
                let p = apart.between.p(apart.difference, apart.experiments);
                Some(RankTest { p: p.max(ranks.p), ..ranks })
            }
            Self::Apart(_, Err(_)) => None,
        }
    }

    /// The strata on the scale on which strata are aligned: differences of latency and throughput are factors.
    fn on_scale(&self) -> Vec<Stratum> {
        let strata = self.strata();
        let values = || strata.iter().flat_map(|stratum| stratum.base.iter().chain(&stratum.other));
        if values().any(|value| *value <= 0.0) {
            return strata.to_vec();
        }
        let log = |values: &[f64]| values.iter().map(|value| value.ln()).collect();
        strata.iter().map(|one| Stratum { base: log(&one.base), other: log(&one.other) }).collect()
    }

    /// The effect with the interval that belongs to a level.
    pub fn effect(&self, metric: Metric, level: f64) -> Option<Effect> {
        if metric.is_share() {
            return None;
        }
        match self {
            Self::InTurn(strata) => statistics::effect(strata, level),
            Self::Apart(_, Ok(apart)) => {
                let margin = apart.between.margin(level, apart.experiments);
                let at = |shift: f64| (apart.difference + shift).exp();
                Some(Effect { ratio: at(0.0), low: Some(at(-margin)), high: Some(at(margin)) })
            }
            // The interval of the ranks would leave out what moves between experiments.
            Self::Apart(strata, Err(_)) => {
                let effect = statistics::effect(strata, level)?;
                Some(Effect { low: None, high: None, ..effect })
            }
        }
    }

    /// By how many points a share differs: the difference of the means.
    pub fn points(&self, metric: Metric) -> Option<f64> {
        let all = |of: fn(&Stratum) -> &Vec<f64>| self.strata().iter().flat_map(of).copied().collect::<Vec<_>>();
        metric.is_share().then(|| statistics::points(&all(|one| &one.base), &all(|one| &one.other)))?
    }

    /// Where the difference of a share lies: Welch's interval of the means, as rates of failures are mostly zero and a
    /// shift of their ranks says nothing about points.
    pub fn points_interval(&self, level: f64) -> Option<[f64; 2]> {
        let all = |of: fn(&Stratum) -> &Vec<f64>| self.strata().iter().flat_map(of).copied().collect::<Vec<_>>();
        let (base, other) = (all(|one| &one.base), all(|one| &one.other));
        let by = statistics::points(&base, &other)?;
        let margin = match self {
            _ if self.is_flat() => 0.0,
            Self::InTurn(_) => statistics::welch_margin(&base, &other, level)?,
            Self::Apart(_, Ok(apart)) => apart.between.margin(level, apart.experiments),
            Self::Apart(_, Err(_)) => return None,
        };
        Some([by - margin, by + margin])
    }

    /// The change, and whether its interval at a level excludes "no difference".
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

    /// What follows from the corrected question; `cells` are the baseline and the other side.
    pub fn answer(&self, question: Option<Question>, cells: [&Cell; 2], metric: Metric, options: &Options) -> Answer {
        let level = question.map_or(ALPHA, |question| question.level);
        // What can't be answered at its level is shown with the interval of a single question.
        let shown = if question.is_some_and(|question| question.can_be_answered) { level } else { ALPHA };
        let decision = match question {
            Some(question) => {
                let change = self.change(metric, level, options.min_effect.of(metric));
                decide(&question, change, metric.better().unwrap_or(Better::Higher))
            }
            None if self.too_little_past().is_some() => Decision::NotInTurn,
            None => Decision::NoDifference,
        };
        let noise = cells.map(|cell| cell.noise.get(&metric).copied());
        Answer {
            decision,
            effect: self.effect(metric, shown),
            points: self.points(metric),
            p: question.map(|question| question.corrected),
            detectable: question.and_then(|_| self.detectable(metric, noise, level)),
            apart: self.apart_stat(metric, noise, level),
        }
    }

    /// The answer where the runs differ in more than what is compared.
    pub fn not_compared(&self, metric: Metric) -> Answer {
        Answer {
            decision: Decision::NotComparable,
            effect: self.effect(metric, ALPHA),
            points: self.points(metric),
            p: None,
            detectable: None,
            apart: None,
        }
    }

    fn detectable(&self, metric: Metric, noise: [Option<statistics::Noise>; 2], level: f64) -> Option<f64> {
        if metric.is_share() {
            return None;
        }
        match self {
            Self::InTurn(strata) => power::detectable(strata, noise, level),
            Self::Apart(_, Ok(apart)) => {
                let found = apart.between.detectable(level, apart.experiments);
                (found > 0.0).then(|| found.exp_m1())
            }
            Self::Apart(_, Err(_)) => None,
        }
    }

    fn apart_stat(&self, metric: Metric, noise: [Option<statistics::Noise>; 2], level: f64) -> Option<ApartStat> {
        let Self::Apart(strata, apart) = self else { return None };
        let repetitions = self.counts().into_iter().min().unwrap_or(0);
        let scatter = if metric.is_share() { None } else { power::deviation(strata, noise) };
        let in_turn = scatter.and_then(|scatter| power::detectable_with(repetitions, scatter, level));
        Some(match apart {
            Ok(apart) => {
                let margin = apart.between.margin(level, apart.experiments);
                let margin = if metric.is_share() { margin } else { margin.exp_m1() };
                ApartStat { because: None, experiments: Some(apart.between.experiments), margin: Some(margin), in_turn }
            }
            Err(why) => ApartStat { because: Some(*why), experiments: None, margin: None, in_turn },
        })
    }
}
