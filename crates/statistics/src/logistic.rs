//! Where the chance of success falls below one half: a logistic curve through yes/no outcomes, with an interval.
//!
//! Outcomes at levels x (logarithms of rates) follow λ + (1 − 2λ) / (1 + exp((x − m) / s)): success is likely far below
//! the threshold m and unlikely far above it. The lapse λ is the chance that something else decides, such as a
//! disturbance that nobody noticed. Without it one odd outcome far away would flatten the whole curve (Wichmann & Hill
//! 2001, "The psychometric function: I", Perception & Psychophysics 63).
//!
//! Maximum likelihood has no finite slope if the outcomes separate perfectly, which is common after a search. So the
//! prior is weak but proper: log s is uniform between [`Prior::scales`], m is uniform in the range. Estimate and
//! interval are quantiles of the posterior distribution of m, averaged over s. Searches that choose their levels by
//! earlier outcomes, and stop by the width of the interval, do not bias a posterior; the tests of `experiments::knee`
//! simulate how often the interval holds the truth.

use super::CONFIDENCE;

/// Chance that something else than the level decides an outcome, on each side.
pub const LAPSE: f64 = 0.05;

/// Values of m at which the posterior is computed, on coarse grids that find the likely levels and on the last.
const COARSE: usize = 60;
const FINE: usize = 120;

/// Values of s at which it is computed.
const SCALES: usize = 10;

/// Levels less likely than this share of the likeliest are left out of the next, finer grid.
const NEGLIGIBLE: f64 = 1e-5;

/// Outcomes that disagree with the curve count from this p-value on, for each side.
const CONTRADICTED: f64 = 0.025;

/// Outcomes at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcomes {
    /// The level, such as the logarithm of a rate.
    pub level: f64,
    /// Number of successes.
    pub held: usize,
    /// Number of failures.
    pub missed: usize,
}

/// What is assumed before any outcome is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    /// Least and greatest threshold.
    pub range: [f64; 2],
    /// Least and greatest scale s. The standard deviation of the threshold from run to run is 1.7 times that.
    pub scales: [f64; 2],
}

/// The threshold and the curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The level at which half of the outcomes are successes: the median of the posterior distribution.
    pub estimate: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Levels one standard deviation below and above the estimate, where further outcomes say most.
    pub informative: [f64; 2],
    /// The median of the scale.
    pub scale: f64,
}

/// Outcomes on the wrong sides of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contradiction {
    /// Failures below the interval, and the number of outcomes there.
    pub missed_below: (usize, usize),
    /// Successes above it, and the number of outcomes there.
    pub held_above: (usize, usize),
}

/// Estimates the threshold. None if range or scales are not positive intervals, or a level is not finite.
pub fn threshold(outcomes: &[Outcomes], prior: &Prior) -> Option<Threshold> {
    let is_interval = |[low, high]: [f64; 2]| low.is_finite() && high.is_finite() && low < high;
    let is_valid = is_interval(prior.range) && is_interval(prior.scales) && prior.scales[0] > 0.0;
    if !is_valid || outcomes.iter().any(|one| !one.level.is_finite()) {
        return None;
    }
    let scales: Vec<f64> = {
        let [low, high] = prior.scales.map(f64::ln);
        midpoints([low, high], SCALES).into_iter().map(f64::exp).collect()
    };
    let mut range = prior.range;
    for _ in 0..2 {
        range = likely(&Posterior::new(outcomes, range, COARSE, &scales), prior.range);
    }
    let Posterior { levels, by_level, by_scale } = Posterior::new(outcomes, range, FINE, &scales);
    let step = (range[1] - range[0]) / FINE as f64;
    let at = |share: f64| {
        let (place, part) = quantile(&by_level, share);
        levels[place] + (part - 0.5) * step
    };
    let tail = (1.0 - CONFIDENCE) / 2.0;
    Some(Threshold {
        estimate: at(0.5),
        low: at(tail),
        high: at(1.0 - tail),
        informative: [at(0.16), at(0.84)],
        scale: scales[quantile(&by_scale, 0.5).0],
    })
}

/// Returns the outcomes outside the interval if they are more than the curve explains.
pub fn contradiction(outcomes: &[Outcomes], threshold: &Threshold) -> Option<Contradiction> {
    let side = |is_outside: &dyn Fn(f64) -> bool, is_below: bool| {
        let (mut wrong, mut all, mut expected) = (0, 0, 0.0);
        for Outcomes { level, held, missed } in outcomes.iter().filter(|one| is_outside(one.level)) {
            let chance = chance(*level, threshold.estimate, threshold.scale);
            wrong += if is_below { missed } else { held };
            all += held + missed;
            expected += (held + missed) as f64 * if is_below { 1.0 - chance } else { chance };
        }
        let is_odd = all > 0 && tail(wrong, all, expected / all as f64) < CONTRADICTED;
        ((wrong, all), is_odd)
    };
    let (missed_below, too_many_missed) = side(&|level| level < threshold.low, true);
    let (held_above, too_many_held) = side(&|level| level > threshold.high, false);
    (too_many_missed || too_many_held).then_some(Contradiction { missed_below, held_above })
}

/// The chance of success at a level.
fn chance(level: f64, threshold: f64, scale: f64) -> f64 {
    LAPSE + (1.0 - 2.0 * LAPSE) / (1.0 + ((level - threshold) / scale).exp())
}

/// The chance of at least this many of all, each with this chance.
fn tail(least: usize, all: usize, chance: f64) -> f64 {
    (least..=all)
        .map(|count| super::rank_sum::choose(all, count) * power(chance, count) * power(1.0 - chance, all - count))
        .sum()
}

fn power(base: f64, exponent: usize) -> f64 {
    base.powf(exponent as f64)
}

/// The posterior distribution on a grid, not normalised.
struct Posterior {
    levels: Vec<f64>,
    by_level: Vec<f64>,
    by_scale: Vec<f64>,
}

impl Posterior {
    fn new(outcomes: &[Outcomes], range: [f64; 2], count: usize, scales: &[f64]) -> Self {
        let levels = midpoints(range, count);
        let log_likelihood = |level: f64, scale: f64| -> f64 {
            let of = |one: &Outcomes| {
                let chance = chance(one.level, level, scale);
                one.held as f64 * chance.ln() + one.missed as f64 * (1.0 - chance).ln()
            };
            outcomes.iter().map(of).sum()
        };
        let logs: Vec<Vec<f64>> =
            levels.iter().map(|level| scales.iter().map(|scale| log_likelihood(*level, *scale)).collect()).collect();
        let greatest = logs.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut by_level, mut by_scale) = (vec![0.0; levels.len()], vec![0.0; scales.len()]);
        for (level, logs) in logs.iter().enumerate() {
            for (scale, log) in logs.iter().enumerate() {
                let weight = (log - greatest).exp();
                by_level[level] += weight;
                by_scale[scale] += weight;
            }
        }
        Self { levels, by_level, by_scale }
    }
}

/// Returns the range of levels that are not negligible, with one step on each side.
fn likely(posterior: &Posterior, limits: [f64; 2]) -> [f64; 2] {
    let Posterior { levels, by_level, .. } = posterior;
    let least = NEGLIGIBLE * by_level.iter().copied().fold(0.0, f64::max);
    let is_likely = |weight: &f64| *weight > least;
    let start = by_level.iter().position(is_likely).unwrap_or(0);
    let end = by_level.iter().rposition(is_likely).unwrap_or(levels.len() - 1);
    let step = levels[1] - levels[0];
    [(levels[start] - step).max(limits[0]), (levels[end] + step).min(limits[1])]
}

/// Returns the middles of equal parts of a range.
fn midpoints([low, high]: [f64; 2], count: usize) -> Vec<f64> {
    (0..count).map(|place| low + (high - low) * (place as f64 + 0.5) / count as f64).collect()
}

/// Returns the part in which this share of the weights is reached, and how far into it.
fn quantile(weights: &[f64], share: f64) -> (usize, f64) {
    let mut left = share * weights.iter().sum::<f64>();
    for (place, weight) in weights.iter().enumerate() {
        if left <= *weight && *weight > 0.0 {
            return (place, left / weight);
        }
        left -= weight;
    }
    (weights.len() - 1, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(all: &[(f64, usize, usize)]) -> Vec<Outcomes> {
        all.iter().map(|(rate, held, missed)| Outcomes { level: rate.ln(), held: *held, missed: *missed }).collect()
    }

    fn prior() -> Prior {
        Prior { range: [1_000.0_f64.ln(), 20_000.0_f64.ln()], scales: [0.003, 0.3] }
    }

    fn rates(all: &[(f64, usize, usize)]) -> [f64; 3] {
        let Threshold { estimate, low, high, .. } = threshold(&outcomes(all), &prior()).expect("a threshold");
        [estimate, low, high].map(f64::exp)
    }

    /// Outcomes that separate, that overlap, and that contradict each other.
    const SEPARATED: &[(f64, usize, usize)] =
        &[(1_000.0, 1, 0), (4_470.0, 1, 0), (4_700.0, 3, 0), (4_900.0, 0, 3), (5_200.0, 0, 1), (20_000.0, 0, 1)];
    const OVERLAPPING: &[(f64, usize, usize)] =
        &[(1_000.0, 1, 0), (4_200.0, 4, 1), (4_500.0, 5, 3), (4_800.0, 3, 5), (5_200.0, 1, 4), (20_000.0, 0, 1)];
    const ODD: &[(f64, usize, usize)] = &[(1_000.0, 3, 3), (4_700.0, 5, 0), (4_900.0, 0, 5), (20_000.0, 0, 1)];

    /// Median and 95 % interval of each.
    const SCIPY: [[f64; 3]; 3] =
        [[4_799.3, 4_323.4, 5_336.5], [4_653.6, 4_035.7, 5_374.4], [4_798.8, 4_647.4, 4_936.2]];

    /// The quantiles that `SciPy`'s adaptive quadrature (`integrate.quad` over the scale, `cumulative_simpson` over the
    /// threshold) finds for the same likelihood and prior.
    #[test]
    fn estimates_and_intervals_agree_with_numerical_integration() {
        for (all, expected) in [(SEPARATED, SCIPY[0]), (OVERLAPPING, SCIPY[1]), (ODD, SCIPY[2])] {
            for (found, expected) in rates(all).into_iter().zip(expected) {
                assert!((found / expected - 1.0).abs() < 0.005, "{all:?}: {found} instead of {expected}");
            }
        }
    }

    /// Outcomes with exactly the chances of a curve lead back to it.
    #[test]
    fn many_outcomes_determine_the_threshold_whatever_the_prior() {
        // The chances of the curve at threshold 5,000 and scale 0.05, times 1,000: 0.05 + 0.9 / (1 + exp z).
        let held = [
            (-3.0, 907),
            (-2.0, 843),
            (-1.0, 708),
            (-0.5, 610),
            (0.0, 500),
            (0.5, 390),
            (1.0, 292),
            (2.0, 157),
            (3.0, 93),
        ];
        let level = |z: f64| 5_000.0_f64.ln() + 0.05 * z;
        let all = held.map(|(z, held)| Outcomes { level: level(z), held, missed: 1_000 - held });
        let wide = threshold(&all, &prior()).expect("a threshold");
        let narrow = threshold(&all, &Prior { scales: [0.01, 0.1], ..prior() }).expect("a threshold");
        for found in [wide, narrow] {
            assert!((found.estimate.exp() - 5_000.0).abs() < 5.0, "{found:?}");
            assert!((found.scale / 0.05).ln().abs() < 0.2, "{found:?}");
        }
    }

    #[test]
    fn one_odd_outcome_far_away_does_not_flatten_the_curve() {
        let odd = [SEPARATED, &[(1_500.0, 0, 1)]].concat();
        let ([_, low, high], [_, odd_low, odd_high]) = (rates(SEPARATED), rates(&odd));
        assert!(odd_high / odd_low < 1.1 * high / low, "{odd_low} to {odd_high}");
    }

    #[test]
    fn outcomes_on_the_wrong_side_contradict_the_curve_if_they_are_many() {
        let found = |all: &[(f64, usize, usize)]| {
            let all = outcomes(all);
            contradiction(&all, &threshold(&all, &prior()).expect("a threshold"))
        };
        assert_eq!(found(SEPARATED), None);
        assert_eq!(found(OVERLAPPING), None);
        let missed = found(ODD).expect("half of the outcomes at 1,000");
        assert_eq!((missed.missed_below, missed.held_above.0), ((3, 6), 0));
        let above = [SEPARATED, &[(5_000.0, 0, 9), (9_000.0, 4, 0)]].concat();
        assert_eq!(found(&above).map(|found| found.held_above.0), Some(4));
    }

    #[test]
    fn invalid_input_has_no_threshold() {
        assert_eq!(threshold(&[], &Prior { range: [2.0, 1.0], ..prior() }), None);
        assert_eq!(threshold(&[], &Prior { scales: [0.0, 1.0], ..prior() }), None);
        assert_eq!(threshold(&outcomes(&[(0.0, 1, 0)]), &prior()), None);
        let unknown = threshold(&[], &prior()).expect("the middle of the range");
        assert!((unknown.estimate - f64::midpoint(prior().range[0], prior().range[1])).abs() < 1e-6, "{unknown:?}");
    }
}
