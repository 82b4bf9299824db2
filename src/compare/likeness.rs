//! Whether the runs of a row were made under like conditions: what was not alike may be the difference that is seen.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    selection::By,
};
use crate::runs::{
    Origin, Run,
    environment::{EnvironmentDifference, RunEnvironment, Weight},
};

/// Facts about the machines of runs, by the runs' ids, as far as they were looked up.
pub type Environments = BTreeMap<String, RunEnvironment>;

/// Something that should have been alike within a row and was not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Unlike {
    /// What, e.g. `Agents`.
    pub what: String,
    /// What there is of it, in words.
    pub values: Vec<String>,
    /// Ids of two runs that differ in it.
    pub runs: [String; 2],
}

/// What is looked at in every run, and what it is called.
type Part = (&'static str, fn(&Run) -> Option<String>);

const AGENTS: &str = "Agents";

const PARTS: [Part; 4] = [
    (AGENTS, |run| run.agent.clone()),
    ("k6 versions", |run| run.k6_version.clone()),
    ("Limits", |run| run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
    ("Origins", |run| {
        Some(match run.origin {
            Origin::Agent => "measured by an agent".to_owned(),
            Origin::Import => "imported".to_owned(),
        })
    }),
];

/// All that is unlike between the runs of a row that count.
pub fn unlike(row: &Row, by: By, environments: &Environments) -> Vec<Unlike> {
    if row.rivals().count() < 2 {
        return Vec::new();
    }
    let runs: Vec<&Run> = row.cells.iter().flat_map(Cell::counting).collect();
    // Who compares agents knows that they are not the same.
    let parts = PARTS.into_iter().filter(|(what, _)| !(by == By::Agent && *what == AGENTS));
    let machines = if by == By::Agent { None } else { of_machines(&runs, environments) };
    parts.filter_map(|part| of_part(&runs, part)).chain(machines).collect()
}

fn of_part(runs: &[&Run], (what, of): Part) -> Option<Unlike> {
    let mut values: BTreeMap<String, &Run> = BTreeMap::new();
    for run in runs {
        values.entry(of(run).unwrap_or_else(|| "not known".to_owned())).or_insert(run);
    }
    let mut firsts = values.values();
    let pair = [firsts.next()?.id.clone(), firsts.next()?.id.clone()];
    Some(Unlike { what: what.to_owned(), values: values.into_keys().collect(), runs: pair })
}

/// Machines that differ in what matters, though the agents are the same or because they are not: told by their facts.
fn of_machines(runs: &[&Run], environments: &Environments) -> Option<Unlike> {
    let mut known = runs.iter().filter_map(|run| environments.get(&run.id)).filter(|known| !known.facts.is_empty());
    let first = known.next()?;
    let mut facts = BTreeSet::new();
    let mut other = None;
    for environment in known {
        let difference = EnvironmentDifference::new(first.clone(), environment.clone());
        let matters = difference.of(Weight::Matters);
        if !matters.is_empty() {
            other.get_or_insert_with(|| environment.run.clone());
        }
        facts.extend(matters.iter().map(|fact| format!("{} ({})", fact.label, fact.group)));
    }
    Some(Unlike { what: "Machines".to_owned(), values: facts.into_iter().collect(), runs: [first.run.clone(), other?] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            Comparison, Wishes,
            made_up::{faster, repeated, run},
            metric::Metric,
            statistics::{Lead, Standing},
        },
        web::mark::Marks,
    };

    fn both() -> Vec<Run> {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        runs
    }

    fn of(runs: Vec<Run>, environments: &Environments, despite_unlike: bool) -> Comparison {
        let wishes = Wishes { despite_unlike, ..Wishes::default() };
        Comparison::by(runs, &Marks::default(), &wishes, environments)
    }

    fn environment(run: &Run, kernel: &str) -> (String, RunEnvironment) {
        let facts = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
        (run.id.clone(), RunEnvironment { facts, ..RunEnvironment::new(run, None) })
    }

    #[test]
    fn runs_of_two_machines_have_no_winner_until_somebody_says_so() {
        let mut runs = both();
        runs[11].agent = Some("laptop".to_owned());
        let asked = of(runs.clone(), &Environments::new(), false);
        let servy = asked.rows[0].cells[1].stat(Metric::Rps);
        assert_eq!((servy.standing, servy.best), (Some(Standing::Unlike), false));
        assert_eq!(asked.rows[0].lead(Metric::Rps), Lead::Unlike);
        assert!(asked.nevertheless.as_deref().is_some_and(|link| link.contains("unlike=true")));
        assert_eq!(asked.rows[0].unlike[0].values, ["bench-01", "laptop"]);
        let told = of(runs, &Environments::new(), true);
        assert_eq!(told.rows[0].cells[1].stat(Metric::Rps).standing, Some(Standing::Better));
        assert!(told.nevertheless.is_none() && told.notes.iter().any(|note| note.title == "Agents differ."));
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
        assert_eq!(unlike[0].runs, [runs[0].id.clone(), runs[7].id.clone()]);
    }

    #[test]
    fn runs_whose_circumstances_nobody_knows_are_compared() {
        let unknown = |run: Run| Run { agent: None, k6_version: None, enforced: None, origin: Origin::Import, ..run };
        let comparison = of(both().into_iter().map(unknown).collect(), &Environments::new(), false);
        assert_eq!(comparison.rows[0].cells[1].stat(Metric::Rps).standing, Some(Standing::Better));
    }
}
