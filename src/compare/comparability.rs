//! Finds confounders: differences between the runs of compared cells besides what is compared. Pure.
//!
//! Whether cells may be compared is decided here and in [`super::equal_work`], for each pair of cells and for all that
//! compare: pages, lists, reports, tools and the gate show what [`confounders`] returns.
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

use super::{metric::Metric, selection::By};
use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::Engine,
    metrics,
    results::environment::{
        difference::relevant,
        facts::{RunEnvironment, described, title_of},
    },
    runs::{
        code::{code_of, describe_code},
        model::{Origin, Run},
    },
    web::format,
};

/// Environments of runs by run id, as far as they were loaded.
pub type Environments = BTreeMap<RunId, RunEnvironment>;

/// A confounder: something besides what is compared that differs between or within two cells of a row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Confounder {
    /// What differs, e.g. `Agents`.
    #[schema(value_type = String)]
    pub what: Circumstance,
    /// The different values, or the names of the facts that differ.
    pub values: Vec<String>,
    /// The values of each of both cells. Not in JSON, as those of a machine's facts may name people and paths, and reports
    /// are published.
    #[serde(skip)]
    pub sides: [Vec<String>; 2],
    /// Indexes of both cells in the row, from 0; the same one twice if the row has no other.
    #[serde(default)]
    pub cells: [usize; 2],
    /// Ids of two runs that differ.
    #[schema(value_type = [String; 2])]
    pub runs: [RunId; 2],
}

/// A condition that should be the same for all compared runs. As JSON it is its title.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
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

    /// Returns the value in a run; none for facts and code, which are compared as a whole, and for the work.
    fn value_in(self, run: &Run) -> Option<String> {
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

impl From<Circumstance> for &'static str {
    fn from(circumstance: Circumstance) -> Self {
        circumstance.title()
    }
}

impl TryFrom<String> for Circumstance {
    type Error = String;

    fn try_from(title: String) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.title() == title).ok_or_else(|| format!("{title:?} is not a confounder"))
    }
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

/// Finds the confounders of each pair of cells, or of the only one, whose medians would mix them. The cells are the runs
/// that count; those without any are not compared.
pub fn confounders(cells: &[Vec<&Run>], by: By, environments: &Environments) -> Vec<Confounder> {
    let known: Vec<KnownCell> = cells.iter().map(|runs| KnownCell::new(runs, environments)).collect();
    let measured: Vec<usize> = (0..cells.len()).filter(|place| !cells[*place].is_empty()).collect();
    let pairs = match measured.as_slice() {
        [only] => vec![[*only, *only]],
        several => several.iter().flat_map(|one| several.iter().map(|other| [*one, *other])).collect(),
    };
    let pairs = pairs.into_iter().filter(|[one, other]| one < other || measured.len() == 1);
    pairs.flat_map(|cells| Pair { cells, known: cells.map(|place| &known[place]), by }.confounders()).collect()
}

/// The runs of a cell, with what is known of their machines.
struct KnownCell<'a> {
    runs: &'a [&'a Run],
    /// The environments that are known, by run.
    environments: Vec<&'a RunEnvironment>,
    /// The first of them from each agent; the first of all comes first.
    firsts: Vec<(&'a Option<String>, &'a RunEnvironment)>,
    /// How the others differ from the first of their agent.
    within: Vec<Difference<'a>>,
}

/// Two environments that differ in a fact.
type Difference<'a> = (&'a str, [&'a RunEnvironment; 2]);

/// Returns the facts that may explain different results. The load generator is a circumstance of its own.
fn differences<'a>(one: &'a RunEnvironment, other: &'a RunEnvironment) -> impl Iterator<Item = Difference<'a>> {
    relevant(one, other).filter(|fact| !fact.starts_with("k6.")).map(move |fact| (fact, [one, other]))
}

impl<'a> KnownCell<'a> {
    fn new(runs: &'a [&'a Run], environments: &'a Environments) -> Self {
        let known =
            |run: &&'a Run| Some((&run.agent, environments.get(&run.id).filter(|known| !known.facts.is_empty())?));
        let known: Vec<(&Option<String>, &RunEnvironment)> = runs.iter().filter_map(known).collect();
        let (mut firsts, mut within) = (Vec::<(&Option<String>, &RunEnvironment)>::new(), Vec::new());
        for &(agent, one) in &known {
            match firsts.iter().find(|(other, _)| *other == agent) {
                Some((_, first)) => within.extend(differences(first, one)),
                None => firsts.push((agent, one)),
            }
        }
        let environments = known.into_iter().map(|(_, one)| one).collect();
        Self { runs, environments, firsts, within }
    }
}

/// Two cells that are compared, or one that is alone, twice.
struct Pair<'a> {
    cells: [usize; 2],
    known: [&'a KnownCell<'a>; 2],
    by: By,
}

impl<'a> Pair<'a> {
    fn confounders(&self) -> Vec<Confounder> {
        let [one, other] = self.known;
        let runs: Vec<Vec<&Run>> =
            if self.is_alone() { vec![one.runs.to_vec()] } else { vec![one.runs.to_vec(), other.runs.to_vec()] };
        let is_balanced = is_balanced(&runs);
        let plain = Circumstance::ALL.into_iter().filter(|what| *what != Circumstance::Agents || !is_balanced);
        let plain = plain.filter_map(|what| {
            // What is compared differs between the cells, but not within one.
            let is_expected =
                matches!((what, self.by), (Circumstance::Agents, By::Agent) | (Circumstance::Durations, By::Load));
            if is_expected {
                self.within_one(what, |run| what.value_in(run))
            } else {
                self.differing(what, [one, other], |run| what.value_in(run))
            }
        });
        let code = self.within_one(Circumstance::Setups, |run| Some(code_of(run).unwrap_or_default())).map(|found| {
            let described = |codes: Vec<String>| {
                let code = |code: String| describe_code(Some(code.as_str()).filter(|code| !code.is_empty()));
                codes.into_iter().map(code).collect()
            };
            Confounder { values: described(found.values), sides: found.sides.map(described), ..found }
        });
        plain.chain(code).chain(self.machines(is_balanced)).collect()
    }

    fn is_alone(&self) -> bool {
        self.cells[0] == self.cells[1]
    }

    /// Finds what differs within one of both cells.
    fn within_one(&self, what: Circumstance, value: impl Fn(&Run) -> Option<String> + Copy) -> Option<Confounder> {
        let is_mixed = |cell: &&KnownCell| self.differing(what, [*cell, *cell], value).is_some();
        self.known.iter().any(is_mixed).then(|| self.differing(what, self.known, value))?
    }

    /// Finds what differs in the runs of these cells.
    fn differing(
        &self,
        what: Circumstance,
        of: [&KnownCell; 2],
        value: impl Fn(&Run) -> Option<String>,
    ) -> Option<Confounder> {
        let mut first: BTreeMap<String, &RunId> = BTreeMap::new();
        let sides = of.map(|cell| {
            let mut own = BTreeSet::new();
            for run in cell.runs {
                let Some(value) = value(run) else { continue };
                first.entry(value.clone()).or_insert(&run.id);
                own.insert(value);
            }
            own.into_iter().collect()
        });
        let mut ids = first.values();
        let runs = [*ids.next()?, *ids.next()?].map(RunId::clone);
        Some(Confounder { what, values: first.into_keys().collect(), sides, cells: self.cells, runs })
    }

    /// Describes the facts that differ: those of the targets, which matter within a cell only, and those of the machines.
    fn machines(&self, is_balanced: bool) -> Vec<Confounder> {
        let mut found: BTreeMap<Circumstance, BTreeMap<&str, [&RunEnvironment; 2]>> = BTreeMap::new();
        for (fact, pair) in self.differing_facts(is_balanced) {
            let what = if is_of_target(fact) { Circumstance::Setups } else { Circumstance::Environments };
            found.entry(what).or_default().entry(fact).or_insert(pair);
        }
        let confounder = |(what, facts): (Circumstance, BTreeMap<&str, [&RunEnvironment; 2]>)| {
            let runs = facts.values().next()?.map(|one| one.run.clone());
            let side = |cell: &KnownCell| facts.keys().map(|fact| values_of(fact, &cell.environments)).collect();
            let values = facts.keys().map(|fact| title_of(fact)).collect();
            Some(Confounder { what, values, sides: self.known.map(side), cells: self.cells, runs })
        };
        found.into_iter().filter_map(confounder).collect()
    }

    /// Returns the facts that differ. If the cells are balanced, only runs of the same agent are compared.
    fn differing_facts(&self, is_balanced: bool) -> Vec<Difference<'a>> {
        let [one, other] = self.known;
        let mut all: Vec<Difference> = [one, other].into_iter().flat_map(|cell| cell.within.clone()).collect();
        let mut pairs = Vec::new();
        for (agent, first) in &one.firsts {
            let same = other.firsts.iter().find(|(of, _)| if is_balanced { of == agent } else { true });
            pairs.extend(same.map(|(_, second)| (*first, *second)));
        }
        if !is_balanced {
            pairs.truncate(1);
            for cell in [one, other] {
                let later = cell.firsts.iter().skip(1);
                all.extend(later.flat_map(|(_, later)| differences(cell.firsts[0].1, later)));
            }
        }
        // A comparison of agents expects different machines.
        let pairs = pairs.into_iter().filter(|_| self.by != By::Agent);
        let between = pairs.flat_map(|(first, second)| differences(first, second));
        all.extend(between.filter(|(fact, _)| !is_of_target(fact)));
        all
    }
}

/// Whether a fact is about the target: different targets are what is compared.
fn is_of_target(fact: &str) -> bool {
    fact.starts_with("target.")
}

/// Returns a fact with its different values: `kernel 6.1 and 6.12`.
fn values_of(fact: &str, environments: &[&RunEnvironment]) -> String {
    let values: BTreeSet<Option<&String>> = environments.iter().map(|one| one.facts.get(fact)).collect();
    described(fact, values)
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

#[cfg(test)]
mod tests;
