//! Whether the runs of a row were made under like conditions: what was not alike may be the difference that is seen.
//! Pure.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    selection::By,
};
use crate::{
    runs::{
        Origin, Run,
        environment::{EnvironmentDifference, FactDifference, RunEnvironment, Weight},
    },
    web::format,
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

/// What should be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// The machines that measured.
    Agents,
    /// The machines that the load came from, where it was not the target's own.
    Generators,
    /// Versions of k6.
    K6,
    /// How long was measured.
    Durations,
    /// How long the load lasted before that.
    WarmUps,
    /// What held the targets to their sizes.
    Limits,
    /// Measured by an agent or imported.
    Origins,
    /// Facts of the machine that matter, such as its kernel; not those of the targets.
    Environments,
}

impl Circumstance {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Agents,
        Self::Generators,
        Self::K6,
        Self::Durations,
        Self::WarmUps,
        Self::Limits,
        Self::Origins,
        Self::Environments,
    ];

    /// The word for addresses and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Generators => "generators",
            Self::K6 => "k6",
            Self::Durations => "durations",
            Self::WarmUps => "warm-ups",
            Self::Limits => "limits",
            Self::Origins => "origins",
            Self::Environments => "environments",
        }
    }

    /// At the head of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Generators => "Generators",
            Self::K6 => "k6 versions",
            Self::Durations => "Durations",
            Self::WarmUps => "Warm-ups",
            Self::Limits => "Limits",
            Self::Origins => "Origins",
            Self::Environments => "Machines",
        }
    }

    /// What it was in a run; none where [`machines`] tells.
    pub fn of(self, run: &Run) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        let known = |value: Option<String>| Some(value.unwrap_or_else(|| "not known".to_owned()));
        match self {
            Self::Agents => known(run.agent.clone()),
            Self::Generators => Some(load_from(run)),
            Self::K6 => known(run.k6_version.clone()),
            Self::Durations => known(run.duration_s.map(seconds)),
            Self::WarmUps => known(run.warm_up_s.map(seconds)),
            Self::Limits => known(run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
            Self::Origins => Some(match run.origin {
                Origin::Agent => "measured by an agent".to_owned(),
                Origin::Import => "imported".to_owned(),
            }),
            Self::Environments => None,
        }
    }
}

/// Where the load of a run came from.
fn load_from(run: &Run) -> String {
    if run.generators.is_empty() { "the target’s machine".to_owned() } else { run.generators.join(", ") }
}

impl FromStr for Circumstance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} can't be accepted; there are {all}")
        })
    }
}

/// All that is unlike between the runs of a row that count. How long was measured is a doubt, and holds nothing back.
pub fn unlike(row: &Row, by: By, environments: &Environments) -> Vec<Unlike> {
    if row.rivals().count() < 2 {
        return Vec::new();
    }
    let runs: Vec<&Run> = row.cells.iter().flat_map(Cell::counting).collect();
    let holds_back = |circumstance: &Circumstance| match circumstance {
        Circumstance::Durations => false,
        // Who compares agents knows that they are not the same.
        Circumstance::Agents => by != By::Agent,
        _ => true,
    };
    let parts = Circumstance::ALL.into_iter().filter(holds_back);
    let cells: Vec<Vec<&Run>> = row.rivals().map(|cell| cell.counting().collect()).collect();
    let machines = match by {
        // Those of one agent are to be alike nevertheless.
        By::Agent => cells.into_iter().find_map(|cell| machines(&[cell], environments)),
        _ => machines(&cells, environments),
    };
    let machines = machines.map(|Machines { facts, runs }| Unlike {
        what: Circumstance::Environments.title().to_owned(),
        values: facts.iter().map(|fact| format!("{} ({})", fact.label, fact.group)).collect(),
        runs,
    });
    parts.filter_map(|part| of_part(&runs, part)).chain(machines).collect()
}

fn of_part(runs: &[&Run], circumstance: Circumstance) -> Option<Unlike> {
    let mut values: BTreeMap<String, &Run> = BTreeMap::new();
    for run in runs {
        values.entry(circumstance.of(run)?).or_insert(run);
    }
    let mut firsts = values.values();
    let pair = [firsts.next()?.id.clone(), firsts.next()?.id.clone()];
    Some(Unlike { what: circumstance.title().to_owned(), values: values.into_keys().collect(), runs: pair })
}

/// Machines that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// In what: each fact once, by name.
    pub facts: Vec<FactDifference>,
    /// Ids of two runs that differ.
    pub runs: [String; 2],
}

/// Runs whose machines differ in what matters, though their agents may be the same: every run of a cell is held against
/// its first, and the firsts against each other. Facts of the targets tell only within a cell, where they should be one
/// program; that those of two cells differ is what is looked at. Which k6 it was is a circumstance of its own.
pub fn machines(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
    let known = |run: &&Run| environments.get(&run.id).filter(|known| !known.facts.is_empty());
    let cells: Vec<Vec<&RunEnvironment>> = cells
        .iter()
        .map(|runs| runs.iter().filter_map(known).collect::<Vec<_>>())
        .filter(|cell| !cell.is_empty())
        .collect();
    let within = cells.iter().flat_map(|cell| cell.iter().skip(1).map(|other| (cell[0], *other, true)));
    let between = cells.iter().skip(1).map(|cell| (cells[0][0], cell[0], false));
    let mut facts: BTreeMap<String, FactDifference> = BTreeMap::new();
    let mut pair = None;
    for (one, other, is_one_cell) in within.chain(between) {
        let matters = |fact: &str| !fact.starts_with("k6.") && (is_one_cell || !fact.starts_with("target."));
        let difference = EnvironmentDifference::new(one.clone(), other.clone());
        for fact in difference.of(Weight::Matters).into_iter().filter(|found| matters(&found.fact)) {
            pair.get_or_insert_with(|| [one.run.clone(), other.run.clone()]);
            facts.entry(fact.fact.clone()).or_insert_with(|| fact.clone());
        }
    }
    Some(Machines { facts: facts.into_values().collect(), runs: pair? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            Comparison, Wishes,
            known::Known,
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

    fn knowing(environments: &Environments) -> Known {
        Known { environments: environments.clone(), ..Known::default() }
    }

    fn of(runs: Vec<Run>, environments: &Environments, despite_unlike: bool) -> Comparison {
        let wishes = Wishes { despite_unlike, ..Wishes::default() };
        Comparison::by(runs, &Marks::default(), &wishes, &knowing(environments))
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
            let comparison = Comparison::by(runs.clone(), &Marks::default(), &Wishes::default(), &known);
            comparison.rows[0].unlike.clone()
        };
        assert_eq!(unlike(&of(|run| run.target.clone())), []);
        assert_eq!(unlike(&of(|run| run.repetition.to_string()))[0].what, "Machines");
    }

    #[test]
    fn runs_whose_circumstances_nobody_knows_are_compared() {
        let unknown = |run: Run| Run { agent: None, k6_version: None, enforced: None, origin: Origin::Import, ..run };
        let comparison = of(both().into_iter().map(unknown).collect(), &Environments::new(), false);
        assert_eq!(comparison.rows[0].cells[1].stat(Metric::Rps).standing, Some(Standing::Better));
    }
}
