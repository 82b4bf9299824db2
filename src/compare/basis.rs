//! What a comparison of two cells in one metric is based on: their values, and how they were measured. Pure.

use super::{
    metric::Metric,
    past::{self, CrossExperimentDifference, History, Rounding, observations},
    statistics::{
        self, Change, Clarity, Design, Effect, Estimate, Evidence, Noise, Places, Stratum, Test, TooLittlePast, power,
    },
};
use crate::{
    compare::{more::MoreRepetitions, stat::CrossExperimentStat},
    runs::model::Run,
};

/// The data that a comparison of two cells is based on.
#[derive(Clone, Debug, PartialEq)]
pub struct Basis {
    /// Runs of both sides, grouped by exchangeability; in one stratum if they were measured at different times.
    strata: Vec<Stratum>,
    /// What rounded values leave open; none if they are exact.
    rounded: Option<Rounded>,
    measured: Measured,
}

/// The strata of values that were rounded when they were printed or counted in buckets.
#[derive(Clone, Debug, PartialEq)]
struct Rounded {
    /// With the lowest ratio that they can stand for.
    lowest: Vec<Stratum>,
    /// With the highest one.
    highest: Vec<Stratum>,
    /// The most by which a value may differ from the one that was read.
    by: f64,
}

/// How two cells were measured.
#[derive(Clone, Debug, PartialEq)]
enum Measured {
    /// In turn, in these blocks.
    InTurn(Places),
    /// At different times; with their difference and the variation between experiments.
    Apart(Result<CrossExperimentDifference, TooLittlePast>),
}

/// Returns the basis for comparing two cells in a metric. None if one of them has no values.
pub fn basis(base: &[&Run], other: &[&Run], metric: Metric, history: &History) -> Option<Basis> {
    let strata = |one: Rounding, two: Rounding| -> (Vec<Stratum>, Option<Places>) {
        let (one, two) = (observations(base, metric, one), observations(other, metric, two));
        match statistics::design(&one, &two) {
            Design::InTurn { strata, places } => (strata, Some(places)),
            Design::Apart => {
                let values = |side: &[statistics::Observation]| side.iter().map(|one| one.value).collect();
                (vec![Stratum { base: values(&one), other: values(&two) }], None)
            }
        }
    };
    let is_measured = |side: &[&Run]| !observations(side, metric, Rounding::AsRead).is_empty();
    (is_measured(base) && is_measured(other)).then_some(())?;
    let (exact, places) = strata(Rounding::AsRead, Rounding::AsRead);
    let by = base.iter().chain(other).map(|run| run.resolution(metric)).fold(0.0, f64::max);
    let rounded = (by > 0.0).then(|| Rounded {
        lowest: strata(Rounding::Highest, Rounding::Lowest).0,
        highest: strata(Rounding::Lowest, Rounding::Highest).0,
        by,
    });
    let apart = || past::apart(base, other, metric, history).unwrap_or(Err(TooLittlePast::FewExperiments));
    let measured = places.map_or_else(|| Measured::Apart(apart()), Measured::InTurn);
    Some(Basis { strata: exact, rounded, measured })
}

impl Basis {
    /// When the runs of a repetition were measured.
    pub fn order(&self) -> power::Order {
        power::Order::of(&self.strata)
    }

    /// The most by which a value may differ from the one that was read; none if values are exact.
    pub fn rounding(&self) -> Option<f64> {
        self.rounded.as_ref().map(|rounded| rounded.by)
    }

    /// Whether its runs were measured in turn.
    pub fn is_in_turn(&self) -> bool {
        matches!(self.measured, Measured::InTurn(_))
    }

    /// Number of values of the baseline and of the other side.
    pub fn counts(&self) -> [usize; 2] {
        let sum = |of: fn(&Stratum) -> usize| self.strata.iter().map(of).sum();
        [sum(|stratum| stratum.base.len()), sum(|stratum| stratum.other.len())]
    }

    /// Why the result is "cannot say", if it is.
    pub fn too_little_past(&self) -> Option<TooLittlePast> {
        match &self.measured {
            Measured::Apart(Err(why)) if !self.is_flat() => Some(*why),
            _ => None,
        }
    }

    /// Whether all values are equal, which needs no past to decide.
    fn is_flat(&self) -> bool {
        statistics::rank_test(&self.strata).is_some_and(|test| test.is_flat)
    }

    /// Returns the question whether the sides differ; none if there is nothing to test.
    pub fn test(&self, pair: usize, is_primary: bool) -> Option<Test> {
        let evidence = match &self.measured {
            Measured::Apart(apart) if !self.is_flat() => Evidence::Apart(apart.as_ref().ok()?.p(0.0)),
            _ => Evidence::in_turn(self.on_scale(0.0))?,
        };
        Some(Test { pair, places: self.places(), is_primary, evidence })
    }

    /// Returns the question whether the difference is another one than `limit`, a share or points.
    ///
    /// Shares are mostly zero, so their ranks say little about points: their means decide, if the ranks differ at all.
    pub fn test_of_limit(&self, pair: usize, is_primary: bool, metric: Metric, limit: f64) -> Option<Test> {
        let evidence = match &self.measured {
            // Equal values differ by nothing, whatever the past says about experiments.
            Measured::Apart(Err(_)) if self.is_flat() => Evidence::Apart(1.0),
            Measured::Apart(apart) => {
                let limit = if metric.is_share() { limit } else { limit.ln_1p() };
                Evidence::Apart(apart.as_ref().ok()?.p(limit))
            }
            Measured::InTurn(_) if metric.is_share() => {
                let [base, other] = self.sides();
                let means = statistics::welch_p(&base, &other, limit)?;
                Evidence::Apart(means.max(statistics::rank_test(&self.strata)?.p))
            }
            Measured::InTurn(_) => Evidence::in_turn(self.on_scale(limit.ln_1p()))?,
        };
        Some(Test { pair, places: self.places(), is_primary, evidence })
    }

    fn places(&self) -> Places {
        match &self.measured {
            Measured::InTurn(places) => places.clone(),
            Measured::Apart(_) => Vec::new(),
        }
    }

    /// Returns all values of the baseline and of the other side.
    fn sides(&self) -> [Vec<f64>; 2] {
        let all = |of: fn(&Stratum) -> &Vec<f64>| self.strata.iter().flat_map(of).copied().collect();
        [all(|one| &one.base), all(|one| &one.other)]
    }

    /// Returns the strata as logarithms if possible, as latencies and throughputs differ by factors; the other side
    /// without a difference of `shift`.
    fn on_scale(&self, shift: f64) -> Vec<Stratum> {
        let values = || self.strata.iter().flat_map(|stratum| stratum.base.iter().chain(&stratum.other));
        if values().any(|value| *value <= 0.0) {
            return self.strata.clone();
        }
        let log = |values: &[f64], shift: f64| values.iter().map(|value| value.ln() - shift).collect();
        self.strata.iter().map(|one| Stratum { base: log(&one.base, 0.0), other: log(&one.other, shift) }).collect()
    }

    /// Returns the effect with the interval at a level. None for a share, or if a value is not greater than zero.
    pub fn effect(&self, metric: Metric, level: f64) -> Option<Effect> {
        let exact = self.exact_effect(metric, level)?;
        let Some(Rounded { lowest, highest, .. }) = &self.rounded else { return Some(exact) };
        let [lowest, highest] = [lowest, highest].map(|strata| match &self.measured {
            Measured::InTurn(_) => statistics::effect(strata, level),
            // The same variation between experiments around another estimate.
            Measured::Apart(_) => {
                let ratio = statistics::effect(strata, level)?.ratio / statistics::effect(&self.strata, level)?.ratio;
                let end = |end: Option<f64>| end.map(|end| end * ratio);
                Some(Effect { ratio: exact.ratio * ratio, low: end(exact.low), high: end(exact.high) })
            }
        });
        Some(exact.rounded(lowest, highest))
    }

    fn exact_effect(&self, metric: Metric, level: f64) -> Option<Effect> {
        let mut values = self.strata.iter().flat_map(|one| one.base.iter().chain(&one.other));
        // The medians of experiments could have a ratio beside a figure of 0.
        if metric.is_share() || values.any(|value| *value <= 0.0) {
            return None;
        }
        match &self.measured {
            Measured::InTurn(_) => statistics::effect(&self.strata, level),
            Measured::Apart(Ok(apart)) => {
                let margin = apart.between.margin(level);
                let at = |shift: f64| (apart.difference + shift).exp();
                Some(Effect { ratio: at(0.0), low: Some(at(-margin)), high: Some(at(margin)) })
            }
            // The interval of the ranks ignores the variation between experiments.
            Measured::Apart(Err(_)) => {
                let effect = statistics::effect(&self.strata, level)?;
                Some(Effect { low: None, high: None, ..effect })
            }
        }
    }

    /// Returns the difference of a share in points: the difference of the means.
    pub fn points(&self, metric: Metric) -> Option<f64> {
        let [base, other] = self.sides();
        metric.is_share().then(|| statistics::points(&base, &other))?
    }

    /// Returns by how much rounding can change the difference of a share.
    fn points_hidden(&self) -> f64 {
        let Some(rounded) = &self.rounded else { return 0.0 };
        let of = |strata: &[Stratum]| {
            let all = |of: fn(&Stratum) -> &Vec<f64>| strata.iter().flat_map(of).copied().collect::<Vec<f64>>();
            statistics::points(&all(|one| &one.base), &all(|one| &one.other)).unwrap_or(0.0)
        };
        (of(&rounded.highest) - of(&rounded.lowest)).abs() / 2.0
    }

    /// Returns the interval of the difference of a share by Welch's method.
    ///
    /// Failure rates are mostly zero, so a shift of their ranks says nothing about points.
    pub fn points_interval(&self, level: f64) -> Option<[f64; 2]> {
        let [base, other] = self.sides();
        let by = statistics::points(&base, &other)?;
        let margin = match &self.measured {
            _ if self.is_flat() => 0.0,
            Measured::InTurn(_) => statistics::welch_margin(&base, &other, level)?,
            Measured::Apart(Ok(apart)) => apart.between.margin(level),
            Measured::Apart(Err(_)) => return None,
        };
        let margin = margin + self.points_hidden();
        Some([by - margin, by + margin])
    }

    /// Returns what is known of the size of the difference, at a level.
    pub fn estimate(&self, metric: Metric, level: f64, min_effect: f64) -> Estimate {
        if let Some(by) = self.points(metric) {
            let is_clear = match &self.measured {
                Measured::Apart(Ok(apart)) => by.abs() > apart.between.margin(level),
                _ => true,
            };
            let clarity = Clarity::of(is_clear, self.rounded.is_none() || by.abs() > self.points_hidden());
            return Estimate::Change(Change { by, clarity, min_effect });
        }
        match (self.effect(metric, level), self.exact_effect(metric, level)) {
            (Some(effect), Some(exact)) => Estimate::Change(Change {
                by: effect.change(),
                clarity: Clarity::of(exact.is_clear(), effect.is_clear()),
                min_effect,
            }),
            _ => self.without_ratio(level),
        }
    }

    fn without_ratio(&self, level: f64) -> Estimate {
        let excess = |strata: &[Stratum]| {
            statistics::rank_test(strata).map_or(0.0, |test| if test.p <= level { test.excess } else { 0.0 })
        };
        let test = statistics::rank_test(&self.strata);
        let is_greater = test.is_some_and(|test| test.excess > 0.0);
        let is_certain =
            self.rounded.as_ref().is_none_or(
                |Rounded { lowest, highest, .. }| {
                    if is_greater { excess(lowest) > 0.0 } else { excess(highest) < 0.0 }
                },
            );
        Estimate::NoRatio { is_greater, clarity: Clarity::of(true, is_certain) }
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

    /// Returns the minimum detectable effect: never less than what rounding can hide.
    pub fn detectable(&self, metric: Metric, noise: [Option<Noise>; 2], level: f64, min_effect: f64) -> Option<f64> {
        if metric.is_share() {
            return None;
        }
        let exact = match &self.measured {
            Measured::InTurn(_) => power::detectable(&self.strata, noise, level, min_effect),
            Measured::Apart(Ok(apart)) => {
                let found = apart.between.detectable(level, min_effect);
                (found > 0.0).then(|| found.exp_m1())
            }
            Measured::Apart(Err(_)) => None,
        };
        match self.hidden() {
            Some(hidden) => Some((1.0 + exact.unwrap_or(0.0)) * (1.0 + hidden) - 1.0),
            None => exact,
        }
    }

    /// Returns the ratio of both sides that rounding can hide, as a share; none if values are exact or no ratio exists.
    fn hidden(&self) -> Option<f64> {
        let ratio = |strata: &[Stratum]| statistics::effect(strata, statistics::ALPHA).map(|effect| effect.ratio);
        let Rounded { lowest, highest, .. } = self.rounded.as_ref()?;
        Some((ratio(highest)? / ratio(lowest)?).sqrt() - 1.0)
    }

    /// Returns how many more repetitions would find less than `found`; none if mostly rounding hides it.
    pub fn more(&self, found: f64, noise: [Option<Noise>; 2], level: f64, min_effect: f64) -> Option<MoreRepetitions> {
        let is_too_coarse = self.hidden().is_some_and(|hidden| 2.0 * hidden > found);
        (self.is_in_turn() && !is_too_coarse).then_some(())?;
        let now = self.counts().into_iter().min()?;
        MoreRepetitions::for_less(now, found, power::scatter(&self.strata, noise)?, level, min_effect)
    }

    /// Returns the variation between experiments; none if measured in turn.
    pub fn apart(
        &self,
        metric: Metric,
        noise: [Option<Noise>; 2],
        level: f64,
        min_effect: f64,
    ) -> Option<CrossExperimentStat> {
        let Measured::Apart(apart) = &self.measured else { return None };
        let repetitions = self.counts().into_iter().min().unwrap_or(0);
        let scatter = if metric.is_share() { None } else { power::scatter(&self.strata, noise) };
        let interleaved = scatter.and_then(|scatter| power::detectable_with(repetitions, scatter, level, min_effect));
        Some(match apart {
            Ok(apart) => {
                let margin = apart.between.margin(level);
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

#[cfg(test)]
mod tests;
