//! What was not alike around the two sides of a cell. A difference in figures may come of it, so the gate does not decide
//! over it unless somebody accepts it. Pure.
//!
//! Sides from several agents are judged by the rule of the compare page: where both have as many runs from each agent of
//! the same experiments, the agents are no difference between them, and the machine of each is held against itself.

use std::collections::BTreeSet;

use super::cells::Cell;
use crate::{
    compare::{
        comparability::{Circumstance, Environments, is_balanced, unlike_machines},
        equal_work::{self, Side},
        work_difference::WorkDifference,
    },
    differences::AcceptedDifference,
    runs::model::Run,
};

/// What was not alike, with a sentence each.
pub fn unlike(cell: &Cell, environments: &Environments) -> Vec<(Circumstance, String)> {
    let sides = sides(cell);
    let differs = |one: &Circumstance| *one != Circumstance::Agents || !is_balanced(&sides);
    let plain = Circumstance::ALL.into_iter().filter(differs).filter_map(|one| Some((one, differ(cell, one)?)));
    plain.chain(facts(&sides, environments).map(|told| (Circumstance::Environments, told))).collect()
}

/// In what the work of both sides differs; what a user has accepted, too.
pub fn different_work(cell: &Cell, accepted: &[AcceptedDifference]) -> Vec<WorkDifference> {
    let [baseline, candidate] = sides(cell);
    let sides = [Side { name: "baseline", runs: &baseline }, Side { name: "candidate", runs: &candidate }];
    equal_work::between(sides, accepted)
}

/// The runs of both sides that count.
fn sides(cell: &Cell) -> [Vec<&Run>; 2] {
    [&cell.baseline, &cell.candidate].map(|runs| runs.iter().filter(|run| run.counts()).collect())
}

fn differ(cell: &Cell, circumstance: Circumstance) -> Option<String> {
    let of = |runs: &[Run]| {
        runs.iter().filter(|run| run.counts()).filter_map(|run| circumstance.of(run)).collect::<BTreeSet<_>>()
    };
    let (base, new) = (of(&cell.baseline), of(&cell.candidate));
    let told = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(" and ");
    (base.union(&new).count() > 1)
        .then(|| format!("{} differ: baseline {}, candidate {}", circumstance.as_str(), told(base), told(new)))
}

/// Facts that matter, of every run on both sides.
fn facts(sides: &[Vec<&Run>], environments: &Environments) -> Option<String> {
    const MOST: usize = 3;
    let word = |side: Option<&String>| side.map_or("not known", String::as_str).to_owned();
    let differ = unlike_machines(sides, environments)?;
    let told: Vec<String> = differ
        .facts
        .iter()
        .map(|one| format!("{} {} {} → {}", one.group, one.label, word(one.run.as_ref()), word(one.with.as_ref())))
        .collect();
    let more = told.len().saturating_sub(MOST);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    let listed = told.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
    Some(format!("environments differ: {listed}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::run,
        results::{conditions::Conditions, environment::facts::RunEnvironment},
        runs::model::Origin,
    };

    fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
        (1..=3).map(make).collect()
    }

    fn cell(change: impl Fn(Run) -> Run) -> Cell {
        let candidate = thrice(|n| change(Run { id: format!("new-{n}").into(), ..run("servy", n) }));
        Cell { name: String::new(), baseline: thrice(|n| run("servy", n)), candidate }
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
    fn what_is_alike_is_not_told() {
        assert_eq!(unlike(&cell(|run| run), &Environments::new()), []);
    }

    #[test]
    fn each_circumstance_that_differs_is_told_with_both_sides() {
        let other = |run: Run| Run {
            agent: Some("laptop".to_owned()),
            generators: vec!["bench-02".to_owned()],
            engine: None,
            duration_s: Some(60.0),
            warm_up_s: Some(60.0),
            enforced: None,
            origin: Origin::Import,
            ..run
        };
        let told = unlike(&cell(other), &Environments::new());
        let kinds: Vec<_> = told.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, Circumstance::ALL[..7]);
        assert_eq!(told[2].1, "engines differ: baseline k6 1.8.1, candidate not known");
    }

    #[test]
    fn sides_with_as_many_runs_from_each_agent_of_one_experiment_are_alike() {
        let on_two = |run: Run| {
            let agent = if run.repetition == 2 { "laptop" } else { "bench-01" };
            Run { agent: Some(agent.to_owned()), experiment: Some("night".to_owned().into()), ..run }
        };
        let both = |mut cell: Cell| {
            cell.baseline = cell.baseline.into_iter().map(on_two).collect();
            cell
        };
        let kinds = |cell: &Cell| {
            let known = |run: &Run| {
                let kernel = run.agent.as_deref().unwrap_or_default();
                (run.id.clone(), RunEnvironment { run: run.id.clone(), ..environment(&[("kernel.release", kernel)]) })
            };
            let environments = cell.baseline.iter().chain(&cell.candidate).map(known).collect();
            unlike(cell, &environments).into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&both(cell(on_two))), []);
        let differ = [Circumstance::Agents, Circumstance::Environments];
        assert_eq!(kinds(&cell(on_two)), differ, "the baseline has one machine only");
        let mut fewer = both(cell(on_two));
        fewer.candidate.remove(1);
        assert_eq!(kinds(&fewer), differ, "nothing of the candidate from the second");
        let later = |run: Run| Run { experiment: Some("later".to_owned().into()), ..on_two(run) };
        assert_eq!(kinds(&both(cell(later))), differ, "measured at another time");
    }

    #[test]
    fn facts_of_the_machine_matter_in_every_run_and_those_of_the_target_do_not() {
        let base = environment(&[("kernel.release", "6.1"), ("target.sha256", "a"), ("load.before", "0")]);
        let new = environment(&[("kernel.release", "6.1"), ("target.sha256", "b"), ("load.before", "9")]);
        let other = environment(&[("kernel.release", "6.12"), ("target.sha256", "a"), ("load.before", "0")]);
        let cell = cell(|run| run);
        let of = |runs: &[Run], known: &RunEnvironment| -> Environments {
            runs.iter().map(|run| (run.id.clone(), RunEnvironment { run: run.id.clone(), ..known.clone() })).collect()
        };
        let mut environments = of(&cell.baseline, &base);
        environments.extend(of(&cell.candidate, &new));
        assert_eq!(unlike(&cell, &environments), []);
        environments.extend(of(&cell.baseline[..1], &other));
        let told = unlike(&cell, &environments);
        assert_eq!(told[0].0, Circumstance::Environments);
        assert!(told[0].1.contains("System kernel 6.12 → 6.1"), "one run of the baseline is enough: {told:?}");
    }
}
