//! Tests of the correction.

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::*;

fn apart(pair: usize, is_primary: bool, p: f64) -> Test {
    Test { pair, places: Vec::new(), is_primary, evidence: Evidence::Apart(p) }
}

/// The places of two sides that were measured in the same blocks.
fn in_blocks(blocks: std::ops::RangeInclusive<u32>) -> Places {
    blocks.map(|block| [(); 2].map(|()| vec![("e".to_owned(), block)])).collect()
}

fn corrected(tests: &[Test]) -> Vec<f64> {
    correct(tests, ALPHA).iter().map(|question| question.corrected).collect()
}

fn near(found: &[f64], expected: &[f64]) -> bool {
    found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-9)
}

/// A pair of cells with `blocks` repetitions; each metric has a factor and noise of its own.
fn pair(number: usize, blocks: u32, factors: &[f64], noise: f64, random: &mut StdRng) -> Vec<Test> {
    let places = in_blocks(1..=blocks);
    let metric = |(place, factor): (usize, &f64)| {
        let mut side = |level: f64| -> Vec<f64> {
            (0..blocks).map(|_| level.ln() + noise * (random.random::<f64>() - 0.5)).collect()
        };
        let (base, other) = (side(1.0), side(*factor));
        let strata = if blocks < 6 {
            vec![Stratum { base, other }]
        } else {
            let both = base.chunks(2).zip(other.chunks(2));
            both.map(|(base, other)| Stratum { base: base.to_vec(), other: other.to_vec() }).collect()
        };
        let evidence = Evidence::in_turn(strata).expect("two sides");
        Test { pair: number, places: places.clone(), is_primary: place == 0, evidence }
    };
    factors.iter().enumerate().map(metric).collect()
}

#[test]
fn single_questions_share_the_error_rate_by_holm() {
    assert!(near(&corrected(&[apart(0, true, 0.02)]), &[0.02]));
    assert!(near(&corrected(&[apart(0, true, 0.02), apart(1, true, 0.04)]), &[0.04, 0.04]));
    assert!(near(&corrected(&[apart(0, true, 0.03), apart(1, true, 0.04)]), &[0.06, 0.08]));
    // Three others share a quarter: the primary metric has three quarters, the others the rest once it differs.
    let all = [apart(0, true, 0.03), apart(0, false, 0.02), apart(0, false, 0.2), apart(0, false, 0.3)];
    assert!(near(&corrected(&all)[..2], &[0.04, 0.06]), "{:?}", corrected(&all));
}

#[test]
fn a_question_is_rejected_if_and_only_if_its_p_value_is_at_most_its_level() {
    let mut random = StdRng::seed_from_u64(1);
    for round in 0..200 {
        let blocks = [4, 5, 6, 8, 11][round % 5];
        let mut tests = Vec::new();
        for number in 0..3 {
            let factors: Vec<f64> = (0..4).map(|_| [1.0, 1.0, 1.02, 1.5][random.random_range(0..4)]).collect();
            tests.extend(pair(number, blocks, &factors, 0.05, &mut random));
        }
        tests.push(apart(3, true, random.random::<f64>().powi(4)));
        for question in correct(&tests, ALPHA) {
            assert_eq!(question.is_rejected(), question.p <= question.level, "{question:?}");
            assert!(question.corrected >= question.p * (1.0 - 1e-9), "{question:?}");
        }
    }
}

/// The questions of 2 to 5 targets at 1 to 3 sizes, compared with each other or with the first.
#[test]
fn a_threefold_difference_is_decided_in_every_row_from_four_repetitions_on() {
    let mut random = StdRng::seed_from_u64(2);
    for (targets, sizes, blocks) in (2..=5).flat_map(|t| (1..=3).flat_map(move |s| (4..=10).map(move |n| (t, s, n)))) {
        for with_baseline in [false, true] {
            let pairs = if with_baseline { targets - 1 } else { targets * (targets - 1) / 2 };
            let mut tests = Vec::new();
            for number in 0..pairs * sizes {
                tests.extend(pair(number, blocks, &[3.0, 1.0 / 3.0, 3.0, 3.0, 3.0], 0.005, &mut random));
            }
            let questions = correct(&tests, ALPHA);
            let undecided = questions.iter().filter(|question| !question.is_rejected()).count();
            assert_eq!(undecided, 0, "{targets} targets, {sizes} sizes, {blocks} repetitions, {with_baseline}");
        }
    }
}

/// Only memory differs: it has to outweigh the primary metric, which does not.
#[test]
fn a_difference_in_one_other_metric_is_found_with_the_needed_repetitions() {
    let mut random = StdRng::seed_from_u64(3);
    for pairs in 1..=4 {
        let count = Count { pairs, questions: 5 * pairs, metrics: 5 };
        let blocks = u32::try_from(
            crate::power::fewest(count.deciding_level(ALPHA), crate::power::Order::InTurn).expect("some"),
        )
        .expect("few");
        for round in 0..10 {
            let mut tests = Vec::new();
            for number in 0..pairs {
                let memory = if number == 0 { 3.0 } else { 1.0 };
                tests.extend(pair(number, blocks, &[1.0, 1.0, 1.0, 1.0, memory], 0.005, &mut random));
            }
            let question = correct(&tests, ALPHA)[4];
            assert!(question.can_be_answered && question.is_rejected(), "{pairs}, {blocks}, {round}: {question:?}");
        }
    }
}

#[test]
fn three_repetitions_and_unanswerable_questions_are_named() {
    let mut random = StdRng::seed_from_u64(4);
    let questions = correct(&pair(0, 3, &[3.0, 1.0], 0.01, &mut random), ALPHA);
    assert!(questions.iter().all(|question| !question.can_be_answered && !question.is_rejected()), "{questions:?}");
    let flat = |pair| Test { pair, places: Vec::new(), is_primary: true, evidence: Evidence::Flat(0.001) };
    let tests = [flat(0), apart(1, true, 0.02), flat(2)];
    let questions = correct(&tests, ALPHA);
    assert!((questions[1].corrected - 0.02).abs() < 1e-12);
    assert!(questions.iter().all(|question| question.can_be_answered), "equal values are an answer");
    assert_eq!(correct(&[], ALPHA), []);
    assert_eq!(count(&tests), Count { pairs: 1, questions: 1, metrics: 1 });
}

#[test]
fn repeated_looks_raise_the_corrected_p_value() {
    assert!(near(&[correct(&[apart(0, true, 0.02)], ALPHA / 3.0)[0].corrected], &[0.06]));
}

/// Equal programs: a page names any difference in at most 5 % of cases, of three pairs that share a baseline as well.
#[test]
fn equal_cells_rarely_differ() {
    const ROUNDS: usize = 400;
    let mut random = StdRng::seed_from_u64(5);
    for (blocks, cells) in [(5, 2), (5, 4), (6, 4), (8, 3)] {
        let mut false_alarms = 0;
        for _ in 0..ROUNDS {
            let tests = shared_baseline(blocks, cells, &mut random);
            false_alarms += usize::from(correct(&tests, ALPHA).iter().any(Question::is_rejected));
        }
        let share = false_alarms as f64 / ROUNDS as f64;
        // Three standard errors of 5 % are 3.3 points.
        assert!(share <= 0.083, "{blocks} blocks, {cells} cells: {share}");
    }
}

/// All pairs of cells with five metrics, of which two are related.
fn shared_baseline(blocks: usize, cells: usize, random: &mut StdRng) -> Vec<Test> {
    let places = in_blocks(1..=5);
    let mut draw = || (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
    let values: Vec<Vec<[f64; 5]>> = (0..cells)
        .map(|_| {
            (0..blocks)
                .map(|_| {
                    let one = draw();
                    [one, one + 0.3 * draw(), draw(), draw(), draw()]
                })
                .collect()
        })
        .collect();
    let mut tests = Vec::new();
    for (one, other) in (0..cells).flat_map(|one| (one + 1..cells).map(move |other| (one, other))) {
        for metric in 0..5 {
            let side = |cell: usize| values[cell].iter().map(|run| run[metric]).collect::<Vec<f64>>();
            let (base, other_side) = (side(one), side(other));
            let strata = if blocks < 6 {
                vec![Stratum { base, other: other_side }]
            } else {
                let both = base.chunks(2).zip(other_side.chunks(2));
                both.map(|(base, other)| Stratum { base: base.to_vec(), other: other.to_vec() }).collect()
            };
            let evidence = Evidence::in_turn(strata).expect("two sides");
            tests.push(Test { pair: one * cells + other, places: places.clone(), is_primary: metric == 0, evidence });
        }
    }
    tests
}
