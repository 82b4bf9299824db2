//! Confounders: circumstances that differ between the two sides of a cell. The gate cannot say until the caller accepts
//! them, because they may explain the difference. Pure.
//!
//! Sides from several agents follow the rule of the compare page: if both sides have the same number of runs from each
//! agent of the same experiments, the agents are no confounder, and each machine is compared with itself.

use std::collections::BTreeSet;

use super::cells::GateCell;
use crate::{
    compare::{
        comparability::{Circumstance, Environments, Machines, differing_code, is_balanced, machine_differences},
        comparison_context::ComparisonContext,
        equal_work::{self, NamedRuns},
        work_difference::WorkDifference,
    },
    runs::model::Run,
};

/// Returns the confounders of a cell, each with a description.
pub fn confounders(cell: &GateCell, environments: &Environments) -> Vec<(Circumstance, String)> {
    let sides = sides(cell);
    let differs = |one: &Circumstance| *one != Circumstance::Agents || !is_balanced(&sides);
    let plain = Circumstance::ALL.into_iter().filter(differs).filter_map(|one| Some((one, differ(cell, one)?)));
    let code = differing_code(&sides).map(|(values, _)| {
        (Circumstance::Setups, format!("setups differ: one side measured {}", values.join(" and ")))
    });
    plain.chain(code).chain(facts(&sides, environments)).collect()
}

/// Returns how the work of both sides differs, including differences that a user has accepted.
pub fn different_work(cell: &GateCell, known: &ComparisonContext) -> Vec<WorkDifference> {
    let [baseline, candidate] = sides(cell);
    let sides = [NamedRuns { name: "baseline", runs: &baseline }, NamedRuns { name: "candidate", runs: &candidate }];
    equal_work::between(sides, known)
}

/// Returns the valid runs of both sides.
fn sides(cell: &GateCell) -> [Vec<&Run>; 2] {
    [&cell.baseline, &cell.candidate].map(|runs| runs.iter().filter(|run| run.counts()).collect())
}

fn differ(cell: &GateCell, circumstance: Circumstance) -> Option<String> {
    let of = |runs: &[Run]| {
        runs.iter().filter(|run| run.counts()).filter_map(|run| circumstance.value_in(run)).collect::<BTreeSet<_>>()
    };
    let (base, new) = (of(&cell.baseline), of(&cell.candidate));
    let joined = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
    (base.union(&new).count() > 1)
        .then(|| format!("{} differ: baseline {}, candidate {}", circumstance.as_str(), joined(base), joined(new)))
}

/// Describes the relevant facts about the machines, and about a target within one side, that differ between two runs.
fn facts(sides: &[Vec<&Run>], environments: &Environments) -> Vec<(Circumstance, String)> {
    let found = machine_differences(sides, environments).map(Machines::by_circumstance).unwrap_or_default();
    found.into_iter().map(|(circumstance, differ)| (circumstance, describe(circumstance, &differ))).collect()
}

fn describe(circumstance: Circumstance, differ: &Machines) -> String {
    const MAX_LISTED: usize = 3;
    let word = |side: Option<&String>| side.map_or("not known", String::as_str).to_owned();
    let facts: Vec<String> = differ
        .facts
        .iter()
        .map(|one| format!("{} {} {} → {}", one.group, one.label, word(one.run.as_ref()), word(one.with.as_ref())))
        .collect();
    let more = facts.len().saturating_sub(MAX_LISTED);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    let listed = facts.iter().take(MAX_LISTED).cloned().collect::<Vec<_>>().join("; ");
    format!("{} differ: {listed}{rest}", circumstance.as_str())
}

#[cfg(test)]
mod tests {
    use brewbench_wire::target::TargetKind;

    use super::*;
    use crate::{
        compare::testing::run,
        results::{conditions::Conditions, environment::facts::RunEnvironment},
        runs::model::{Origin, RunSpec},
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
        assert!(found[0].1.contains("System kernel 6.12 → 6.1"), "one run of the baseline is enough: {found:?}");
    }
}
