//! Finds confounders: differences between the runs of a row besides what is compared. Pure.
//!
//! The cells of an experiment on several machines are balanced: each has the same number of runs from each machine
//! ([`is_balanced`]). Then machines differ within cells and not between them. As one machine measures a whole block,
//! the difference between machines cancels in the test.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::By,
};
use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::Engine,
    metrics,
    results::environment::{
        difference::{EnvironmentDifference, FactDifference, Weight},
        facts::RunEnvironment,
    },
    runs::{
        code::{code_of, describe_code},
        model::{Origin, Run},
    },
    web::format,
};

/// Environments of runs by run id, as far as they were loaded.
pub type Environments = BTreeMap<RunId, RunEnvironment>;

/// A confounder: something besides what is compared that differs within a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Confounder {
    /// What differs, e.g. `Agents`.
    pub what: String,
    /// The different values, as text.
    pub values: Vec<String>,
    /// Ids of two runs that differ.
    #[schema(value_type = [String; 2])]
    pub runs: [RunId; 2],
}

/// A condition that should be the same for all runs of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// The agents that measured.
    Agents,
    /// The machines that generated the load, if other than the target's.
    Generators,
    /// The load generator and its version.
    Engine,
    /// How the target was provided.
    Kinds,
    /// Duration of the measurement.
    Durations,
    /// Duration of the warm-up.
    WarmUps,
    /// What enforced the machine size.
    Limits,
    /// Whether an agent measured the run or it was imported.
    Origins,
    /// Code, arguments and variables of a target that are different in the runs of one cell.
    Setups,
    /// Relevant facts of the machine, such as its kernel, but not those of the target.
    Environments,
    /// Work done per iteration; see [`super::equal_work`].
    Work,
}

impl Circumstance {
    /// All circumstances.
    pub const ALL: [Self; 11] = [
        Self::Agents,
        Self::Generators,
        Self::Engine,
        Self::Kinds,
        Self::Durations,
        Self::WarmUps,
        Self::Limits,
        Self::Origins,
        Self::Setups,
        Self::Environments,
        Self::Work,
    ];

    /// The name in URLs and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Generators => "generators",
            Self::Engine => "engines",
            Self::Kinds => "kinds",
            Self::Durations => "durations",
            Self::WarmUps => "warm-ups",
            Self::Limits => "limits",
            Self::Origins => "origins",
            Self::Setups => "setups",
            Self::Environments => "environments",
            Self::Work => "work",
        }
    }

    /// The name at the start of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Generators => "Generators",
            Self::Engine => "Load generators",
            Self::Kinds => "Kinds of targets",
            Self::Durations => "Durations",
            Self::WarmUps => "Warm-ups",
            Self::Limits => "Limits",
            Self::Origins => "Origins",
            Self::Setups => "Setups of a target",
            Self::Environments => "Machines",
            Self::Work => "Work",
        }
    }

    /// Returns the value in a run; none for what [`machine_differences`], [`differing_code`] or
    /// [`super::equal_work`] compares.
    pub fn value_in(self, run: &Run) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        let known = |value: Option<String>| Some(value.unwrap_or_else(|| "unknown".to_owned()));
        match self {
            Self::Agents => known(run.agent.clone()),
            Self::Generators => Some(load_from(run)),
            Self::Engine => known(run.engine.as_ref().map(Engine::to_string)),
            // A kind is unknown only of imports, which have an origin of their own.
            Self::Kinds => run.target_kind.map(|kind| kind.to_string()),
            Self::Durations => known(run.spec.duration_s.map(seconds)),
            Self::WarmUps if run.spec.warm_up_auto => Some("until the target was steady".to_owned()),
            Self::WarmUps => known(run.spec.warm_up_s.map(seconds)),
            Self::Limits => known(run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
            Self::Origins => Some(match run.origin {
                Origin::Agent => "measured by an agent".to_owned(),
                Origin::Import => "imported".to_owned(),
            }),
            Self::Setups | Self::Environments | Self::Work => None,
        }
    }
}

/// Describes which machines generated the load of a run.
fn load_from(run: &Run) -> String {
    run.load_from().unwrap_or_else(|| "the target’s machine".to_owned())
}

impl FromStr for Circumstance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} is not a confounder; use one of {all}")
        })
    }
}

/// Finds the confounders of the runs of a row that count, also of a row with one cell, whose medians would mix them.
/// Different durations only cause a note.
pub fn confounders(row: &Row, by: By, environments: &Environments) -> Vec<Confounder> {
    let runs: Vec<&Run> = row.cells.iter().flat_map(Cell::counting).collect();
    let cells: Vec<Vec<&Run>> = row.compared_cells().map(|cell| cell.counting().collect()).collect();
    let confounds = |circumstance: &Circumstance| match circumstance {
        Circumstance::Durations => false,
        // A comparison by agent expects different agents.
        Circumstance::Agents => by != By::Agent && !is_balanced(&cells),
        _ => true,
    };
    let parts = Circumstance::ALL.into_iter().filter(confounds);
    let machines = match by {
        // The environments of one agent must still be the same.
        By::Agent => cells.iter().find_map(|cell| machines(std::slice::from_ref(cell), environments)),
        _ => machine_differences(&cells, environments),
    };
    let machines = machines.map(Machines::by_circumstance).unwrap_or_default().into_iter();
    let machines = machines.map(|(circumstance, Machines { facts, runs })| Confounder {
        what: circumstance.title().to_owned(),
        values: facts.iter().map(|fact| format!("{} ({})", fact.label, fact.group)).collect(),
        runs,
    });
    let code = differing_code(&cells).map(|(values, runs)| Confounder {
        what: Circumstance::Setups.title().to_owned(),
        values,
        runs,
    });
    parts.filter_map(|part| differing_values(&runs, part)).chain(code).chain(machines).collect()
}

/// Finds runs of one cell that measured different code, in words.
pub fn differing_code(cells: &[Vec<&Run>]) -> Option<(Vec<String>, [RunId; 2])> {
    cells.iter().find_map(|cell| {
        let mut all: BTreeMap<Option<String>, &Run> = BTreeMap::new();
        for run in cell {
            all.entry(code_of(run)).or_insert(run);
        }
        let mut firsts = all.values();
        let pair = [firsts.next()?.id.clone(), firsts.next()?.id.clone()];
        Some((all.keys().map(|code| describe_code(code.as_deref())).collect(), pair))
    })
}

/// Whether all cells have the same number of runs per agent and experiment, for each metric.
///
/// A metric that only some runs have could come from different machines in different cells. Runs of an unknown agent or
/// experiment are not balanced.
pub fn is_balanced(cells: &[Vec<&Run>]) -> bool {
    metrics::compared().all(|metric| {
        let mut all = cells.iter().map(|cell| shares(cell, metric));
        let first = all.next().flatten();
        first.is_some() && all.all(|other| other == first)
    })
}

/// Counts the runs of a cell with a metric, by experiment and agent; none if either is unknown.
fn shares<'a>(cell: &[&'a Run], metric: Metric) -> Option<BTreeMap<(&'a ExperimentId, &'a str), usize>> {
    let mut shares = BTreeMap::new();
    for run in cell.iter().filter(|run| metric.value_in(run).is_some()) {
        *shares.entry((run.experiment.as_ref()?, run.agent.as_deref()?)).or_default() += 1;
    }
    Some(shares)
}

/// Finds relevant differences between the environments of compared cells.
///
/// If the cells are balanced, only runs of the same agent are compared.
pub fn machine_differences(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
    if !is_balanced(cells) {
        return machines(cells, environments);
    }
    let agents: BTreeSet<&Option<String>> = cells.iter().flatten().map(|run| &run.agent).collect();
    agents.into_iter().find_map(|agent| {
        let is_own = |run: &&Run| run.agent == *agent;
        let own: Vec<Vec<&Run>> = cells.iter().map(|cell| cell.iter().copied().filter(is_own).collect()).collect();
        machines(&own, environments)
    })
}

fn differing_values(runs: &[&Run], circumstance: Circumstance) -> Option<Confounder> {
    let mut values: BTreeMap<String, &Run> = BTreeMap::new();
    for run in runs {
        values.entry(circumstance.value_in(run)?).or_insert(run);
    }
    let mut firsts = values.values();
    let pair = [firsts.next()?.id.clone(), firsts.next()?.id.clone()];
    Some(Confounder { what: circumstance.title().to_owned(), values: values.into_keys().collect(), runs: pair })
}

/// Differences between the environments of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// The facts that differ, each once, by name.
    pub facts: Vec<FactDifference>,
    /// Ids of two runs that differ.
    pub runs: [RunId; 2],
}

impl Machines {
    /// Separates the facts about the target from those about its machine.
    pub fn by_circumstance(self) -> Vec<(Circumstance, Self)> {
        let Self { facts, runs } = self;
        let (target, machine): (Vec<_>, Vec<_>) = facts.into_iter().partition(|fact| fact.fact.starts_with("target."));
        [(Circumstance::Setups, target), (Circumstance::Environments, machine)]
            .into_iter()
            .filter(|(_, facts)| !facts.is_empty())
            .map(|(circumstance, facts)| (circumstance, Self { facts, runs: runs.clone() }))
            .collect()
    }
}

/// Finds relevant differences between environments, also of one agent.
///
/// Compares every run with the first of its cell, and the first runs of all cells with each other. Facts of the target
/// matter only within a cell, as different targets are what is compared. The load generator is a separate circumstance.
fn machines(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
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
        for fact in difference.with_weight(Weight::Matters).into_iter().filter(|found| matters(&found.fact)) {
            pair.get_or_insert_with(|| [one.run.clone(), other.run.clone()]);
            facts.entry(fact.fact.clone()).or_insert_with(|| fact.clone());
        }
    }
    Some(Machines { facts: facts.into_values().collect(), runs: pair? })
}

#[cfg(test)]
mod tests;
