//! Minimum detectable effect: which difference a comparison could have found.
//!
//! It is that of the deciding test itself. The interval is computed for simulated runs without any difference, and a
//! difference is found if it exceeds the interval's distance from zero. The 80th percentile of the simulations, for
//! noise of one standard deviation, is multiplied by the scatter of the cells. The simulation is seeded, so the same
//! plan always has the same result.

use std::{
    collections::HashMap,
    f64::consts::TAU,
    sync::{Mutex, OnceLock},
};

use rand::{Rng, SeedableRng, rngs::StdRng};
use statrs::distribution::{ContinuousCDF, Normal};

use super::{
    Noise, Stratum,
    between::squares,
    design::FEWEST_FOR_STRATA,
    effect::{logarithms, lower_end, shift},
    rank_test::untied,
};

/// Probability that a difference of the minimum detectable effect is found.
pub const POWER: f64 = 0.8;

/// Maximum number of repetitions that is considered.
pub const MOST_REPETITIONS: usize = 100;

/// Efficiency of the rank test relative to Student's on normal noise (Lehmann 1975, section 2.4).
const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;

/// Scatter below this is rounding error.
const MIN_SCATTER: f64 = 1e-9;

/// Number of simulated comparisons.
const ROUNDS: usize = 120;

/// Maximum number of blocks that is simulated; above, the normal distribution is close enough.
const MAX_SIMULATED: usize = 24;

/// Returns the smallest difference found in 80 % of comparisons like this one at `level`: 0.02 is 2 %.
///
/// `past` is the noise of both cells. None if this many repetitions can find nothing, a value has no logarithm, or the
/// scatter is unknown; a scatter of zero counts as unknown.
pub fn detectable(strata: &[Stratum], past: [Option<Noise>; 2], level: f64) -> Option<f64> {
    let deviation = deviation(strata, past).filter(|deviation| *deviation > MIN_SCATTER)?;
    let shape: Vec<Shape> = strata.iter().map(|one| (one.base.len(), one.other.len())).collect();
    Some((factor(&shape, level)? * deviation).exp_m1())
}

/// Returns the minimum detectable effect of a planned comparison with `blocks` repetitions.
pub fn detectable_with(blocks: usize, deviation: f64, level: f64) -> Option<f64> {
    (deviation > MIN_SCATTER).then_some(())?;
    Some((factor(&shape_of(blocks), level)? * deviation).exp_m1())
}

/// Returns the fewest repetitions that can reach `level` at all.
pub fn fewest(level: f64) -> Option<usize> {
    (2..=MOST_REPETITIONS).find(|blocks| least_p(*blocks) <= level)
}

/// Returns the fewest repetitions that find `effect` (0.02 is 2 %) in 80 % of comparisons.
///
/// None if that takes more than [`MOST_REPETITIONS`].
pub fn needed(effect: f64, deviation: f64, level: f64) -> Option<usize> {
    let (mut low, mut high) = (fewest(level)?, MOST_REPETITIONS);
    let is_enough = |blocks: usize| detectable_with(blocks, deviation, level).is_some_and(|found| found <= effect);
    if !is_enough(high) {
        return None;
    }
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// Returns the pooled deviation of the logarithms within strata, without the difference of sides.
pub fn deviation(strata: &[Stratum], past: [Option<Noise>; 2]) -> Option<f64> {
    let logs = logarithms(strata)?;
    let shift = shift(&logs);
    let within = |stratum: &Stratum| {
        let values: Vec<f64> = stratum.base.iter().copied().chain(stratum.other.iter().map(|v| v - shift)).collect();
        (values.len(), squares(values.into_iter()))
    };
    let (runs, sum) = logs.iter().map(within).fold((0, 0.0), |(n, sum), (more, squares)| (n + more, sum + squares));
    let own = ((runs.saturating_sub(logs.len() + 1)) as f64, sum);
    let known = past.into_iter().flatten().filter_map(|noise| noise.squares());
    let (degrees, all) = known.fold(own, |(degrees, all), (more, squares)| (degrees + more, all + squares));
    (degrees >= 2.0).then(|| (all / degrees).sqrt())
}

/// Number of runs of the baseline and of the other side in a stratum.
type Shape = (usize, usize);

/// Returns the smallest p-value of a comparison with `blocks` blocks.
pub fn least_p(blocks: usize) -> f64 {
    let of = |(base, other): &Shape| Stratum { base: vec![0.0; *base], other: vec![0.0; *other] };
    untied(&shape_of(blocks).iter().map(of).collect::<Vec<_>>())
}

fn shape_of(blocks: usize) -> Vec<Shape> {
    if blocks < FEWEST_FOR_STRATA {
        return vec![(blocks, blocks)];
    }
    let mut shape = vec![(2, 2); blocks / 2];
    shape.extend((!blocks.is_multiple_of(2)).then_some((1, 1)));
    shape
}

type Known = Mutex<HashMap<(Vec<Shape>, u64), Option<f64>>>;

/// Returns the minimum detectable effect for noise of one standard deviation, from a cache.
fn factor(shape: &[Shape], level: f64) -> Option<f64> {
    static KNOWN: OnceLock<Known> = OnceLock::new();
    let known = KNOWN.get_or_init(Mutex::default);
    let rounded = three_digits(level);
    let key = (shape.to_vec(), rounded.to_bits());
    if let Some(found) = known.lock().ok().and_then(|known| known.get(&key).copied()) {
        return found;
    }
    let found = simulated(shape, rounded);
    if let Ok(mut known) = known.lock() {
        known.insert(key, found);
    }
    found
}

/// Rounds a level up to three digits for the cache. Up, as a level may be exactly the smallest p-value.
fn three_digits(level: f64) -> f64 {
    let scale = 10.0_f64.powf(level.max(1e-12).log10().floor() - 2.0);
    (level / scale).ceil() * scale
}

fn simulated(shape: &[Shape], level: f64) -> Option<f64> {
    let blocks: usize = shape.iter().map(|(base, other)| (*base).min(*other)).sum();
    let of = |(base, other): &Shape| Stratum { base: vec![0.0; *base], other: vec![0.0; *other] };
    if blocks == 0 || untied(&shape.iter().map(of).collect::<Vec<_>>()) > level {
        return None;
    }
    if blocks > MAX_SIMULATED {
        let normal = Normal::new(0.0, 1.0).ok()?;
        let quantiles = normal.inverse_cdf(1.0 - level / 2.0) + normal.inverse_cdf(POWER);
        return Some(quantiles * (2.0 / blocks as f64 / EFFICIENCY).sqrt());
    }
    let mut random = StdRng::seed_from_u64(blocks as u64);
    let mut found: Vec<f64> = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let mut values = |count: &usize| (0..*count).map(|_| normal(&mut random)).collect::<Vec<f64>>();
        let strata: Vec<Stratum> =
            shape.iter().map(|(base, other)| Stratum { base: values(base), other: values(other) }).collect();
        found.push(-lower_end(&strata, level)?);
    }
    found.sort_by(f64::total_cmp);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a short list")]
    let place = (ROUNDS as f64 * POWER).ceil() as usize;
    found.get(place.min(ROUNDS - 1)).copied()
}

/// Draws a standard normal number by the Box–Muller transform.
fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(base: &[f64], other: &[f64]) -> Vec<Stratum> {
        vec![Stratum { base: base.to_vec(), other: other.to_vec() }]
    }

    #[test]
    fn less_noise_and_more_repetitions_find_smaller_differences() {
        let noisy = [90.0, 100.0, 110.0, 95.0, 105.0];
        let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
        let of = |values: &[f64], level| detectable(&one(values, values), [None; 2], level).expect("a figure");
        assert!(of(&calm, 0.05) < of(&noisy, 0.05));
        assert!(of(&noisy, 0.05) < of(&noisy, 0.01));
        // Student's formula gives 1.65 %; the exact rank test with 5 and 5 needs a little more.
        assert!((0.015..0.022).contains(&of(&calm, 0.05)), "{}", of(&calm, 0.05));
        assert!(detectable_with(10, 0.02, 0.05) < detectable_with(6, 0.02, 0.05));
    }

    #[test]
    fn the_past_improves_the_estimate_of_the_scatter() {
        let past = Noise { experiments: 4, runs: 44, scatter: Some(0.00791), between: None };
        let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
        let wild = [90.0, 100.0, 111.0, 99.5, 100.5];
        let of = |values: &[f64], past| detectable(&one(values, values), [past; 2], 0.05);
        assert!(of(&wild, Some(past)) < of(&wild, None));
        assert!(of(&calm, Some(past)).is_some());
    }

    #[test]
    fn undetectable_and_unknown_effects_are_none() {
        let flat = [5.0; 5];
        assert_eq!(detectable(&one(&flat, &flat), [None; 2], 0.05), None, "zero scatter is unknown");
        assert_eq!(detectable(&one(&[1.0, 1.1, 1.2], &[1.0, 1.1, 1.2]), [None; 2], 0.05), None, "three find nothing");
        assert_eq!(detectable(&one(&[0.0, 1.0], &[1.0, 2.0]), [None; 2], 0.05), None);
        assert_eq!(detectable_with(10, 0.0, 0.05), None);
    }

    #[test]
    fn more_questions_need_more_repetitions() {
        assert_eq!([0.05, 0.04, 0.05 / 6.0, 0.04 / 6.0, 0.001, 1e-6].map(fewest), [4, 4, 5, 7, 9, 17].map(Some));
        assert_eq!(fewest(0.0), None);
    }

    #[test]
    fn the_needed_repetitions_find_the_requested_effect() {
        let blocks = needed(0.02, 0.02, 0.05).expect("some");
        assert!(detectable_with(blocks, 0.02, 0.05).expect("a figure") <= 0.02);
        assert!((14..=20).contains(&blocks), "{blocks}");
        assert_eq!(needed(0.0001, 0.1, 0.05), None);
    }
}
