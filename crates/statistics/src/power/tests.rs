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
    noise: f64,
    level: f64,
    draw: Draw,
    /// Past experiments of five runs of each side.
    past: usize,
}

fn runs(case: Case, factor: f64, random: &mut StdRng) -> Vec<Stratum> {
    let mut strata = draw(case.blocks, || (case.noise * (case.draw)(random)).exp());
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

#[test]
fn explore() {
    let rounds: usize = std::env::var("ROUNDS").map_or(2000, |r| r.parse().unwrap());
    for (name, draw) in [("normal", normal as Draw), ("t3", t3), ("outliers", outliers)] {
        for past in [0, 20] {
            println!("{name}, {past} past");
            for blocks in [4, 5, 6, 7, 8, 10, 14, 20, 30] {
                print!("n {blocks:2}");
                for level in [0.05, 0.025, 0.01, 0.005] {
                    if least_p(blocks) > level {
                        print!("     -     -     -");
                        continue;
                    }
                    for noise in [0.01, 0.02, 0.05] {
                        if blocks > 24 && level < 0.01 {
                            continue;
                        }
                        let p = power(
                            Case { blocks, noise, level, draw, past },
                            if blocks > 20 { rounds / 4 } else { rounds },
                            3,
                        );
                        print!(" {:5.1}", p * 100.0);
                    }
                    print!("|");
                }
                println!();
            }
        }
    }
}
