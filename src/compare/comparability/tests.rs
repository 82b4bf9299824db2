//! Tests of each confounder, and of differences that are none.

use super::*;
use crate::{
    compare::{
        cell::Row,
        chosen::Options,
        comparison_context::ComparisonContext,
        metric::Metric,
        statistics::{Decision, Leader},
        testing::{faster, judged, repeated, run},
        view::Comparison,
    },
    runs::verdict::Verdict,
    web::series_style::Marks,
};

fn both() -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
    runs
}

fn context(environments: &Environments) -> ComparisonContext {
    ComparisonContext { environments: environments.clone(), ..ComparisonContext::default() }
}

fn compare(runs: Vec<Run>, environments: &Environments, allow_confounders: bool) -> Comparison {
    let options = Options { allow_confounders, ..Options::default() };
    Comparison::by(runs, &Marks::default(), &options, &context(environments))
}

fn environment(run: &Run, kernel: &str) -> (RunId, RunEnvironment) {
    let facts = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
    (run.id.clone(), RunEnvironment { facts, ..RunEnvironment::new(run, None) })
}

#[test]
fn runs_of_two_machines_have_no_winner_unless_confounders_are_allowed() {
    let mut runs = both();
    runs[11].agent = Some("laptop".to_owned());
    let comparison = compare(runs.clone(), &Environments::new(), false);
    let servy = comparison.rows[0].cells[1].stat(Metric::Rps);
    assert_eq!((servy.decision, servy.best), (Some(Decision::NotComparable), false));
    assert_eq!(comparison.rows[0].leader(Metric::Rps), Leader::NotComparable);
    assert!(comparison.with_confounders.as_deref().is_some_and(|link| link.contains("allow_confounders=true")));
    assert_eq!(comparison.rows[0].confounders[0].values, ["bench-01", "laptop"]);
    let allowed = compare(runs, &Environments::new(), true);
    assert_eq!(allowed.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
    assert!(allowed.with_confounders.is_none() && allowed.notes.iter().any(|note| note.title == "Agents differ."));
}

/// Runs of one experiment; even repetitions ran on a machine that is 10 % slower.
fn on_two_machines() -> Vec<Run> {
    let place = |run: Run| {
        let run = Run { experiment: Some("night".to_owned().into()), ..run };
        if run.repetition.is_multiple_of(2) { Run { agent: Some("slow".to_owned()), ..faster(run, 0.9) } } else { run }
    };
    both().into_iter().map(place).collect()
}

/// The decision on the throughput of the second target, and the confounders.
fn verdict(runs: Vec<Run>, environments: &Environments) -> (Option<Decision>, Vec<String>) {
    let row = compare(runs, environments, false).rows.remove(0);
    (
        row.cells[1].stat(Metric::Rps).decision,
        row.confounders.iter().map(|confounder| confounder.what.title().to_owned()).collect(),
    )
}

#[test]
fn balanced_cells_have_a_winner() {
    assert_eq!(verdict(on_two_machines(), &Environments::new()), (Some(Decision::Better), Vec::new()));
    let row = compare(on_two_machines(), &Environments::new(), false).rows.remove(0);
    let on_one_machine = compare(both(), &Environments::new(), false).rows.remove(0);
    let width = |row: &Row| row.cells[1].stat(Metric::Rps).effect.and_then(|known| known.width());
    let apart = (width(&row).expect("an interval") - width(&on_one_machine).expect("an interval")).abs();
    assert!(apart < 0.02, "the difference between the machines cancels within the blocks: {apart}");
}

#[test]
fn unbalanced_cells_have_no_winner() {
    let not_comparable = (Some(Decision::NotComparable), vec!["Agents".to_owned()]);
    let changed = |change: fn(&mut Vec<Run>)| {
        let mut runs = on_two_machines();
        change(&mut runs);
        verdict(runs, &Environments::new())
    };
    let moved = changed(|runs| runs[0].agent = Some("slow".to_owned()));
    assert_eq!(moved, not_comparable, "same number of runs, but not from each machine");
    assert_eq!(changed(|runs| drop(runs.remove(3))), not_comparable, "one run less from the slow machine");
    assert_eq!(changed(|runs| runs.truncate(11)), not_comparable, "one run less of the other target");
    let single = changed(|runs| {
        for run in &mut runs[..6] {
            run.agent = Some("bench-01".to_owned());
        }
    });
    assert_eq!(single, not_comparable, "one target was measured on one machine only");
    let third = changed(|runs| runs[11].agent = Some("third".to_owned()));
    assert_eq!(third, not_comparable, "a machine that measured one target only");
    let invalid = changed(|runs| runs[2] = judged(runs[2].clone(), Verdict::Invalid, "all failed"));
    assert_eq!(invalid, not_comparable, "a run that does not count");
    let unknown = changed(|runs| {
        for run in runs.iter_mut().filter(|run| run.repetition == 1) {
            run.agent = None;
        }
    });
    assert_eq!(unknown, not_comparable, "unknown agents may differ");
    let apart = changed(|runs| {
        for run in &mut runs[..6] {
            run.experiment = Some("other".to_owned().into());
        }
    });
    assert_eq!(apart, not_comparable, "each target in its own experiment");
    assert_eq!(changed(|runs| runs[1].figures.p99_ms = None), not_comparable, "one metric has another mix of machines");
}

#[test]
fn environments_of_balanced_cells_are_compared_within_each_machine() {
    let kernel = |run: &Run| if run.agent.as_deref() == Some("slow") { "5.10" } else { "6.1" };
    let runs = on_two_machines();
    let mut known: Environments = runs.iter().map(|run| environment(run, kernel(run))).collect();
    assert_eq!(verdict(runs.clone(), &known), (Some(Decision::Better), Vec::new()));
    known.extend([environment(&runs[7], "6.2")]);
    assert_eq!(verdict(runs, &known), (Some(Decision::NotComparable), vec!["Machines".to_owned()]));
}

#[test]
fn a_kernel_update_between_the_runs_is_a_confounder() {
    let runs = both();
    let same: Environments = runs.iter().map(|run| environment(run, "6.1")).collect();
    assert!(compare(runs.clone(), &same, false).rows[0].confounders.is_empty());
    let mut changed = same;
    changed.extend([environment(&runs[7], "6.2")]);
    let confounders = compare(runs.clone(), &changed, false).rows[0].confounders.clone();
    assert_eq!(
        (confounders[0].what.title(), confounders[0].values.as_slice()),
        ("Machines", ["kernel (System)".to_owned()].as_slice())
    );
    assert_eq!(
        confounders[0].runs,
        [runs[6].id.clone(), runs[7].id.clone()],
        "runs are compared with the first of a cell"
    );
}

#[test]
fn different_executables_are_compared_between_cells_and_a_confounder_within_one() {
    let runs = both();
    let with_sum = |sum: fn(&Run) -> String| -> Environments {
        let known = |run: &Run| {
            let facts =
                BTreeMap::from([("kernel".to_owned(), "6.1".to_owned()), ("target.sha256".to_owned(), sum(run))]);
            // One version that was built twice.
            let (target, version) = ("servy".to_owned(), None);
            (run.id.clone(), RunEnvironment { target, version, facts, ..RunEnvironment::new(run, None) })
        };
        runs.iter().map(known).collect()
    };
    let confounders = |environments: &Environments| {
        let known = context(environments);
        let comparison = Comparison::by(runs.clone(), &Marks::default(), &Options::default(), &known);
        comparison.rows[0].confounders.clone()
    };
    assert_eq!(confounders(&with_sum(|run| run.spec.target.clone())), []);
    assert_eq!(confounders(&with_sum(|run| run.repetition.to_string()))[0].what, Circumstance::Setups);
}

#[test]
fn runs_with_unknown_circumstances_are_compared() {
    let unknown = |run: Run| Run { agent: None, engine: None, enforced: None, origin: Origin::Import, ..run };
    let comparison = compare(both().into_iter().map(unknown).collect(), &Environments::new(), false);
    assert_eq!(comparison.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
}

#[test]
fn a_third_target_in_other_circumstances_does_not_keep_two_from_being_compared() {
    let mut runs = both();
    runs.extend(repeated(|n| Run { agent: Some("laptop".to_owned()), ..run("third", n) }));
    let row = compare(runs, &Environments::new(), false).rows.remove(0);
    let decisions = [1, 2].map(|place| row.cells[place].stat(Metric::Rps).decision);
    assert_eq!(decisions, [Some(Decision::Better), Some(Decision::NotComparable)], "as a gate of each pair says");
    let pairs: Vec<_> = row.confounders.iter().map(|one| (one.what, one.cells)).collect();
    assert_eq!(pairs, [(Circumstance::Agents, [0, 2]), (Circumstance::Agents, [1, 2])]);
    assert_eq!(row.confounders[0].sides, [["bench-01"], ["laptop"]]);
}

#[test]
fn runs_of_different_durations_are_not_compared_unless_their_loads_are_what_is_compared() {
    let last = |run: Run, duration_s: f64| {
        let spec = crate::runs::model::RunSpec { duration_s: Some(duration_s), ..run.spec.clone() };
        Run { spec, ..run }
    };
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| last(faster(run("servy", n), 1.25), 60.0)));
    assert_eq!(
        verdict(runs, &Environments::new()),
        (Some(Decision::NotComparable), vec!["Durations".to_owned()]),
        "what grows with time looks like a difference"
    );
    let (short, long) = (run("servy", 1), last(run("servy", 2), 60.0));
    let found = |cells: &[Vec<&Run>], by| confounders(cells, by, &Environments::new()).len();
    assert_eq!(found(&[vec![&short], vec![&long]], By::Load), 0);
    assert_eq!(found(&[vec![&short, &long]], By::Load), 1, "one load");
    assert_eq!(found(&[vec![&short, &long]], By::Target), 1, "a median would mix them");
}

#[test]
fn another_folder_of_the_build_cache_is_no_confounder() {
    let runs = both();
    let build = |run: &Run| {
        let folder = format!("/var/lib/brewbench-runs/a1.builds/api/done/{}-{:012}", "ab".repeat(20), run.repetition);
        let environment = BTreeMap::from([("target.executable".to_owned(), format!("{folder}/bin/api"))]);
        let evidence = crate::results::evidence::Evidence { environment, ..Default::default() };
        (run.id.clone(), RunEnvironment::new(run, Some(&evidence)))
    };
    let known: Environments = runs.iter().map(build).collect();
    assert_eq!(verdict(runs, &known), (Some(Decision::Better), Vec::new()));
}
