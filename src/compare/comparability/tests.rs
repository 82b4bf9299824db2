//! Each circumstance that differs, and what does not count.

use super::*;
use crate::{
    compare::{
        chosen::Options,
        known::Known,
        metric::Metric,
        statistics::{Decision, Lead},
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

fn knowing(environments: &Environments) -> Known {
    Known { environments: environments.clone(), ..Known::default() }
}

fn of(runs: Vec<Run>, environments: &Environments, allow_confounders: bool) -> Comparison {
    let options = Options { allow_confounders, ..Options::default() };
    Comparison::by(runs, &Marks::default(), &options, &knowing(environments))
}

fn environment(run: &Run, kernel: &str) -> (RunId, RunEnvironment) {
    let facts = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
    (run.id.clone(), RunEnvironment { facts, ..RunEnvironment::new(run, None) })
}

#[test]
fn runs_of_two_machines_have_no_winner_until_somebody_says_so() {
    let mut runs = both();
    runs[11].agent = Some("laptop".to_owned());
    let asked = of(runs.clone(), &Environments::new(), false);
    let servy = asked.rows[0].cells[1].stat(Metric::Rps);
    assert_eq!((servy.decision, servy.best), (Some(Decision::NotComparable), false));
    assert_eq!(asked.rows[0].lead(Metric::Rps), Lead::NotComparable);
    assert!(asked.with_confounders.as_deref().is_some_and(|link| link.contains("allow_confounders=true")));
    assert_eq!(asked.rows[0].unlike[0].values, ["bench-01", "laptop"]);
    let told = of(runs, &Environments::new(), true);
    assert_eq!(told.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
    assert!(told.with_confounders.is_none() && told.notes.iter().any(|note| note.title == "Agents differ."));
}

/// Runs of one experiment, those of even repetitions on a machine that is a tenth slower.
fn spread() -> Vec<Run> {
    let of = |run: Run| {
        let run = Run { experiment: Some("night".to_owned().into()), ..run };
        if run.repetition.is_multiple_of(2) { Run { agent: Some("slow".to_owned()), ..faster(run, 0.9) } } else { run }
    };
    both().into_iter().map(of).collect()
}

/// What stands of the throughput of the second target, and what was unlike.
fn verdict(runs: Vec<Run>, environments: &Environments) -> (Option<Decision>, Vec<String>) {
    let row = of(runs, environments, false).rows.remove(0);
    (row.cells[1].stat(Metric::Rps).decision, row.unlike.into_iter().map(|unlike| unlike.what).collect())
}

#[test]
fn cells_with_as_many_runs_from_each_machine_have_a_winner() {
    assert_eq!(verdict(spread(), &Environments::new()), (Some(Decision::Better), Vec::new()));
    let row = of(spread(), &Environments::new(), false).rows.remove(0);
    let of_one_machine = of(both(), &Environments::new(), false).rows.remove(0);
    let width = |row: &Row| row.cells[1].stat(Metric::Rps).effect.and_then(|known| known.width());
    let apart = (width(&row).expect("an interval") - width(&of_one_machine).expect("an interval")).abs();
    assert!(apart < 0.02, "what differs between the machines cancels within the blocks: {apart}");
}

#[test]
fn cells_that_are_out_of_balance_have_none() {
    let held_back = (Some(Decision::NotComparable), vec!["Agents".to_owned()]);
    let told = |change: fn(&mut Vec<Run>)| {
        let mut runs = spread();
        change(&mut runs);
        verdict(runs, &Environments::new())
    };
    let moved = told(|runs| runs[0].agent = Some("slow".to_owned()));
    assert_eq!(moved, held_back, "as many runs, but not of each machine");
    assert_eq!(told(|runs| drop(runs.remove(3))), held_back, "one less of the slow machine");
    assert_eq!(told(|runs| runs.truncate(11)), held_back, "one less of the other target");
    let of_one = told(|runs| {
        for run in &mut runs[..6] {
            run.agent = Some("bench-01".to_owned());
        }
    });
    assert_eq!(of_one, held_back, "one target was measured on one machine only");
    let third = told(|runs| runs[11].agent = Some("third".to_owned()));
    assert_eq!(third, held_back, "a machine that measured one target only");
    let invalid = told(|runs| runs[2] = judged(runs[2].clone(), Verdict::Invalid, "all failed"));
    assert_eq!(invalid, held_back, "one that does not count");
    let unknown = told(|runs| {
        for run in runs.iter_mut().filter(|run| run.repetition == 1) {
            run.agent = None;
        }
    });
    assert_eq!(unknown, held_back, "nobody knows whether it was the same");
    let apart = told(|runs| {
        for run in &mut runs[..6] {
            run.experiment = Some("other".to_owned().into());
        }
    });
    assert_eq!(apart, held_back, "each target in an experiment of its own");
    assert_eq!(told(|runs| runs[1].figures.p99_ms = None), held_back, "one figure is another mix of machines");
}

#[test]
fn where_cells_are_balanced_each_machine_is_held_against_itself() {
    let kernel = |run: &Run| if run.agent.as_deref() == Some("slow") { "5.10" } else { "6.1" };
    let runs = spread();
    let mut known: Environments = runs.iter().map(|run| environment(run, kernel(run))).collect();
    assert_eq!(verdict(runs.clone(), &known), (Some(Decision::Better), Vec::new()));
    known.extend([environment(&runs[7], "6.2")]);
    assert_eq!(verdict(runs, &known), (Some(Decision::NotComparable), vec!["Machines".to_owned()]));
}

#[test]
fn a_machine_that_got_another_kernel_meanwhile_is_another_machine() {
    let runs = both();
    let alike: Environments = runs.iter().map(|run| environment(run, "6.1")).collect();
    assert!(of(runs.clone(), &alike, false).rows[0].unlike.is_empty());
    let mut changed = alike;
    changed.extend([environment(&runs[7], "6.2")]);
    let unlike = of(runs.clone(), &changed, false).rows[0].unlike.clone();
    assert_eq!(
        (unlike[0].what.as_str(), unlike[0].values.as_slice()),
        ("Machines", ["kernel (System)".to_owned()].as_slice())
    );
    assert_eq!(unlike[0].runs, [runs[6].id.clone(), runs[7].id.clone()], "a cell is held against its first run");
}

#[test]
fn another_program_is_looked_at_between_two_cells_and_told_within_one() {
    let runs = both();
    let of = |sum: fn(&Run) -> String| -> Environments {
        let known = |run: &Run| {
            let facts =
                BTreeMap::from([("kernel".to_owned(), "6.1".to_owned()), ("target.sha256".to_owned(), sum(run))]);
            // As where one version was built twice.
            let (target, version) = ("servy".to_owned(), None);
            (run.id.clone(), RunEnvironment { target, version, facts, ..RunEnvironment::new(run, None) })
        };
        runs.iter().map(known).collect()
    };
    let unlike = |environments: &Environments| {
        let known = knowing(environments);
        let comparison = Comparison::by(runs.clone(), &Marks::default(), &Options::default(), &known);
        comparison.rows[0].unlike.clone()
    };
    assert_eq!(unlike(&of(|run| run.target.clone())), []);
    assert_eq!(unlike(&of(|run| run.repetition.to_string()))[0].what, "Machines");
}

#[test]
fn runs_whose_circumstances_nobody_knows_are_compared() {
    let unknown = |run: Run| Run { agent: None, engine: None, enforced: None, origin: Origin::Import, ..run };
    let comparison = of(both().into_iter().map(unknown).collect(), &Environments::new(), false);
    assert_eq!(comparison.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
}
