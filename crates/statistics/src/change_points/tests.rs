//! Tests of change points.

use rand::Rng;

use super::*;

/// Standard normal, by Box and Muller's transform.
fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Points at levels, with log-normal noise.
fn noisy(random: &mut StdRng, levels: &[(usize, f64)], sigma: f64) -> Vec<f64> {
    let mut value = |level: f64| level * (sigma * normal(random)).exp();
    levels.iter().flat_map(|(count, level)| vec![*level; *count]).map(&mut value).collect()
}

#[test]
fn sums_are_those_of_the_formula() {
    let values = [3.0, 1.0, 2.0, 8.0, 9.0, 7.0, 8.5];
    let (at, q) = Scan::new(values.len()).best_split(&values).expect("a split");
    let (left, right) = values.split_at(3);
    assert_eq!(at, 3);
    let mean = |pairs: Vec<f64>| pairs.iter().sum::<f64>() / pairs.len() as f64;
    let cross = left.iter().flat_map(|x| right.iter().map(move |y| (x - y).abs())).collect();
    let within = |side: &[f64]| {
        let pair = |(place, x): (usize, &f64)| side[place + 1..].iter().map(move |y| (x - y).abs()).collect::<Vec<_>>();
        side.iter().enumerate().flat_map(pair).collect::<Vec<_>>()
    };
    let by_hand = 12.0 / 7.0 * (2.0 * mean(cross) - mean(within(left)) - mean(within(right)));
    assert!((q - by_hand).abs() < 1e-9, "{q} {by_hand}");
}

#[test]
fn changes_are_found_in_any_unit() {
    let mut random = StdRng::seed_from_u64(7);
    let values = noisy(&mut random, &[(20, 10_000.0), (12, 9_300.0), (25, 9_900.0)], 0.01);
    assert_eq!(change_points(&values), [20, 32]);
    assert_eq!(change_points(&values.iter().map(|value| value * 1e-6).collect::<Vec<_>>()), [20, 32]);
    assert_eq!(change_points(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()), [20, 32]);
    let reverted = noisy(&mut random, &[(12, 100.0), (20, 90.0), (12, 100.0)], 0.005);
    assert_eq!(change_points(&reverted), [12, 32]);
    // Neighbours that resemble each other: a sawtooth of ±0.4 %.
    let saw = |(place, level): (usize, f64)| level * (1.0 + 0.004 * ((place * 7919 % 13) as f64 - 6.0) / 6.0);
    let levels = [vec![100.0; 15], vec![90.0; 5], vec![100.0; 15]].concat();
    assert_eq!(change_points(&levels.into_iter().enumerate().map(saw).collect::<Vec<_>>()), [15, 20]);
}

#[test]
fn few_points_an_outlier_or_no_noise_are_no_change() {
    let step = vec![1.0, 1.0, 1.0, 9.0, 9.0];
    for values in [vec![], vec![1.0], step, vec![5.0; 40], vec![0.0; 40], vec![f64::NAN; 40]] {
        assert_eq!(change_points(&values), Vec::<usize>::new(), "{values:?}");
    }
    let mut random = StdRng::seed_from_u64(3);
    let mut values = noisy(&mut random, &[(30, 100.0)], 0.01);
    values[17] = 20.0;
    assert_eq!(change_points(&values), Vec::<usize>::new());
}

#[test]
fn ten_points_before_and_three_after_are_enough_for_a_clear_change() {
    let values = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 101.2, 98.9, 100.1, 90.0, 90.5, 89.5];
    assert_eq!(change_points(&values), [10]);
    assert_eq!(change_points(&values[..12]), Vec::<usize>::new(), "two are not");
}

#[test]
fn flat_series_rarely_have_a_change_and_steps_are_found() {
    const ROUNDS: usize = 100;
    let mut random = StdRng::seed_from_u64(1);
    let mut autocorrelated = |rho: f64, length: usize| {
        let mut value = normal(&mut random);
        let scale = (1.0 - rho * rho).sqrt();
        (0..length)
            .map(|_| {
                value = rho * value + scale * normal(&mut random);
                value
            })
            .collect::<Vec<_>>()
    };
    let mut alarms =
        |rho, length| (0..ROUNDS).filter(|_| !change_points(&autocorrelated(rho, length)).is_empty()).count();
    // 5 % plus two standard errors.
    let most = 0.05 * ROUNDS as f64 + 2.0 * (0.05 * 0.95 * ROUNDS as f64).sqrt();
    for (rho, length) in [(0.0, 12), (0.0, 40), (0.3, 12), (0.3, 40)] {
        let alarms = alarms(rho, length);
        assert!(alarms as f64 <= most, "{alarms} of {ROUNDS} with ρ = {rho}, {length} points");
    }
    let near = |points: Vec<usize>| points.iter().any(|at| at.abs_diff(20) <= 2);
    let mut random = StdRng::seed_from_u64(2);
    let step = |random: &mut StdRng| noisy(random, &[(20, 100.0), (10, 95.0)], 0.02);
    let found = (0..ROUNDS).filter(|_| near(change_points(&step(&mut random)))).count();
    assert!(found * 100 >= ROUNDS * 85, "{found} of {ROUNDS}");
}
