//! Confounders of a gate, and that a page names the same ones.

use std::collections::BTreeSet;

use brewbench_wire::{outcome::Conditions, target::TargetKind};

use super::*;
use crate::{
    compare::{chosen::Options, metric::Metric, statistics::Decision, testing::run, view::Comparison},
    gate::{
        decide::{Question, decide},
        obstacle::Suspect,
    },
    results::environment::facts::RunEnvironment,
    runs::model::{Origin, RunSpec},
    web::series_style::Marks,
};

fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
    (1..=3).map(make).collect()
}

fn cell(change: impl Fn(Run) -> Run) -> GateCell {
    let candidate = thrice(|n| change(Run { id: format!("new-{n}").into(), ..run("servy", n) }));
    GateCell { name: String::new(), baseline: thrice(|n| run("servy", n)), candidate }
}

fn environment(facts: &[(&str, &str)]) -> RunEnvironment {
    RunEnvironment {
        run: String::new().into(),
        target: "servy".to_owned(),
        version: None,
        size: None,
        repetition: 1,
        agent: None,
        facts: facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        conditions: Conditions::default(),
        generators: Vec::new(),
    }
}

#[test]
fn equal_circumstances_are_no_confounders() {
    assert_eq!(confounders(&cell(|run| run), &Environments::new()), []);
}

#[test]
fn each_confounder_describes_both_sides() {
    let other = |run: Run| Run {
        agent: Some("laptop".to_owned()),
        engine: None,
        target_kind: Some(TargetKind::Url),
        enforced: None,
        origin: Origin::Import,
        spec: RunSpec {
            generators: vec!["bench-02".to_owned()],
            duration_s: Some(60.0),
            warm_up_s: Some(60.0),
            ..run.spec.clone()
        },
        ..run
    };
    let found = confounders(&cell(other), &Environments::new());
    let kinds: Vec<_> = found.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, Circumstance::ALL[..8]);
    assert_eq!(found[2].1, "engines differ: baseline k6 1.8.1, candidate unknown");
    assert_eq!(found[3].1, "kinds differ: baseline process, candidate url");
}

#[test]
fn balanced_agents_of_one_experiment_are_no_confounder() {
    let on_two = |run: Run| {
        let agent = if run.repetition == 2 { "laptop" } else { "bench-01" };
        Run { agent: Some(agent.to_owned()), experiment: Some("night".to_owned().into()), ..run }
    };
    let both = |mut cell: GateCell| {
        cell.baseline = cell.baseline.into_iter().map(on_two).collect();
        cell
    };
    let kinds = |cell: &GateCell| {
        let known = |run: &Run| {
            let kernel = run.agent.as_deref().unwrap_or_default();
            (run.id.clone(), RunEnvironment { run: run.id.clone(), ..environment(&[("kernel.release", kernel)]) })
        };
        let environments = cell.baseline.iter().chain(&cell.candidate).map(known).collect();
        confounders(cell, &environments).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&both(cell(on_two))), []);
    let differ = [Circumstance::Agents, Circumstance::Environments];
    assert_eq!(kinds(&cell(on_two)), differ, "the baseline has one machine only");
    let mut fewer = both(cell(on_two));
    fewer.candidate.remove(1);
    assert_eq!(kinds(&fewer), differ, "the candidate has no run from the second");
    let later = |run: Run| Run { experiment: Some("later".to_owned().into()), ..on_two(run) };
    assert_eq!(kinds(&both(cell(later))), differ, "measured at another time");
}

#[test]
fn facts_of_the_machine_matter_in_every_run_and_facts_of_the_target_do_not() {
    let base = environment(&[("kernel.release", "6.1"), ("target.sha256", "a"), ("load.before", "0")]);
    let new = environment(&[("kernel.release", "6.1"), ("target.sha256", "b"), ("load.before", "9")]);
    let other = environment(&[("kernel.release", "6.12"), ("target.sha256", "a"), ("load.before", "0")]);
    let cell = cell(|run| run);
    let of = |runs: &[Run], known: &RunEnvironment| -> Environments {
        runs.iter().map(|run| (run.id.clone(), RunEnvironment { run: run.id.clone(), ..known.clone() })).collect()
    };
    let mut environments = of(&cell.baseline, &base);
    environments.extend(of(&cell.candidate, &new));
    assert_eq!(confounders(&cell, &environments), []);
    environments.extend(of(&cell.baseline[..1], &other));
    let found = confounders(&cell, &environments);
    assert_eq!(found[0].0, Circumstance::Environments);
    assert_eq!(found[0].1, "environments differ: baseline kernel 6.1 and 6.12, candidate kernel 6.1");
}

/// Which runs a change affects: of the baseline (`false`) or of the candidate, by repetition.
type Affected = fn(bool, u32) -> bool;

const AFFECTED: [Affected; 4] = [
    |is_candidate, _| is_candidate,
    |is_candidate, repetition| is_candidate && repetition == 6,
    |is_candidate, repetition| !is_candidate && repetition == 1,
    |_, repetition| repetition.is_multiple_of(2),
];

/// Changes what should be the same in all runs. A page separates the kinds of a target, so all runs of a side get one.
type Change = fn(&mut Run, &mut RunEnvironment);

const CHANGES: [(Circumstance, Change); 11] = [
    (Circumstance::Agents, |run, _| run.agent = Some("laptop".to_owned())),
    (Circumstance::Generators, |run, _| run.spec.generators = vec!["bench-02".to_owned()]),
    (Circumstance::Engine, |run, _| run.engine = None),
    (Circumstance::Kinds, |run, _| run.target_kind = Some(TargetKind::Url)),
    (Circumstance::Durations, |run, _| run.spec.duration_s = Some(60.0)),
    (Circumstance::WarmUps, |run, _| run.spec.warm_up_s = Some(60.0)),
    (Circumstance::Limits, |run, _| run.enforced = None),
    (Circumstance::Origins, |run, _| run.origin = Origin::Import),
    (Circumstance::Setups, |_, known| drop(known.facts.insert("target.env.LEVEL".to_owned(), "debug".to_owned()))),
    (Circumstance::Environments, |_, known| drop(known.facts.insert("kernel.release".to_owned(), "6.12".to_owned()))),
    (Circumstance::Work, |run, _| run.figures.work.bytes_per_request = Some(900.0)),
];

/// Six runs of each of two targets, with changes: each a place in [`CHANGES`] and one in [`AFFECTED`].
fn changed(changes: &[(usize, usize)]) -> (GateCell, ComparisonContext) {
    let mut known = ComparisonContext::default();
    let mut side = |target: &str| -> Vec<Run> {
        let is_candidate = target == "servy";
        let make = |repetition| {
            let mut run = run(target, repetition);
            run.figures.work.bytes_per_request = Some(100.0);
            let facts = [("kernel.release", "6.1"), ("target.env.LEVEL", "info"), ("target.sha256", target)];
            let target = target.to_owned();
            let mut environment = RunEnvironment { run: run.id.clone(), target, ..environment(&facts) };
            for (change, affected) in changes {
                let (circumstance, change) = CHANGES[*change];
                let whole_side = circumstance == Circumstance::Kinds;
                if AFFECTED[if whole_side { 0 } else { *affected }](is_candidate, repetition) {
                    change(&mut run, &mut environment);
                }
            }
            known.environments.insert(run.id.clone(), environment);
            run
        };
        (1..=6).map(make).collect()
    };
    let (baseline, candidate) = (side("gosherve"), side("servy"));
    (GateCell { name: "hash".to_owned(), baseline, candidate }, known)
}

/// What page and gate say of the same runs: whether they compare them, and what differs.
fn judged(changes: &[(usize, usize)]) -> [(bool, BTreeSet<&'static str>); 2] {
    let (cell, known) = changed(changes);
    let runs = cell.baseline.iter().chain(&cell.candidate).cloned().collect();
    let page = Comparison::by(runs, &Marks::default(), &Options::default(), &known);
    let row = &page.rows[0];
    let mut named: BTreeSet<_> = row.confounders.iter().map(|found| found.what.title()).collect();
    named.extend(row.work.iter().map(|_| Circumstance::Work.title()));
    let is_compared = row.cells[1].stat(Metric::Rps).decision != Some(Decision::NotComparable);
    let rules = ["rps<-5%".parse().expect("a rule")];
    let cells = [cell];
    let question = Question {
        rules: &rules,
        accept: &[],
        suspect: Suspect::Excluded,
        primary: None,
        max_repeat: None,
        cells: &cells,
        known: &known,
    };
    let reason = decide(&question).checks.remove(0).reason;
    let is_named = |one: &Circumstance| match one {
        Circumstance::Work => reason.contains("Response bytes per request differ"),
        one => reason.contains(&format!("{} differ", one.as_str())),
    };
    let gate: BTreeSet<_> = Circumstance::ALL.into_iter().filter(is_named).map(Circumstance::title).collect();
    [(is_compared, named), (gate.is_empty(), gate)]
}

#[test]
fn page_and_gate_agree_on_each_circumstance_alone() {
    for (change, (circumstance, _)) in CHANGES.iter().enumerate() {
        for affected in 0..AFFECTED.len() {
            let [page, gate] = judged(&[(change, affected)]);
            assert_eq!(page, gate, "{circumstance:?} in {affected}");
            let may_differ = match circumstance {
                Circumstance::Agents => affected == 3,
                // Different targets have different setups.
                Circumstance::Setups => affected == 0,
                // A median does not see one run of six, nor what both sides have.
                Circumstance::Work => affected != 0,
                _ => false,
            };
            assert_eq!(page.0, may_differ, "{circumstance:?} in {affected}");
        }
    }
    assert_eq!(judged(&[]), [(true, BTreeSet::new()), (true, BTreeSet::new())]);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(400))]
    #[test]
    fn page_and_gate_agree_on_several_circumstances(
        changes in proptest::collection::vec((0..CHANGES.len(), 0..AFFECTED.len()), 0..5),
    ) {
        let [page, gate] = judged(&changes);
        proptest::prop_assert_eq!(page, gate);
    }
}
