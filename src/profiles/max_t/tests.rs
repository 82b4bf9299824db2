//! The test against direct computation from its definition.

use proptest::prelude::*;

use super::*;
use crate::profiles::mean::mean;

fn sides() -> Sides {
    Sides { baseline: 4, candidate: 4 }
}

fn test(questions: &[Vec<f64>], sides: Sides) -> MaxT {
    MaxT::new(questions, Assignments::new(sides))
}

/// The statistic of one question, from its definition.
fn statistic(values: &[f64], runs: &[usize], s0: f64) -> (f64, f64) {
    let side = |is_candidate: bool| -> Vec<f64> {
        let on_side = values.iter().enumerate().filter(|(run, _)| runs.contains(run) == is_candidate);
        on_side.map(|(_, value)| *value).collect()
    };
    let (one, other) = (side(false), side(true));
    let squares = |values: &[f64]| values.iter().map(|value| (value - mean(values)).powi(2)).sum::<f64>();
    let pooled = (squares(&one) + squares(&other)) / (values.len() - 2) as f64;
    let error = (pooled * (1.0 / one.len() as f64 + 1.0 / other.len() as f64)).sqrt();
    ((mean(&other) - mean(&one)).abs() / (error + s0), error)
}

/// Unadjusted-by-sorting p-values of each step, from the definition of step-down max-T.
fn by_definition(questions: &[Vec<f64>], assignments: &Assignments) -> Vec<f64> {
    let errors = |runs: &[usize]| -> f64 {
        let mut errors: Vec<f64> = questions.iter().map(|values| statistic(values, runs, 0.0).1).collect();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    };
    let s0 = assignments.iter().map(errors).fold(f64::INFINITY, f64::min);
    let all: Vec<Vec<f64>> =
        assignments.iter().map(|runs| questions.iter().map(|values| statistic(values, runs, s0).0).collect()).collect();
    let observed = &all[0];
    let step = |question: usize| {
        let rest: Vec<usize> = (0..questions.len()).filter(|other| observed[*other] <= observed[question]).collect();
        let largest = |one: &Vec<f64>| rest.iter().map(|other| one[*other]).fold(0.0, f64::max);
        all.iter().filter(|one| largest(one) >= observed[question] * (1.0 - 1e-9)).count() as f64 / all.len() as f64
    };
    let larger = |question: usize| (0..questions.len()).filter(move |other| observed[*other] >= observed[question]);
    (0..questions.len()).map(|question| larger(question).map(step).fold(0.0, f64::max)).collect()
}

#[test]
fn one_question_is_the_plain_permutation_test() {
    let apart = vec![1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0];
    assert!((test(std::slice::from_ref(&apart), sides()).p(0) - 2.0 / 70.0).abs() < 1e-12);
    // Exchange 4 and 11: four of 70 assignments are as far apart.
    let nearly = vec![1.0, 2.0, 3.0, 11.0, 4.0, 12.0, 13.0, 14.0];
    assert!((test(&[nearly], sides()).p(0) - 4.0 / 70.0).abs() < 1e-12);
    let three = test(&[vec![1.0, 2.0, 3.0, 11.0, 12.0, 13.0]], Sides { baseline: 3, candidate: 3 });
    assert!((three.p(0) - 0.1).abs() < 1e-12);
    assert_eq!(three.intervals(&[0]), [None], "three repetitions bound nothing");
}

#[test]
fn more_related_questions_cost_nothing() {
    let apart = [1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0];
    let family: Vec<Vec<f64>> = (1..=200).map(|factor| apart.iter().map(|x| x * f64::from(factor)).collect()).collect();
    let test = test(&family, sides());
    assert!((0..200).all(|question| (test.p(question) - 2.0 / 70.0).abs() < 1e-12));
}

#[test]
fn a_family_without_questions_or_scatter_is_fine() {
    assert_eq!(test(&[], sides()).intervals(&[]), []);
    let step = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0];
    let test = test(&[vec![0.1; 8], step.to_vec()], sides());
    assert!((test.p(0) - 1.0).abs() < 1e-12 && (test.p(1) - 2.0 / 70.0).abs() < 1e-12);
    let intervals: Vec<Interval> = test.intervals(&[0, 1]).into_iter().flatten().collect();
    assert!(intervals[0].contains(0.0) && !intervals[1].contains(0.0) && intervals[1].contains(1.0), "{intervals:?}");
}

#[test]
fn ends_of_intervals_are_where_the_test_begins_to_reject() {
    let question = vec![3.0, 3.3, 3.1, 2.9, 4.6, 4.1, 4.4, 4.5];
    let p = |shift: f64| {
        let shifted = question.iter().enumerate().map(|(run, value)| if run < 4 { *value } else { value - shift });
        test(&[shifted.collect()], sides()).p(0)
    };
    let interval = test(std::slice::from_ref(&question), sides()).intervals(&[0])[0].expect("bounded");
    assert!(p(interval.low + 1e-6) > ALPHA && p(interval.low - 1e-6) <= ALPHA, "{interval:?}");
    assert!(p(interval.high - 1e-6) > ALPHA && p(interval.high + 1e-6) <= ALPHA, "{interval:?}");
}

/// Families of a few questions with values that often tie.
fn families() -> impl Strategy<Value = (Vec<Vec<f64>>, Sides)> {
    let value = prop_oneof![(0..6_i32).prop_map(f64::from), 0.0..6.0_f64];
    (3..5_usize, 3..6_usize, 1..7_usize).prop_flat_map(move |(baseline, candidate, count)| {
        let question = prop::collection::vec(value.clone(), baseline + candidate);
        let shifted = (question, -3.0..6.0_f64).prop_map(move |(mut values, shift)| {
            values[baseline..].iter_mut().for_each(|value| *value += shift);
            values
        });
        (prop::collection::vec(shifted, count), Just(Sides { baseline, candidate }))
    })
}

proptest! {
    #[test]
    fn p_values_are_those_of_the_definition((questions, sides) in families()) {
        let test = test(&questions, sides);
        let expected = by_definition(&questions, test.assignments());
        for (question, expected) in expected.into_iter().enumerate() {
            let p = test.p(question);
            prop_assert!((p - expected).abs() < 1e-9, "{}: {} and {}", question, p, expected);
        }
    }

    #[test]
    fn zero_is_in_the_interval_exactly_if_the_difference_is_not_significant((questions, sides) in families()) {
        let test = test(&questions, sides);
        let all: Vec<usize> = (0..questions.len()).collect();
        for (question, interval) in test.intervals(&all).into_iter().enumerate() {
            let contains = interval.is_none_or(|interval| interval.contains(0.0));
            prop_assert_eq!(contains, test.p(question) > ALPHA, "{:?} {}", interval, test.p(question));
        }
    }
}
