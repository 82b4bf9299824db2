//! Tests of time without a response.

use brewbench_wire::{
    histogram::Histogram,
    load::{Closed, Form, Stage},
    series::Second,
};

use super::*;
use crate::{
    results::verdict::tests::{Case, ordinary, rate, with},
    runs::verdict::Reason,
};

/// One request of this many milliseconds.
fn slow(ms: f64) -> Histogram {
    #[expect(clippy::cast_possible_truncation, reason = "a small number")]
    let bucket = ((ms / 1_000.0).log2() * 8.0).ceil() as i32;
    Histogram::new(3, 0, 1_000_000, [(bucket, 1)]).expect("a histogram")
}

/// A run of ten seconds whose points have this many requests; the first after a pause has one that took this long.
fn run(requests: [u64; 10], slowest_ms: f64) -> Case {
    let mut before = 1;
    let mut case = ordinary();
    for (second, requests) in case.window().seconds.iter_mut().zip(requests) {
        let fast = Histogram::new(3, 0, requests * 1_000_000, (requests > 0).then_some((-80, requests)));
        second.succeeded = fast.expect("a histogram");
        if requests > 0 && before == 0 {
            second.succeeded.add(&slow(slowest_ms));
        }
        (second.vus, second.iterations, before) = (Some(10), requests, requests);
    }
    case.figures.requests = requests.iter().sum();
    case.figures.iteration_ms = Some(9.9);
    case.figures.latency.p50_ms = Some(1.0);
    case
}

fn reason(case: &Case) -> Option<Reason> {
    case.judge().reasons.into_iter().find(|reason| reason.code == CODE)
}

fn target_stops(case: &mut Case, samples: std::ops::Range<usize>) {
    case.window().usage[samples].iter_mut().for_each(|usage| usage.target.cpu_us = Some(0));
}

const HELD: [u64; 10] = [1_000, 1_000, 1_000, 0, 0, 0, 600, 1_000, 1_000, 1_000];

#[test]
fn a_target_that_stands_still_is_described() {
    let mut case = run(HELD, 4_000.0);
    target_stops(&mut case, 4..8);
    let found = reason(&case).expect("a reason");
    assert_eq!((found.verdict, found.observed, found.limit), (Verdict::Invalid, Some(0.3), Some(0.2)));
    let expected = "no response from second 3 to 6: 3 s of 10 s of load; the target stood still: it used 0.00 cores, \
        usually 0.50, while the load generator kept reporting";
    assert_eq!(found.text, expected);
    let short =
        reason(&run([1_000, 1_000, 1_000, 0, 900, 1_000, 1_000, 1_000, 1_000, 1_000], 1_200.0)).expect("a reason");
    assert_eq!((short.verdict, short.observed, short.limit), (Verdict::Suspect, Some(1.0), Some(1.0)));
    assert!(short.text.contains("; the target was busy, but answered nothing: it used 0.50 cores"), "{}", short.text);
    let mut open = run(HELD, 4_000.0);
    open.load = rate();
    assert_eq!(reason(&open).map(|reason| reason.verdict), Some(Verdict::Invalid));
}

#[test]
fn a_target_that_hangs_to_the_end_is_invalid() {
    let hangs = [1_000, 1_000, 1_000, 1_000, 0, 0, 0, 0, 0, 0];
    for may_wait in [Some(false), Some(true), None] {
        let mut case = run(hangs, 0.0);
        case.conditions.script_may_wait = may_wait;
        let found = reason(&case).expect("a reason");
        assert!(found.text.starts_with("no response from second 4 to the end: 6 s of 10 s of load"), "{}", found.text);
        assert_eq!(found.verdict, Verdict::Invalid);
    }
    // Users may still sleep.
    let mut asleep = run(hangs, 0.0);
    asleep.figures.iteration_ms = Some(5_000.0);
    assert_eq!(reason(&asleep), None);
    asleep.figures.iterations = Some(0);
    assert_eq!(reason(&asleep), None);
    // What comes after the planned end is the end of iterations in progress.
    let mut over = run([1_000; 10], 0.0);
    let late = (11..=40).map(|number| Second { until_ms: number * 1_000, vus: Some(3), ..Second::default() });
    over.window().seconds.extend(late);
    assert_eq!(reason(&over), None);
}

#[test]
fn a_load_generator_that_stands_still_is_described() {
    let mut case = run([1_000; 10], 0.0);
    let seconds = &mut case.window().seconds;
    seconds.drain(3..6);
    seconds[3].succeeded = Histogram::new(3, 0, 1_000_000, [(-80, 1_000)]).expect("a histogram");
    case.window().usage[4..8].iter_mut().for_each(|usage| usage.generator.cpu_us = Some(0));
    let found = reason(&case).expect("a reason");
    assert!(
        found.text.starts_with("no response from second 3 to 7: 3 s of 10 s of load; the load generator stood still"),
        "{}",
        found.text
    );
    case.window().usage.drain(4..7);
    let found = reason(&case).expect("a reason");
    assert!(
        found.text.ends_with("the machine stood still: neither the load generator nor the agent reported anything"),
        "{}",
        found.text
    );
    // Reports that come late, but are complete.
    case.window().seconds[3].succeeded = Histogram::new(3, 0, 1_000_000, [(-80, 4_000)]).expect("a histogram");
    assert_eq!(reason(&case), None);
}

#[test]
fn pauses_of_the_script_are_none() {
    let sleeping = |requests, slowest_ms| {
        let mut case = run(requests, slowest_ms);
        case.conditions.script_may_wait = Some(true);
        case.figures.latency.p50_ms = Some(1.0);
        reason(&case)
    };
    assert_eq!(sleeping([1, 0, 1, 0, 1, 0, 1, 0, 1, 0], 5.0), None);
    assert_eq!(sleeping([9, 0, 0, 0, 0, 9, 0, 0, 0, 9], 5.0), None);
    assert_eq!(sleeping([9, 9, 9, 0, 0, 0, 9, 9, 9, 9], 5.0), None, "a rare pause of the script");
    assert!(sleeping([9, 9, 9, 0, 0, 0, 9, 9, 9, 9], 3_500.0).is_some(), "a response took that long");
}

#[test]
fn slow_responses_are_none() {
    let slow_target = |requests| {
        let mut case = run(requests, 1_600.0);
        case.conditions.script_may_wait = Some(false);
        case.figures.latency.p50_ms = Some(1_600.0);
        reason(&case)
    };
    assert_eq!(slow_target([4, 4, 0, 4, 4, 0, 4, 4, 0, 4]), None);
    assert!(slow_target([4, 4, 0, 0, 0, 0, 0, 4, 4, 4]).is_some());
    // One user, and a slow request now and then.
    let mut one = run([50, 0, 50, 50, 0, 50, 50, 0, 50, 50], 1_300.0);
    one.window().seconds.iter_mut().for_each(|second| second.vus = Some(1));
    assert_eq!(reason(&one), None);
}

#[test]
fn time_without_virtual_users_is_none() {
    let stages = [(3_000, 10), (0, 0), (4_000, 0), (0, 10), (3_000, 10)];
    let stages = stages.map(|(duration_ms, target)| Stage { duration_ms, target });
    let mut case = run([1_000, 1_000, 1_000, 0, 0, 0, 0, 1_000, 1_000, 1_000], 5.0);
    case.load = Load::Closed(Closed::new(Form::Stages(stages.to_vec())).expect("a load"));
    case.conditions.script_may_wait = Some(false);
    assert!(reason(&case).is_some());
    case.window().seconds[3..7].iter_mut().for_each(|second| second.vus = Some(0));
    assert_eq!(reason(&case), None);
}

#[test]
fn users_without_a_response_are_not_held_back_by_k6() {
    let mut case = run(HELD, 4_000.0);
    case.conditions.script_may_wait = Some(true);
    (case.figures.iterations, case.figures.iteration_ms) = (Some(100), Some(1.0));
    let codes = |case: &Case| case.judge().reasons.into_iter().map(|reason| reason.code).collect::<Vec<_>>();
    assert!(!codes(&case).contains(&"generator_held_back".to_owned()), "{:?}", codes(&case));
    let even = with(|even| {
        even.conditions.script_may_wait = Some(true);
        (even.figures.iterations, even.figures.iteration_ms) = (Some(100), Some(1.0));
    });
    assert!(codes(&even).contains(&"generator_held_back".to_owned()), "{:?}", codes(&even));
}
