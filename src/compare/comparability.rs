//! Whether the runs of a row were made under like conditions: what was not alike may be the difference that is seen.
//! Pure.
//!
//! Of an experiment that was spread over several machines the cells are balanced: each has as many runs from each machine
//! as the others ([`is_balanced`]). Then the machines differ within every cell and not between them, and as a block is
//! measured by one machine, their difference cancels in the test.

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
    runs::model::{Origin, Run},
    web::format,
};

/// Facts about the machines of runs, by the runs' ids, as far as they were looked up.
pub type Environments = BTreeMap<RunId, RunEnvironment>;

/// Something that should have been alike within a row and was not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Unlike {
    /// What, e.g. `Agents`.
    pub what: String,
    /// What there is of it, in words.
    pub values: Vec<String>,
    /// Ids of two runs that differ in it.
    #[schema(value_type = [String; 2])]
    pub runs: [RunId; 2],
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
    Engine,
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
    /// What requests asked for and got; [`super::equal_work`] says in what it differs.
    Work,
}

impl Circumstance {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Agents,
        Self::Generators,
        Self::Engine,
        Self::Durations,
        Self::WarmUps,
        Self::Limits,
        Self::Origins,
        Self::Environments,
        Self::Work,
    ];

    /// The word for addresses and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Generators => "generators",
            Self::Engine => "engines",
            Self::Durations => "durations",
            Self::WarmUps => "warm-ups",
            Self::Limits => "limits",
            Self::Origins => "origins",
            Self::Environments => "environments",
            Self::Work => "work",
        }
    }

    /// At the head of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Generators => "Generators",
            Self::Engine => "Load generators",
            Self::Durations => "Durations",
            Self::WarmUps => "Warm-ups",
            Self::Limits => "Limits",
            Self::Origins => "Origins",
            Self::Environments => "Machines",
            Self::Work => "Work",
        }
    }

    /// What it was in a run; none where [`unlike_machines`] or [`super::equal_work`] tells.
    pub fn of(self, run: &Run) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        let known = |value: Option<String>| Some(value.unwrap_or_else(|| "not known".to_owned()));
        match self {
            Self::Agents => known(run.agent.clone()),
            Self::Generators => Some(load_from(run)),
            Self::Engine => known(run.engine.as_ref().map(Engine::to_string)),
            Self::Durations => known(run.duration_s.map(seconds)),
            Self::WarmUps if run.warm_up_auto => Some("until the target was steady".to_owned()),
            Self::WarmUps => known(run.warm_up_s.map(seconds)),
            Self::Limits => known(run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
            Self::Origins => Some(match run.origin {
                Origin::Agent => "measured by an agent".to_owned(),
                Origin::Import => "imported".to_owned(),
            }),
            Self::Environments | Self::Work => None,
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
    let cells: Vec<Vec<&Run>> = row.rivals().map(|cell| cell.counting().collect()).collect();
    let holds_back = |circumstance: &Circumstance| match circumstance {
        Circumstance::Durations => false,
        // Who compares agents knows that they are not the same.
        Circumstance::Agents => by != By::Agent && !is_balanced(&cells),
        _ => true,
    };
    let parts = Circumstance::ALL.into_iter().filter(holds_back);
    let machines = match by {
        // Those of one agent are to be alike nevertheless.
        By::Agent => cells.iter().find_map(|cell| machines(std::slice::from_ref(cell), environments)),
        _ => unlike_machines(&cells, environments),
    };
    let machines = machines.map(|Machines { facts, runs }| Unlike {
        what: Circumstance::Environments.title().to_owned(),
        values: facts.iter().map(|fact| format!("{} ({})", fact.label, fact.group)).collect(),
        runs,
    });
    parts.filter_map(|part| of_part(&runs, part)).chain(machines).collect()
}

/// Whether every cell has as many runs as the others from each agent within each experiment, for each figure: a figure
/// that only some runs have could be one machine's in one cell and another's in the next. What nobody knows the agent or
/// the experiment of is not balanced: it would have to be taken for the same.
pub fn is_balanced(cells: &[Vec<&Run>]) -> bool {
    metrics::compared().all(|metric| {
        let mut all = cells.iter().map(|cell| shares(cell, metric));
        let first = all.next().flatten();
        first.is_some() && all.all(|other| other == first)
    })
}

/// How many runs of a cell have a figure, by experiment and agent; none where somebody's are not known.
fn shares<'a>(cell: &[&'a Run], metric: Metric) -> Option<BTreeMap<(&'a ExperimentId, &'a str), usize>> {
    let mut shares = BTreeMap::new();
    for run in cell.iter().filter(|run| metric.of(run).is_some()) {
        *shares.entry((run.experiment.as_ref()?, run.agent.as_deref()?)).or_default() += 1;
    }
    Some(shares)
}

/// Runs of cells that are held against each other, whose machines differ in what matters. Where the cells are balanced,
/// the runs of one agent are to be alike, and not those of several.
pub fn unlike_machines(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
    if !is_balanced(cells) {
        return machines(cells, environments);
    }
    let agents: BTreeSet<&Option<String>> = cells.iter().flatten().map(|run| &run.agent).collect();
    agents.into_iter().find_map(|agent| {
        let of_it = |run: &&Run| run.agent == *agent;
        let own: Vec<Vec<&Run>> = cells.iter().map(|cell| cell.iter().copied().filter(of_it).collect()).collect();
        machines(&own, environments)
    })
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
    pub runs: [RunId; 2],
}

/// Runs whose machines differ in what matters, though their agents may be the same: every run of a cell is held against
/// its first, and the firsts against each other. Facts of the targets tell only within a cell, where they should be one
/// program; that those of two cells differ is what is looked at. Which k6 it was is a circumstance of its own.
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
        for fact in difference.of(Weight::Matters).into_iter().filter(|found| matters(&found.fact)) {
            pair.get_or_insert_with(|| [one.run.clone(), other.run.clone()]);
            facts.entry(fact.fact.clone()).or_insert_with(|| fact.clone());
        }
    }
    Some(Machines { facts: facts.into_values().collect(), runs: pair? })
}

#[cfg(test)]
mod tests;
