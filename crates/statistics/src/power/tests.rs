//! Tests of the minimum detectable effect: its power on fresh simulated comparisons, and what it does with odd data.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    simulate::{draw, normal},
    *,
};
use crate::{MIN_EFFECT, effect, noise, rank_test};

/// Draws noise of one standard deviation.
type Draw = fn(&mut StdRng) -> f64;

fn t3(random: &mut StdRng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
    normal(random) * (3.0 / squares).sqrt() / 3.0_f64.sqrt()
}

/// A tenth of the runs has five times the noise.
fn outliers(random: &mut StdRng) -> f64 {
    let factor = if random.random_range(0..10) == 0 { 5.0 } else { 1.0 };
    factor * normal(random)
}

/// A comparison to simulate.
#[derive(Clone, Copy)]
struct Case {
    blocks: usize,
    order: Order,
    noise: f64,
    level: f64,
    draw: Draw,
    /// Past experiments of five runs of each side.
    past: usize,
}

fn runs(case: Case, factor: f64, random: &mut StdRng) -> Vec<Stratum> {
    let mut strata = draw(case.blocks, case.order, || (case.noise * (case.draw)(random)).exp());
    for value in strata.iter_mut().flat_map(|one| &mut one.other) {
        *value *= factor;
    }
    strata
}

fn past(case: Case, random: &mut StdRng) -> Option<Noise> {
    let mut run = |_| (case.noise * (case.draw)(random)).exp();
    let experiments: Vec<Vec<f64>> = (0..case.past).map(|_| (0..5).map(&mut run).collect()).collect();
    noise(experiments.iter().map(Vec::as_slice))
}

/// Whether a comparison calls the difference one, as the product decides.
fn is_found(strata: &[Stratum], level: f64, min_effect: f64) -> bool {
    let logs = logarithms(strata).expect("values");
    let is_rejected = rank_test(&logs).is_some_and(|test| test.p <= level);
    // The interval at this level excludes zero whenever the test rejects.
    is_rejected && effect(strata, 0.0).is_some_and(|effect| effect.change() >= min_effect)
}

/// Returns the share of differences of the size of the minimum detectable effect that fresh comparisons find.
fn power(case: Case, rounds: usize, seed: u64) -> f64 {
    let mut random = StdRng::seed_from_u64(seed);
    let mut found = 0;
    for _ in 0..rounds {
        let known = [past(case, &mut random), past(case, &mut random)];
        let before = runs(case, 1.0, &mut random);
        let size = detectable(&before, known, case.level, MIN_EFFECT).expect("a figure");
        let fresh = runs(case, 1.0 + size, &mut random);
        found += usize::from(is_found(&fresh, case.level, MIN_EFFECT));
    }
    f64::from(u32::try_from(found).expect("few")) / rounds as f64
}

fn usual(blocks: usize) -> Case {
    Case { blocks, order: Order::InTurn, noise: 0.02, level: 0.05, draw: normal, past: 0 }
}

/// Asserts that a share of `rounds` is between two shares, within three standard errors.
fn assert_within(share: f64, [least, most]: [f64; 2], rounds: usize, what: &str) {
    let error = 3.0 * (POWER * (1.0 - POWER) / rounds as f64).sqrt();
    assert!((least - error..=most + error).contains(&share), "{what}: {share}");
}

const AS_CLAIMED: [f64; 2] = [0.78, 0.82];

/// With few runs the extremes decide, which a robust scatter does not show.
const HEAVY_TAILS: [f64; 2] = [0.72, 0.9];
const OUTLIERS: [f64; 2] = [0.7, 0.9];

#[test]
fn eighty_percent_of_such_differences_are_found() {
    const ROUNDS: usize = 400;
    for blocks in [4, 5, 6, 8, 12, 20] {
        for (noise, level) in [(0.01, 0.05), (0.02, 0.025), (0.05, 0.01), (0.01, 0.005)] {
            if least_p(blocks, Order::InTurn) <= level {
                let share = power(Case { noise, level, ..usual(blocks) }, ROUNDS, 1);
                assert_within(share, AS_CLAIMED, ROUNDS, &format!("{blocks}, {noise}, {level}"));
            }
        }
    }
}

#[test]
fn eighty_percent_are_found_in_duets() {
    const ROUNDS: usize = 400;
    for blocks in [6, 7, 8, 12, 20] {
        for (noise, level) in [(0.01, 0.05), (0.02, 0.025), (0.05, 0.01)] {
            if least_p(blocks, Order::AtOnce) <= level {
                let share = power(Case { noise, level, order: Order::AtOnce, ..usual(blocks) }, ROUNDS, 1);
                assert_within(share, AS_CLAIMED, ROUNDS, &format!("{blocks}, {noise}, {level}"));
            }
        }
    }
}

#[test]
fn the_past_makes_the_scatter_known_and_keeps_the_power() {
    const ROUNDS: usize = 400;
    for (blocks, past) in [(5, 2), (6, 2), (6, 20), (10, 5), (20, 20)] {
        for noise in [0.01, 0.02] {
            let share = power(Case { noise, past, ..usual(blocks) }, ROUNDS, 2);
            assert_within(share, AS_CLAIMED, ROUNDS, &format!("{blocks}, {past}, {noise}"));
        }
    }
}

#[test]
fn more_blocks_than_the_table_has_find_as_much() {
    const ROUNDS: usize = 200;
    for blocks in [30, 45] {
        assert_within(power(usual(blocks), ROUNDS, 3), AS_CLAIMED, ROUNDS, &blocks.to_string());
    }
}

#[test]
fn heavy_tails_and_outliers_cost_little_power() {
    const ROUNDS: usize = 400;
    for blocks in [5, 8, 12, 20] {
        assert_within(power(Case { draw: t3, ..usual(blocks) }, ROUNDS, 4), HEAVY_TAILS, ROUNDS, "t3");
        assert_within(power(Case { draw: outliers, ..usual(blocks) }, ROUNDS, 5), OUTLIERS, ROUNDS, "outliers");
    }
}

fn one(base: &[f64], other: &[f64]) -> Vec<Stratum> {
    vec![Stratum { base: base.to_vec(), other: other.to_vec() }]
}

/// Dropped blocks leave incomplete pairs; other strata of the same number of blocks find nearly the same.
#[test]
fn irregular_strata_find_as_much_as_regular_ones() {
    const ROUNDS: usize = 400;
    let shapes: [&[(usize, usize)]; 4] =
        [&[(1, 1), (2, 2), (2, 2), (1, 1), (2, 2)], &[(1, 1), (2, 2), (2, 2), (1, 1)], &[(8, 8)], &[(5, 7)]];
    for shape in shapes {
        let mut random = StdRng::seed_from_u64(6);
        let mut run = |factor: f64, counts: &[(usize, usize)]| -> Vec<Stratum> {
            let mut values = |count: usize, factor: f64| -> Vec<f64> {
                (0..count).map(|_| factor * (0.02 * normal(&mut random)).exp()).collect()
            };
            counts.iter().map(|(b, o)| Stratum { base: values(*b, 1.0), other: values(*o, factor) }).collect()
        };
        let found = (0..ROUNDS).filter(|_| {
            let size = detectable(&run(1.0, shape), [None; 2], 0.05, MIN_EFFECT).expect("a figure");
            is_found(&run(1.0 + size, shape), 0.05, MIN_EFFECT)
        });
        assert_within(found.count() as f64 / ROUNDS as f64, [0.76, 0.87], ROUNDS, &format!("{shape:?}"));
    }
}

#[test]
fn one_disturbed_run_changes_little() {
    for blocks in [4, 5, 6, 10, 20] {
        let mut factors: Vec<f64> = Vec::new();
        let mut random = StdRng::seed_from_u64(7);
        for place in 0..200 {
            let strata = runs(usual(blocks), 1.0, &mut random);
            let of = |strata: &[Stratum]| detectable(strata, [None; 2], 0.05, MIN_EFFECT).expect("a figure");
            let mut bad = strata.clone();
            bad[0].other[0] *= [100.0, 1e-6][place % 2];
            factors.push(of(&bad) / of(&strata));
        }
        factors.sort_by(f64::total_cmp);
        let (median, most) = (factors[factors.len() / 2], factors[factors.len() * 9 / 10]);
        assert!((1.0..1.65).contains(&median) && most < 2.6, "{blocks}: {median} {most}");
    }
}

#[test]
fn no_difference_below_the_minimum_effect_counts_as_found() {
    let calm: Vec<f64> = (0..20).map(|n| 100.0 + 0.01 * f64::from(n * 7 % 20)).collect();
    let strata: Vec<Stratum> = calm
        .chunks(2)
        .map(|pair| Stratum { base: pair.to_vec(), other: pair.iter().rev().copied().collect() })
        .collect();
    let at = |min_effect| detectable(&strata, [None; 2], 0.05, min_effect).expect("a figure");
    assert!(at(0.0) < 0.002 && at(0.01) > 0.01 && at(0.01) < 0.0105, "{} {}", at(0.0), at(0.01));
    let known = detectable_with(20, Scatter::known(0.004), 0.05, 0.01).expect("a figure");
    let error = 0.004 * (2.0 / 20.0 * std::f64::consts::PI / 3.0_f64).sqrt();
    assert!((known - 0.01 - 0.84 * error).abs() < 1e-4, "minimum effect + 0.84 standard errors: {known}");
}

#[test]
fn less_noise_and_more_repetitions_find_smaller_differences() {
    let noisy = [90.0, 100.0, 110.0, 95.0, 105.0];
    let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
    let of = |values: &[f64], level| detectable(&one(values, values), [None; 2], level, 0.0).expect("a figure");
    assert!(of(&calm, 0.05) < of(&noisy, 0.05));
    assert!(of(&noisy, 0.05) < of(&noisy, 0.01));
    assert!((0.015..0.025).contains(&of(&calm, 0.05)), "{}", of(&calm, 0.05));
    for level in [0.05, 0.01, 0.001, 1e-5, 1e-7] {
        let by_blocks: Vec<f64> =
            (4..=100).filter_map(|n| detectable_with(n, Scatter::known(0.02), level, 0.0)).collect();
        let mut steps = by_blocks.windows(2).filter(|pair| pair[1] > pair[0] * 1.03);
        assert_eq!(steps.next(), None, "{level}: {by_blocks:?}");
    }
}

#[test]
fn the_past_improves_the_estimate_of_the_scatter() {
    let past = Noise { experiments: 4, runs: 44, scatter: Some(0.00791), between: None };
    let calm = [99.0, 100.0, 101.0, 99.5, 100.5];
    let wild = [90.0, 100.0, 111.0, 99.5, 100.5];
    let of = |values: &[f64], past| detectable(&one(values, values), [past; 2], 0.05, 0.0);
    assert!(of(&wild, Some(past)) < of(&wild, None));
    assert!(of(&calm, Some(past)).is_some());
    let estimated = Scatter { deviation: 0.02, degrees: 6.0, ..Scatter::known(0.02) };
    let with = |scatter| detectable_with(5, scatter, 0.05, 0.0);
    assert!(with(Scatter::known(0.02)) < with(estimated), "a known scatter needs no allowance for its error");
    let flat = [5.0; 5];
    assert!(of(&flat, Some(past)).is_some(), "equal runs say less than the past");
}

#[test]
fn undetectable_and_unknown_effects_are_none() {
    let flat = [5.0; 5];
    let of = |strata: &[Stratum]| detectable(strata, [None; 2], 0.05, MIN_EFFECT);
    assert_eq!(of(&one(&flat, &flat)), None, "zero scatter is unknown");
    assert_eq!(of(&one(&[1.0, 1.1, 1.2], &[1.0, 1.1, 1.2])), None, "three find nothing");
    assert_eq!(of(&one(&[0.0, 1.0, 1.0, 1.1], &[1.0, 2.0, 2.1, 2.2])), None, "zero has no logarithm");
    assert_eq!(of(&[]), None);
    assert_eq!(detectable_with(10, Scatter::known(0.0), 0.05, MIN_EFFECT), None);
    assert_eq!(detectable_with(3, Scatter::known(0.1), 0.05, MIN_EFFECT), None);
}

#[test]
fn more_questions_need_more_repetitions() {
    let in_turn = |level| fewest(level, Order::InTurn);
    assert_eq!([0.05, 0.04, 0.05 / 6.0, 0.04 / 6.0, 0.001, 1e-6].map(in_turn), [4, 4, 5, 7, 9, 17].map(Some));
    assert_eq!(fewest(0.0, Order::InTurn), None);
}

#[test]
fn the_needed_repetitions_find_the_requested_effect() {
    let scatter = Scatter::known(0.02);
    let blocks = needed(0.02, scatter, 0.05, MIN_EFFECT).expect("some");
    assert!(detectable_with(blocks, scatter, 0.05, MIN_EFFECT).expect("a figure") <= 0.02);
    assert!((16..=22).contains(&blocks), "{blocks}");
    assert_eq!(needed(0.0001, Scatter::known(0.1), 0.05, 0.0), None);
    assert_eq!(needed(0.01, Scatter::known(0.001), 0.05, MIN_EFFECT), None, "the estimate falls short in half");
}
