//! Tests of the rank test.

use rand::{SeedableRng, rngs::StdRng};

use super::*;
use crate::{Design, Observation, design, power::normal};

fn one_stratum(base: &[f64], other: &[f64]) -> Vec<Stratum> {
    vec![Stratum { base: base.to_vec(), other: other.to_vec() }]
}

fn p(base: &[f64], other: &[f64]) -> f64 {
    rank_test(&one_stratum(base, other)).expect("two sides").p
}

/// The p-values of R's `wilcox.test(…, exact = TRUE)`.
#[test]
fn one_stratum_is_the_rank_sum_test() {
    let apart = |n: u32| {
        let one: Vec<f64> = (1..=n).map(f64::from).collect();
        let other: Vec<f64> = (n + 1..=2 * n).map(f64::from).collect();
        p(&one, &other)
    };
    for (n, ways) in [(3, 20.0), (4, 70.0), (5, 252.0), (10, 184_756.0)] {
        assert!((apart(n) - 2.0 / ways).abs() < 1e-12, "{n}: {}", apart(n));
    }
    // U = 4 of 25: 12 of 252 orders are as extreme on either side.
    let one = [1.0, 2.0, 3.0, 6.0, 7.0];
    let other = [4.0, 5.0, 8.0, 9.0, 10.0];
    assert!((p(&one, &other) - 24.0 / 252.0).abs() < 1e-12, "{}", p(&one, &other));
    assert!((p(&other, &one) - p(&one, &other)).abs() < 1e-12, "sides can be exchanged");
    assert!((p(&one, &[4.0]) - 1.0).abs() < 1e-12, "sides of different size");
}

/// Two strata of four with clearly different levels: by hand, 36 assignments, of which two separate completely.
#[test]
fn levels_of_strata_do_not_hide_a_difference() {
    let strata = [
        Stratum { base: vec![100.0, 101.0], other: vec![110.0, 112.0] },
        Stratum { base: vec![200.0, 203.0], other: vec![213.0, 215.0] },
        Stratum { base: vec![50.0], other: vec![61.0] },
    ];
    let test = rank_test(&strata).expect("two sides");
    assert!((test.p - 2.0 / 72.0).abs() < 1e-12, "{test:?}");
    assert!((test.untied_p - 2.0 / 72.0).abs() < 1e-12, "{test:?}");
    let merged = p(&[100.0, 101.0, 200.0, 203.0, 50.0], &[110.0, 112.0, 213.0, 215.0, 61.0]);
    assert!(merged > 0.3, "the rank-sum test finds nothing: {merged}");
    let shifts = Shifts::new(&strata);
    assert!(shifts.p_at(11.0) > 0.3 && shifts.excess_at(11.0).abs() < shifts.excess_at(0.0).abs());
}

#[test]
fn equal_values_never_differ() {
    for count in [1, 5, 50] {
        let flat = rank_test(&one_stratum(&vec![0.0; count], &vec![0.0; count])).expect("two sides");
        assert!(flat.is_flat && flat.p > 0.999, "{flat:?}");
    }
    assert_eq!(rank_test(&one_stratum(&[], &[1.0])), None);
    assert_eq!(rank_test(&[]), None);
    let tied = rank_test(&one_stratum(&[0.0, 0.0, 0.0, 0.0, 1.0], &[0.0; 5])).expect("two sides");
    assert!((tied.p - 1.0).abs() < 1e-12, "a single different value can be on either side: {tied:?}");
}

#[test]
fn the_normal_approximation_agrees_with_counting() {
    let side = |n: u32, shift: f64| (0..n).map(|k| f64::from(k * 7 % 30) + shift).collect::<Vec<f64>>();
    let strata = one_stratum(&side(20, 0.0), &side(20, 4.5));
    let ranked = Ranked::new(&strata, 0.0).expect("ranks");
    let (counted, formula) = (Reference::new(&ranked).p(&ranked), Reference::Normal.p(&ranked));
    assert!((counted - formula).abs() < 0.003, "{counted} and {formula}");
    let pairs: Vec<Stratum> = (0..20)
        .map(|n| {
            let at = |k: u32| f64::from((n * 4 + k) * 7919 % 101);
            Stratum { base: vec![at(0), at(1)], other: vec![at(2) + 9.0, at(3) + 9.0] }
        })
        .collect();
    let ranked = Ranked::new(&pairs, 0.0).expect("ranks");
    let (counted, formula) = (Reference::new(&ranked).p(&ranked), Reference::Normal.p(&ranked));
    assert!((counted - formula).abs() < 0.005, "{counted} and {formula}");
}

/// Restarts scatter, drift and have neighbours of four restarts: what both targets of a duet share changes nothing.
#[test]
fn equal_targets_of_duets_are_called_different_in_five_percent_at_most() {
    const ROUNDS: u32 = 2_000;
    let mut random = StdRng::seed_from_u64(8);
    for restarts in [6_u32, 8, 12] {
        let mut found = 0;
        for _ in 0..ROUNDS {
            let side = |random: &mut StdRng, shared: &[f64]| -> Vec<Observation<'static>> {
                let one = |(block, shared): (u32, &f64)| Observation {
                    experiment: Some("e"),
                    block,
                    agent: None,
                    interleaved: true,
                    paired: true,
                    at_ms: None,
                    value: shared + 0.01 * normal(random),
                };
                (1..).zip(shared).map(one).collect()
            };
            let level = |restart: u32| f64::from(restart) * 0.02 + if restart % 8 < 4 { 0.3 } else { 0.0 };
            let shared: Vec<f64> = (0..restarts).map(|restart| level(restart) + 0.09 * normal(&mut random)).collect();
            let (base, other) = (side(&mut random, &shared), side(&mut random, &shared));
            let Design::InTurn { strata, .. } = design(&base, &other) else { panic!("apart") };
            found += u32::from(rank_test(&strata).expect("a test").p <= 0.05);
        }
        let share = f64::from(found) / f64::from(ROUNDS);
        let error = 3.0 * (0.05 * 0.95 / f64::from(ROUNDS)).sqrt();
        assert!(share <= 0.05 + error && share > 0.02, "{restarts}: {share}");
    }
}
