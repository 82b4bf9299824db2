//! Runs made up, rules, and what the gate says to them.

use super::*;
use crate::{
    compare::made_up::{failed, faster, judged as judged_as, run},
    runs::{Origin, RunSize, queries::cells::PastRun},
};

/// As many repetitions as are enough for whatever is to be seen, a percent around the middle.
fn repeated(count: u32, make: impl Fn(u32) -> Run) -> Vec<Run> {
    let wobble = |n: u32| 1.0 + 0.002 * (f64::from(n) - f64::from(count) / 2.0);
    (1..=count).map(|n| faster(make(n), wobble(n))).collect()
}

fn base(count: u32) -> Vec<Run> {
    repeated(count, |n| Run { id: format!("old-{n}"), ..run("servy", n) })
}

fn new(count: u32, factor: f64) -> Vec<Run> {
    repeated(count, |n| faster(Run { id: format!("new-{n}"), ..run("servy", n) }, factor))
}

fn cell(baseline: Vec<Run>, candidate: Vec<Run>) -> Cell {
    Cell { name: "2 vCPU / 4 GiB".to_owned(), baseline, candidate }
}

fn ask(rules: &[&str], cells: &[Cell], accept: &[Circumstance]) -> Gate {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
    decide(&Question { rules: &rules, accept, cells, known: &Known::default() })
}

fn told(gate: &Gate) -> Vec<(Outcome, String)> {
    gate.checks.iter().map(|check| (check.outcome, check.told.replace('\u{a0}', " "))).collect()
}

const RULES: [&str; 2] = ["rps<-5%", "p99>10%"];

#[test]
fn a_real_difference_beyond_the_limit_is_a_regression() {
    let gate = ask(&RULES, &[cell(base(10), new(10, 0.92))], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.headline.replace('\u{a0}', " "), "Regression: throughput −8.0 % at 2 vCPU / 4 GiB");
    let [rps, p99] = gate.checks.as_slice() else { panic!("two checks") };
    assert_eq!((rps.outcome, p99.outcome), (Outcome::Regression, Outcome::Fine), "8.7 % is below 10 %");
    assert_eq!(rps.repetitions, [10, 10]);
}

#[test]
fn a_real_difference_within_the_limit_and_a_better_candidate_are_fine() {
    for factor in [0.97, 1.2] {
        let gate = ask(&RULES, &[cell(base(10), new(10, factor))], &[]);
        assert_eq!((gate.outcome, gate.headline.as_str()), (Outcome::Fine, "No regression: 2 checks held"), "{factor}");
    }
}

#[test]
fn a_difference_that_may_be_noise_is_fine_however_big() {
    let noisy = |prefix: &str, values: [f64; 5]| -> Vec<Run> {
        (1..)
            .zip(values)
            .map(|(n, factor)| faster(Run { id: format!("{prefix}-{n}"), ..run("servy", n) }, factor))
            .collect()
    };
    let cells = [cell(noisy("old", [1.0, 0.7, 1.3, 1.1, 0.8]), noisy("new", [0.9, 0.6, 1.25, 1.2, 0.75]))];
    let gate = ask(&["rps<-5%"], &cells, &[]);
    assert_eq!(gate.outcome, Outcome::Fine);
    assert!(told(&gate)[0].1.ends_with("is beyond −5.0 %, but may be chance"), "{gate:?}");
}

#[test]
fn what_the_cell_usually_moves_between_experiments_is_no_regression() {
    let (baseline, candidate) = (base(10), new(10, 0.92));
    let past = |number: u32| {
        let level = if number.is_multiple_of(2) { 1.0 } else { 0.9 };
        [0.99, 1.0, 1.01].map(|factor| PastRun {
            experiment: format!("past-{number}"),
            rps: Some(factor * level),
            p50_ms: None,
            p99_ms: None,
            cpu_ms: None,
            memory_bytes: None,
        })
    };
    let past: Vec<PastRun> = (0..12).flat_map(past).collect();
    let history = [(noise::cell_id(&baseline[0]), past)].into();
    let rules = ["rps<-5%".parse().expect("a rule")];
    let cells = [cell(baseline, candidate)];
    let known = Known { history, ..Known::default() };
    let gate = decide(&Question { rules: &rules, accept: &[], cells: &cells, known: &known });
    let (outcome, told) = told(&gate).remove(0);
    assert_eq!(outcome, Outcome::Fine);
    assert!(told.ends_with("but this usually moves by up to 11.1 % from one experiment to the next"), "{told}");
}

#[test]
fn a_difference_that_was_not_seen_says_what_could_have_been_there() {
    let gate = ask(&["rps<-0.1%"], &[cell(base(6), new(6, 1.0))], &[]);
    let (outcome, told) = told(&gate).remove(0);
    assert_eq!(outcome, Outcome::Fine);
    assert!(
        told.starts_with("no difference seen: ±0.0 % (") && told.ends_with("; one beyond −0.1 % is not ruled out"),
        "{told}"
    );
}

#[test]
fn the_more_is_asked_the_more_repetitions_it_takes() {
    let cells = [cell(base(4), new(4, 0.5))];
    assert_eq!(ask(&["rps<-5%"], &cells, &[]).outcome, Outcome::Regression);
    assert_eq!(ask(&["rps<-5%", "rps<-10%"], &cells, &[]).outcome, Outcome::Regression, "one question");
    let many = ask(&["rps<-5%", "p50>5%", "p99>5%", "max>5%"], &cells, &[]);
    assert_eq!(many.outcome, Outcome::CannotSay);
    assert_eq!(told(&many)[0].1, "too few repetitions: 4 against 4, each side needs 5");
}

#[test]
fn too_few_repetitions_say_nothing_however_far_apart() {
    let gate = ask(&["rps<-5%"], &[cell(base(10), new(1, 0.1))], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert!(gate.headline.starts_with("Cannot say: too few repetitions"), "{}", gate.headline);
}

#[test]
fn what_is_invalid_failed_or_not_at_an_end_says_nothing_by_itself() {
    let invalid = repeated(5, |n| judged_as(run("servy", n), Verdict::Invalid, "all requests failed"));
    let gate = ask(&["rps<-5%"], &[cell(base(10), invalid)], &[]);
    let expected = "no run of the candidate counts: all requests failed".to_owned();
    assert_eq!(told(&gate), [(Outcome::CannotSay, expected)]);
    let mut going = new(10, 0.9);
    going[3] = Run { phase: "queued".to_owned(), verdict: None, ..failed(going[3].clone(), "") };
    let gate = ask(&["rps<-5%"], &[cell(base(10), going)], &[]);
    assert_eq!(told(&gate)[0].1, "1 run of the candidate not at an end yet");
    let mut some = new(10, 0.9);
    some.push(failed(run("servy", 11), "it died"));
    let gate = ask(&["rps<-5%"], &[cell(base(10), some)], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.notes, ["2 vCPU / 4 GiB: 1 run of the candidate left out, the first: it died"]);
}

#[test]
fn a_candidate_that_fell_is_not_fine_because_others_went_well() {
    let with = |last: Vec<Run>| ask(&["rps<-5%"], &[cell(base(10), [new(10, 1.0), last].concat())], &[]);
    let fell = failed(run("servy", 11), "it died");
    let (outcome, told) = told(&with(vec![fell.clone()])).remove(0);
    assert_eq!(outcome, Outcome::CannotSay);
    assert!(
        told.starts_with("1 run of the candidate without figures that count, the first: it died; of the others: no")
    );
    let again = Run { id: "again".to_owned(), retry_of: Some(fell.id.clone()), ..run("servy", 11) };
    assert_eq!(with(vec![fell.clone(), again]).outcome, Outcome::Fine);
    let cancelled = Run { phase: "cancelled".to_owned(), ..fell };
    assert_eq!(with(vec![cancelled]).outcome, Outcome::Fine);
}

#[test]
fn unlike_surroundings_say_nothing_unless_accepted() {
    let elsewhere = || new(10, 0.8).into_iter().map(|run| Run { agent: Some("laptop".to_owned()), ..run }).collect();
    let gate = ask(&["rps<-5%"], &[cell(base(10), elsewhere())], &[]);
    assert_eq!(told(&gate)[0], (Outcome::CannotSay, "agents differ: baseline bench-01, candidate laptop".to_owned()));
    let gate = ask(&["rps<-5%"], &[cell(base(10), elsewhere())], &[Circumstance::Agents]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.notes, ["2 vCPU / 4 GiB: agents differ: baseline bench-01, candidate laptop; accepted"]);
    let imported = new(10, 0.8).into_iter().map(|run| Run { origin: Origin::Import, ..run }).collect();
    assert_eq!(ask(&["rps<-5%"], &[cell(base(10), imported)], &[]).outcome, Outcome::CannotSay);
}

#[test]
fn a_setting_without_a_counterpart_says_nothing_and_a_regression_elsewhere_weighs_more() {
    let other = |runs: Vec<Run>| -> Vec<Run> {
        let size = Some(RunSize { name: "big".to_owned(), vcpus: 16.0, memory_bytes: 1 << 34 });
        runs.into_iter().map(|run| Run { size: size.clone(), ..run }).collect()
    };
    let alone = cell(Vec::new(), other(new(10, 1.0)));
    let gate = ask(&["rps<-5%"], &[cell(base(10), new(10, 1.0)), alone.clone()], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert_eq!((gate.count(Outcome::Fine), gate.count(Outcome::CannotSay)), (1, 1));
    let gate = ask(&["rps<-5%"], &[cell(base(10), new(10, 0.8)), alone], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    let only_base = ask(&["rps<-5%"], &[cell(base(10), new(10, 1.0)), cell(other(base(10)), Vec::new())], &[]);
    assert_eq!((only_base.outcome, only_base.notes.len()), (Outcome::Fine, 1));
}

#[test]
fn nothing_to_compare_is_a_check_of_each_rule_that_can_not_be_said() {
    let gate = ask(&RULES, &[], &[]);
    assert_eq!((gate.outcome, gate.checks.len()), (Outcome::CannotSay, 2));
}

#[test]
fn failed_requests_are_judged_by_points_as_there_may_have_been_none() {
    let failing = |share: f64| -> Vec<Run> {
        let one = |(n, run): (f64, Run)| Run { error_rate: Some(share * (1.0 + n / 100.0)), ..run };
        (0_u8..).map(f64::from).zip(new(10, 1.0)).map(one).collect()
    };
    let gate = ask(&["error_rate>0.1%"], &[cell(base(10), failing(0.004))], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert!(gate.checks[0].difference().starts_with("+0.4"), "{}", gate.checks[0].difference());
    assert_eq!(ask(&["error_rate>1%"], &[cell(base(10), failing(0.004))], &[]).outcome, Outcome::Fine);
    let none = ask(&["error_rate>0.1%"], &[cell(base(10), new(10, 1.0))], &[]);
    assert_eq!(none.outcome, Outcome::Fine);
}

#[test]
fn a_figure_that_no_summary_has_says_nothing() {
    let without = new(10, 1.0).into_iter().map(|run| Run { p99_ms: None, ..run }).collect();
    let gate = ask(&["p99>10%"], &[cell(base(10), without)], &[]);
    assert_eq!(told(&gate)[0].1, "no summary of the candidate has this figure");
}
