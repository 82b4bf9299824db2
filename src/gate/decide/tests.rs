//! The gate's decision on fixture runs.

use brewbench_wire::Phase;

use super::*;
use crate::{
    compare::{
        comparison_context::Looks,
        past,
        testing::{failed, faster, figured, judged as judged_as, run},
    },
    runs::{
        model::{Origin, RunSize, RunSpec},
        store::cells::PastRun,
        verdict::Verdict,
    },
};

/// Repetitions that scatter by about one percent around the middle.
fn repeated(count: u32, make: impl Fn(u32) -> Run) -> Vec<Run> {
    let wobble = |n: u32| 1.0 + 0.002 * (f64::from(n) - f64::from(count) / 2.0);
    (1..=count).map(|n| faster(make(n), wobble(n))).collect()
}

fn base(count: u32) -> Vec<Run> {
    repeated(count, |n| Run { id: format!("old-{n}").into(), ..run("servy", n) })
}

fn new(count: u32, factor: f64) -> Vec<Run> {
    let other = |n| Run { id: format!("new-{n}").into(), target_identity: Some("b".repeat(64)), ..run("servy", n) };
    repeated(count, |n| faster(other(n), factor))
}

fn cell(baseline: Vec<Run>, candidate: Vec<Run>) -> GateCell {
    GateCell { name: "2 vCPU / 4 GiB".to_owned(), baseline, candidate }
}

fn decided(rules: &[&str], cells: &[GateCell], accept: &[Circumstance]) -> Gate {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().expect("a rule")).collect();
    decide(&Question { accept, ..question(&rules, cells, &ComparisonContext::default()) })
}

fn question<'a>(rules: &'a [Rule], cells: &'a [GateCell], known: &'a ComparisonContext) -> Question<'a> {
    Question { rules, accept: &[], suspect: Suspect::Excluded, primary: None, max_repeat: None, cells, known }
}

fn reasons(gate: &Gate) -> Vec<(Outcome, String)> {
    gate.checks.iter().map(|check| (check.outcome, check.reason.replace('\u{a0}', " "))).collect()
}

const RULES: [&str; 2] = ["rps<-5%", "p99>10%"];

#[test]
fn a_real_difference_beyond_the_limit_is_a_regression() {
    let gate = decided(&RULES, &[cell(base(10), new(10, 0.92))], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.headline.replace('\u{a0}', " "), "Regression: throughput −8.0 % at 2 vCPU / 4 GiB");
    let [rps, p99] = gate.checks.as_slice() else { panic!("two checks") };
    assert_eq!((rps.outcome, p99.outcome), (Outcome::Regression, Outcome::Fine), "8.7 % is below 10 %");
    assert_eq!(rps.repetitions, [10, 10]);
}

#[test]
fn a_difference_within_the_limit_and_a_better_candidate_are_fine() {
    for factor in [0.97, 1.2] {
        let gate = decided(&RULES, &[cell(base(10), new(10, factor))], &[]);
        assert_eq!(
            (gate.outcome, gate.headline.as_str()),
            (Outcome::Fine, "No regression: 2 checks passed, each rules its limit out"),
            "{factor}"
        );
    }
}

/// Repetitions whose scatter is far larger than their difference.
fn noisy(prefix: &str, values: [f64; 6]) -> Vec<Run> {
    let one = |(n, factor)| faster(Run { id: format!("{prefix}-{n}").into(), ..run("servy", n) }, factor);
    (1..).zip(values).map(one).collect()
}

#[test]
fn a_difference_that_may_be_noise_is_not_fine_with_any_number_of_repetitions() {
    let cells = [cell(noisy("old", [1.0, 0.7, 1.3, 1.1, 0.8, 1.0]), noisy("new", [0.9, 0.6, 1.25, 1.2, 0.75, 0.8]))];
    let gate = decided(&["rps<-5%"], &cells, &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    let (_, reason) = reasons(&gate).remove(0);
    assert!(reason.contains("is not significantly beyond −5.0 %; "), "{reason}");
    let cells = [cell(noisy("old", [1.0, 0.9, 1.1, 1.1, 0.9, 1.0]), noisy("new", [1.0, 1.1, 0.9, 0.9, 1.1, 1.0]))];
    let gate = decided(&["rps<-5%"], &cells, &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay, "a loss of 5 % is not ruled out: {gate:?}");
    assert!(gate.checks[0].needed.is_some_and(|needed| needed > 6 && needed.is_multiple_of(2)), "{gate:?}");
}

fn of_experiment(runs: Vec<Run>, experiment: &str, day: i64) -> Vec<Run> {
    let moved = |run: Run| Run {
        experiment: Some(experiment.to_owned().into()),
        started_at_ms: run.started_at_ms.map(|at| at + day * 86_400_000),
        ..run
    };
    runs.into_iter().map(moved).collect()
}

/// Earlier nightly experiments, every second one at another level.
fn nightly(count: u32, level: f64) -> Vec<PastRun> {
    let night = |number: u32| {
        let level = 10_000.0 * if number.is_multiple_of(2) { 1.0 } else { level };
        let at_ms = base(1)[0].started_at_ms.map(|at| at - i64::from(number + 1) * 86_400_000);
        [0.99, 1.0, 1.01].map(|factor| PastRun {
            experiment: format!("past-{number}").into(),
            at_ms,
            figures: vec![Some(factor * level)],
        })
    };
    (0..count).flat_map(night).collect()
}

fn of_two_days(factor: f64, past: Vec<PastRun>) -> Gate {
    let (baseline, candidate) = (of_experiment(base(10), "monday", 0), of_experiment(new(10, factor), "tuesday", 1));
    let history = [(past::cell_id(&baseline[0]), past)].into();
    let rules = ["rps<-5%".parse().expect("a rule")];
    let known = ComparisonContext { history, ..ComparisonContext::default() };
    decide(&question(&rules, &[cell(baseline, candidate)], &known))
}

#[test]
fn experiments_of_two_days_are_judged_by_the_variation_between_days() {
    let gate = of_two_days(0.92, Vec::new());
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert!(reasons(&gate)[0].1.starts_with("not measured in turn, and fewer than two past experiments"), "{gate:?}");
    let gate = of_two_days(0.92, nightly(12, 0.9));
    assert_eq!(gate.outcome, Outcome::CannotSay, "it varies by 5 % between days: {gate:?}");
    let gate = of_two_days(0.92, nightly(12, 1.002));
    assert_eq!(gate.outcome, Outcome::Regression, "{gate:?}");
    assert_eq!(of_two_days(0.99, nightly(12, 1.002)).outcome, Outcome::Fine);
}

/// A true loss of 4 % is allowed: it is worse, but not beyond the limit.
#[test]
fn a_clear_loss_within_the_limit_is_no_regression() {
    let cells = [cell(base(10), new(10, 0.96))];
    assert_eq!(decided(&["rps<-5%"], &cells, &[]).outcome, Outcome::Fine);
    let wide: Vec<Run> = (1..)
        .zip([0.95, 0.98, 0.93, 0.97, 0.94, 0.985, 0.925, 0.96, 0.955, 0.965])
        .map(|(n, factor)| faster(Run { id: format!("wide-{n}").into(), ..run("servy", n) }, factor))
        .collect();
    let gate = decided(&["rps<-5%"], &[cell(base(10), wide)], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert!(reasons(&gate)[0].1.contains(" is worse, and a change beyond −5.0 % is not ruled out"), "{gate:?}");
}

#[test]
fn more_tests_need_more_repetitions_for_a_regression() {
    let cells = [cell(base(4), new(4, 0.5))];
    assert_eq!(decided(&["rps<-5%"], &cells, &[]).outcome, Outcome::Regression);
    assert_eq!(decided(&["rps<-5%", "rps<-10%"], &cells, &[]).outcome, Outcome::Regression, "one test");
    let six: Vec<GateCell> = (0..6).map(|_| cell(base(4), new(4, 0.5))).collect();
    let many = decided(&["rps<-5%"], &six, &[]);
    assert_eq!(many.outcome, Outcome::CannotSay);
    assert_eq!(many.checks[0].needed, Some(6), "{many:?}");
}

#[test]
fn the_primary_metric_is_tested_first_and_can_be_chosen() {
    let rules: Vec<Rule> = ["p99>1%", "rps<-1%", "p50>1%"].iter().map(|rule| rule.parse().expect("a rule")).collect();
    let cells = [cell(noisy("old", [1.0, 0.7, 1.3, 1.1, 0.8, 1.0]), noisy("new", [0.9, 0.6, 1.25, 1.2, 0.75, 0.8]))];
    let known = ComparisonContext::default();
    let p = |primary: Option<Metric>| {
        let gate = decide(&Question { primary, ..question(&rules, &cells, &known) });
        gate.checks.iter().map(|check| check.p.expect("a p-value")).collect::<Vec<_>>()
    };
    let usual = p(None);
    assert!(usual[1] < usual[0] && usual[1] < usual[2], "throughput first: {usual:?}");
    let chosen = p(Some(Metric::P99Ms));
    assert!(chosen[0] < chosen[1] && chosen[0] < chosen[2], "{chosen:?}");
}

#[test]
fn too_few_repetitions_cannot_say_for_any_difference() {
    let gate = decided(&["rps<-5%"], &[cell(base(10), new(1, 0.1))], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert_eq!(reasons(&gate)[0].1, "too few repetitions: the candidate has 1 of at least 4");
    let gate = decided(&["rps<-5%"], &[cell(base(39), new(3, 1.0))], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay, "three repetitions can't pass either");
}

#[test]
fn suspect_runs_count_only_if_accepted() {
    let suspect: Vec<Run> =
        new(6, 1.0).into_iter().map(|run| judged_as(run, Verdict::Suspect, "shared cores")).collect();
    let (rules, cells) = (["rps<-5%".parse().expect("a rule")], [cell(base(6), suspect)]);
    let known = ComparisonContext::default();
    let gate = decide(&question(&rules, &cells, &known));
    assert_eq!(gate.outcome, Outcome::CannotSay);
    let reason = &reasons(&gate)[0].1;
    assert!(reason.ends_with("has 0 of at least 4; 6 suspect runs excluded: shared cores"), "{reason}");
    let accepted = Question { suspect: Suspect::Accepted, ..question(&rules, &cells, &known) };
    assert_eq!(decide(&accepted).outcome, Outcome::Fine);
}

#[test]
fn a_plan_with_more_repetitions_spends_a_part_of_the_error_rate_at_each_look() {
    let (rules, known) = (["rps<-5%".parse().expect("a rule")], ComparisonContext::default());
    let at = |repetitions: usize, cells: &[GateCell]| {
        decide(&Question { max_repeat: Some(repetitions), ..question(&rules, cells, &known) })
    };
    let undecided = [cell(noisy("old", [1.0, 0.9, 1.1, 1.1, 0.9, 1.0]), noisy("new", [1.0, 1.1, 0.9, 0.9, 1.1, 1.0]))];
    let gate = at(20, &undecided);
    assert!((0.015..0.02).contains(&gate.alpha), "{gate:?}");
    assert_eq!(gate.more, Some(MissingRepetitions { experiment: "night".to_owned().into(), repetitions: 4 }));
    assert_eq!(at(7, &undecided).more.map(|more| more.repetitions), Some(1), "no more than the plan allows");
    assert_eq!(at(6, &undecided).more, None);
    let gate = decided(&["rps<-5%"], &undecided, &[]);
    assert_eq!((gate.more, gate.alpha), (None, statistics::ALPHA), "without a plan nothing is added");
}

/// After repetitions were added, a gate without a plan has the level of one with a plan, and so has a longer plan.
#[test]
fn all_gates_know_the_earlier_looks() {
    let rules = ["rps<-5%".parse().expect("a rule")];
    let looks = Looks { before: vec![6, 10], additions: 2 };
    let known = ComparisonContext { looks, ..ComparisonContext::default() };
    let cells = [cell(base(14), new(14, 0.99))];
    let alpha = |max_repeat| decide(&Question { max_repeat, ..question(&rules, &cells, &known) }).alpha;
    assert!(alpha(None) < 0.02 && alpha(None) > 0.005, "{}", alpha(None));
    assert_eq!([alpha(Some(14)), alpha(Some(20)), alpha(Some(100))].map(f64::to_bits), [alpha(None).to_bits(); 3]);
}

#[test]
fn invalid_failed_and_unfinished_runs_cannot_say() {
    let invalid = repeated(5, |n| judged_as(run("servy", n), Verdict::Invalid, "all requests failed"));
    let gate = decided(&["rps<-5%"], &[cell(base(10), invalid)], &[]);
    let expected = "the candidate has no valid run: all requests failed".to_owned();
    assert_eq!(reasons(&gate), [(Outcome::CannotSay, expected)]);
    let mut unfinished = new(10, 0.9);
    unfinished[3] = Run { phase: Phase::Queued, verdict: None, ..failed(unfinished[3].clone(), "") };
    let gate = decided(&["rps<-5%"], &[cell(base(10), unfinished)], &[]);
    assert_eq!(reasons(&gate)[0].1, "1 run of the candidate not finished");
    let mut some = new(10, 0.9);
    some.push(failed(run("servy", 11), "it died"));
    let gate = decided(&["rps<-5%"], &[cell(base(10), some)], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.notes, ["2 vCPU / 4 GiB: 1 run of the candidate excluded, the first: it died"]);
}

#[test]
fn a_failed_run_of_the_candidate_is_not_fine_even_if_the_others_are() {
    let with = |last: Vec<Run>| decided(&["rps<-5%"], &[cell(base(10), [new(10, 1.0), last].concat())], &[]);
    let last = new(11, 1.0).remove(10);
    let died = failed(last.clone(), "it died");
    let (outcome, reason) = reasons(&with(vec![died.clone()])).remove(0);
    assert_eq!(outcome, Outcome::CannotSay);
    assert!(
        reason.starts_with("1 run of the candidate without valid results, the first: it died; the other runs: "),
        "{reason}"
    );
    let retry = Run { id: "retry".to_owned().into(), retry_of: Some(died.id.clone()), ..last };
    assert_eq!(with(vec![died.clone(), retry]).outcome, Outcome::Fine);
    let cancelled = Run { phase: Phase::Cancelled, ..died };
    assert_eq!(with(vec![cancelled]).outcome, Outcome::Fine);
}

#[test]
fn confounders_cannot_say_unless_accepted() {
    let elsewhere = || new(10, 0.8).into_iter().map(|run| Run { agent: Some("laptop".to_owned()), ..run }).collect();
    let gate = decided(&["rps<-5%"], &[cell(base(10), elsewhere())], &[]);
    assert_eq!(
        reasons(&gate)[0],
        (Outcome::CannotSay, "agents differ: baseline bench-01, candidate laptop".to_owned())
    );
    let gate = decided(&["rps<-5%"], &[cell(base(10), elsewhere())], &[Circumstance::Agents]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert_eq!(gate.notes, ["2 vCPU / 4 GiB: agents differ: baseline bench-01, candidate laptop; accepted"]);
    let imported = new(10, 0.8).into_iter().map(|run| Run { origin: Origin::Import, ..run }).collect();
    assert_eq!(decided(&["rps<-5%"], &[cell(base(10), imported)], &[]).outcome, Outcome::CannotSay);
}

#[test]
fn a_setting_without_a_counterpart_cannot_say_and_a_regression_elsewhere_wins() {
    let other = |runs: Vec<Run>| -> Vec<Run> {
        let size = Some(RunSize { name: "big".to_owned(), vcpus: 16.0, memory_bytes: 1 << 34, replicas: 1 });
        runs.into_iter().map(|run| Run { spec: RunSpec { size: size.clone(), ..run.spec.clone() }, ..run }).collect()
    };
    let alone = cell(Vec::new(), other(new(10, 1.0)));
    let gate = decided(&["rps<-5%"], &[cell(base(10), new(10, 1.0)), alone.clone()], &[]);
    assert_eq!(gate.outcome, Outcome::CannotSay);
    assert_eq!((gate.count(Outcome::Fine), gate.count(Outcome::CannotSay)), (1, 1));
    let gate = decided(&["rps<-5%"], &[cell(base(10), new(10, 0.8)), alone], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    let only_base = decided(&["rps<-5%"], &[cell(base(10), new(10, 1.0)), cell(other(base(10)), Vec::new())], &[]);
    assert_eq!((only_base.outcome, only_base.notes.len()), (Outcome::Fine, 1));
}

#[test]
fn two_commits_with_the_same_binary_are_named_so() {
    let noted = |candidate: Vec<Run>| {
        let notes = decided(&["rps<-5%"], &[cell(base(6), candidate)], &[]).notes;
        notes.iter().any(|note| note.contains("same binary"))
    };
    let same = || new(6, 1.0).into_iter().map(|run| Run { target_identity: base(1)[0].target_identity.clone(), ..run });
    assert!(noted(same().collect()) && !noted(new(6, 1.0)) && !noted(Vec::new()));
    let unknown = |(place, run): (usize, Run)| if place == 3 { Run { target_identity: None, ..run } } else { run };
    assert!(!noted(same().enumerate().map(unknown).collect()));
}

#[test]
fn without_runs_every_rule_cannot_say() {
    let gate = decided(&RULES, &[], &[]);
    assert_eq!((gate.outcome, gate.checks.len()), (Outcome::CannotSay, 2));
}

#[test]
fn failed_requests_are_judged_by_points_because_there_may_be_none() {
    let failing = |share: f64| -> Vec<Run> {
        let one = |(n, run): (f64, Run)| figured(run, |figures| figures.error_rate = Some(share * (1.0 + n / 100.0)));
        (0_u8..).map(f64::from).zip(new(10, 1.0)).map(one).collect()
    };
    let gate = decided(&["error_rate>0.1%"], &[cell(base(10), failing(0.004))], &[]);
    assert_eq!(gate.outcome, Outcome::Regression);
    assert!(gate.checks[0].difference().starts_with("+0.4"), "{}", gate.checks[0].difference());
    assert_eq!(decided(&["error_rate>1%"], &[cell(base(10), failing(0.004))], &[]).outcome, Outcome::Fine);
    let none = decided(&["error_rate>0.1%"], &[cell(base(10), new(10, 1.0))], &[]);
    assert_eq!(none.outcome, Outcome::Fine);
    let apart = cell(of_experiment(base(10), "monday", 0), of_experiment(new(10, 1.0), "tuesday", 1));
    let none = decided(&["error_rate>0.1%"], &[apart], &[]);
    assert_eq!(none.outcome, Outcome::Fine, "none failed in two experiments: {none:?}");
}

#[test]
fn a_metric_that_no_summary_has_cannot_say() {
    let without = new(10, 1.0).into_iter().map(|run| figured(run, |figures| figures.p99_ms = None)).collect();
    let gate = decided(&["p99>10%"], &[cell(base(10), without)], &[]);
    assert_eq!(reasons(&gate)[0].1, "no summary of the candidate has this metric");
}
