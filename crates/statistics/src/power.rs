//! Minimum detectable effect: the smallest true difference that 80 % of comparisons like this one call a difference.
//!
//! A difference is called one if the deciding test rejects and the estimate reaches the minimum effect. How large it
//! must be in units of the scatter is simulated once with the test itself and kept in `factors`; nothing is simulated
//! at run time. The scatter is estimated robustly (`scatter`), together with that of past experiments, and
//! the table allows for the error of that estimate. For normal noise the power is 78 to 82 %; with heavy tails and
//! few repetitions it is 64 to 79 %, as the extremes decide, which a robust scatter does not show. Pure.

use std::iter;

use super::{
    Noise, Stratum,
    design::MIN_FOR_STRATA,
    effect::{logarithms, shift},
    rank_test::untied,
    scatter::{self, MIN_SCATTER},
};

mod factors;
mod factors_at_once;
#[cfg(test)]
mod simulate;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use simulate::normal;

/// Probability that a difference of the minimum detectable effect is found.
pub const POWER: f64 = 0.8;

/// Maximum number of repetitions that is considered.
pub const MAX_REPETITIONS: usize = 100;

/// When the runs of a repetition are measured, which decides what its comparison can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other: two repetitions make a stratum.
    InTurn,
    /// At the same time, as in a duet: each repetition is a stratum.
    AtOnce,
}

impl Order {
    /// Returns the order whose strata these are.
    pub fn of(strata: &[Stratum]) -> Self {
        let is_pair = |one: &Stratum| (one.base.len(), one.other.len()) == (1, 1);
        if strata.len() > 1 && strata.iter().all(is_pair) { Self::AtOnce } else { Self::InTurn }
    }
}

/// Scatter of the runs of both sides within strata, as logarithms: 0.02 is 2 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scatter {
    /// What the strata were.
    pub order: Order,
    /// The standard deviation.
    pub deviation: f64,
    /// Degrees of freedom of the estimate; infinite if the scatter is known.
    pub degrees: f64,
}

impl Scatter {
    /// Returns a scatter that is known without error.
    pub fn known(deviation: f64) -> Self {
        Self { order: Order::InTurn, deviation, degrees: f64::INFINITY }
    }
}

/// Returns the smallest difference found in 80 % of comparisons like this one at `level`: 0.02 is 2 %.
///
/// `past` is the noise of both cells. The result is never below `min_effect`. None if this many repetitions can find
/// nothing, a value has no logarithm, or the scatter is unknown; a scatter of zero counts as unknown.
pub fn detectable(strata: &[Stratum], past: [Option<Noise>; 2], level: f64, min_effect: f64) -> Option<f64> {
    (untied(strata) <= level).then_some(())?;
    at(blocks(strata), scatter(strata, past)?, level, min_effect)
}

/// Returns the minimum detectable effect of a planned comparison with `blocks` repetitions.
pub fn detectable_with(blocks: usize, scatter: Scatter, level: f64, min_effect: f64) -> Option<f64> {
    (least_p(blocks, scatter.order) <= level && scatter.deviation > MIN_SCATTER).then_some(())?;
    at(blocks, scatter, level, min_effect)
}

fn at(blocks: usize, scatter: Scatter, level: f64, min_effect: f64) -> Option<f64> {
    let factors = table::factors(blocks, scatter.order, level, scatter.degrees)?;
    Some(factors.detectable(scatter.deviation, min_effect.max(0.0).ln_1p()).exp_m1())
}

/// Returns the fewest repetitions that can reach `level` at all.
pub fn fewest(level: f64, order: Order) -> Option<usize> {
    (2..=MAX_REPETITIONS).find(|blocks| least_p(*blocks, order) <= level)
}

/// Returns the fewest repetitions that find `effect` (0.02 is 2 %) in 80 % of comparisons.
///
/// None if that takes more than [`MAX_REPETITIONS`], as always for an effect that is not above `min_effect`.
pub fn needed(effect: f64, scatter: Scatter, level: f64, min_effect: f64) -> Option<usize> {
    let is_enough =
        |blocks: usize| detectable_with(blocks, scatter, level, min_effect).is_some_and(|found| found <= effect);
    (fewest(level, scatter.order)?..=MAX_REPETITIONS).find(|blocks| is_enough(*blocks))
}

/// Returns the scatter within strata, without the difference of the sides and together with that of the past.
///
/// None without two runs that differ, now or in the past, or if a value has no logarithm.
pub fn scatter(strata: &[Stratum], past: [Option<Noise>; 2]) -> Option<Scatter> {
    let logs = logarithms(strata)?;
    let order = Order::of(strata);
    let (scale, degrees) = table::own_scatter(blocks(strata), order);
    let own = scatter::scatter(&within(&logs, shift(&logs)));
    let own = own.map(|deviation| Scatter { order, deviation: deviation * scale, degrees });
    let known: Vec<Scatter> = past.into_iter().flatten().filter_map(|noise| noise.within()).chain(own).collect();
    let degrees: f64 = known.iter().map(|one| one.degrees).sum();
    let squares: f64 = known.iter().map(|one| one.degrees * one.deviation.powi(2)).sum();
    let deviation = (squares / degrees).sqrt();
    (deviation > MIN_SCATTER).then_some(Scatter { order, deviation, degrees })
}

/// Returns the runs of each stratum, those of the other side lowered by `shift`.
fn within(logs: &[Stratum], shift: f64) -> Vec<Vec<f64>> {
    let of = |one: &Stratum| one.base.iter().copied().chain(one.other.iter().map(|value| value - shift)).collect();
    logs.iter().map(of).collect()
}

/// Returns the number of repetitions of regular strata that find about as much.
///
/// The variance of a difference is that of as many runs a side as the harmonic mean of both sides.
fn blocks(strata: &[Stratum]) -> usize {
    let harmonic = |one: &Stratum| {
        let (base, other) = (one.base.len() as f64, one.other.len() as f64);
        2.0 * base * other / (base + other).max(1.0)
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the number of runs")]
    let blocks = strata.iter().map(harmonic).sum::<f64>().round() as usize;
    blocks
}

/// Number of runs of the baseline and of the other side in a stratum.
type Shape = (usize, usize);

/// Returns the smallest p-value of a comparison with `blocks` blocks.
pub fn least_p(blocks: usize, order: Order) -> f64 {
    let of = |(base, other): Shape| Stratum { base: vec![0.0; base], other: vec![0.0; other] };
    untied(&shape_of(blocks, order).into_iter().map(of).collect::<Vec<_>>())
}

/// Returns the strata of a comparison with `blocks` complete blocks (see [`mod@super::design`]).
fn shape_of(blocks: usize, order: Order) -> Vec<Shape> {
    if order == Order::AtOnce {
        return vec![(1, 1); blocks];
    }
    if blocks < MIN_FOR_STRATA {
        return vec![(blocks, blocks)];
    }
    let last = (!blocks.is_multiple_of(2)).then_some((1, 1));
    iter::repeat_n((2, 2), blocks / 2).chain(last).collect()
}
