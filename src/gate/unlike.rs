//! What was not alike around the two sides of a cell. A difference in figures may come of it, so the gate does not decide
//! over it unless somebody accepts it. Pure.

use std::{collections::BTreeSet, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cells::Cell;
use crate::{
    compare::likeness::Environments,
    runs::{
        Origin, Run,
        environment::{EnvironmentDifference, Weight},
    },
    web::format,
};

/// What should be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// The machines that measured.
    Agents,
    /// Versions of k6.
    K6,
    /// How long was measured.
    Durations,
    /// What held the targets to their sizes.
    Limits,
    /// Measured by an agent or imported.
    Origins,
    /// Facts of the machine that matter, such as its kernel; not those of the targets.
    Environments,
}

impl Circumstance {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Agents, Self::K6, Self::Durations, Self::Limits, Self::Origins, Self::Environments];

    /// The word for addresses and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::K6 => "k6",
            Self::Durations => "durations",
            Self::Limits => "limits",
            Self::Origins => "origins",
            Self::Environments => "environments",
        }
    }

    /// What it was in a run; none where that is told otherwise.
    fn of(self, run: &Run) -> Option<String> {
        let known = |value: Option<String>| Some(value.unwrap_or_else(|| "not known".to_owned()));
        match self {
            Self::Agents => known(run.agent.clone()),
            Self::K6 => known(run.k6_version.clone()),
            Self::Durations => known(run.duration_s.map(|seconds| format::duration(Some(seconds)).text().to_owned())),
            Self::Limits => known(run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
            Self::Origins => Some(match run.origin {
                Origin::Agent => "measured".to_owned(),
                Origin::Import => "imported".to_owned(),
            }),
            Self::Environments => None,
        }
    }
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

/// The run whose environment stands for all of a side: the last one that counts.
pub fn witness(runs: &[Run]) -> Option<&Run> {
    runs.iter().filter(|run| run.counts()).max_by_key(|run| (run.queued_at_ms, &run.id))
}

/// What was not alike, with a sentence each.
pub fn unlike(cell: &Cell, environments: &Environments) -> Vec<(Circumstance, String)> {
    let plain = Circumstance::ALL.into_iter().filter_map(|one| Some((one, differ(cell, one)?)));
    plain.chain(facts(cell, environments).map(|told| (Circumstance::Environments, told))).collect()
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

/// Facts that matter and are not the target's own: that one is another is what is looked at.
fn facts(cell: &Cell, environments: &Environments) -> Option<String> {
    const MOST: usize = 3;
    let of = |runs: &[Run]| environments.get(&witness(runs)?.id).cloned();
    let difference = EnvironmentDifference::new(of(&cell.baseline)?, of(&cell.candidate)?);
    let matters = |fact: &str| !fact.starts_with("target.") && !fact.starts_with("k6.");
    let word = |side: Option<&String>| side.map_or("not known", String::as_str).to_owned();
    let told: Vec<String> = difference
        .of(Weight::Matters)
        .into_iter()
        .filter(|one| matters(&one.fact))
        .map(|one| format!("{} {} {} → {}", one.group, one.label, word(one.run.as_ref()), word(one.with.as_ref())))
        .collect();
    let more = told.len().saturating_sub(MOST);
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    let listed = told.iter().take(MOST).cloned().collect::<Vec<_>>().join("; ");
    (!told.is_empty()).then(|| format!("environments differ: {listed}{rest}"))
}

#[cfg(test)]
mod tests {
    use brewbench_agent::wire::outcome::Conditions;

    use super::*;
    use crate::{compare::made_up::run, runs::environment::RunEnvironment};

    fn thrice(make: impl Fn(u32) -> Run) -> Vec<Run> {
        (1..=3).map(make).collect()
    }

    fn cell(change: impl Fn(Run) -> Run) -> Cell {
        let candidate = thrice(|n| change(Run { id: format!("new-{n}"), ..run("servy", n) }));
        Cell { name: String::new(), baseline: thrice(|n| run("servy", n)), candidate }
    }

    fn environment(facts: &[(&str, &str)]) -> RunEnvironment {
        RunEnvironment {
            run: String::new(),
            target: "servy".to_owned(),
            version: None,
            size: None,
            repetition: 1,
            agent: None,
            facts: facts.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            conditions: Conditions::default(),
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
            k6_version: None,
            duration_s: Some(60.0),
            enforced: None,
            origin: Origin::Import,
            ..run
        };
        let told = unlike(&cell(other), &Environments::new());
        let kinds: Vec<_> = told.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, Circumstance::ALL[..5]);
        assert_eq!(told[1].1, "k6 differ: baseline 1.8.1, candidate not known");
    }

    #[test]
    fn facts_of_the_machine_matter_and_those_of_the_target_do_not() {
        let base = environment(&[("kernel.release", "6.1"), ("target.sha256", "a"), ("load.before", "0")]);
        let new = environment(&[("kernel.release", "6.12"), ("target.sha256", "b"), ("load.before", "9")]);
        let cell = cell(|run| run);
        let id = |runs: &[Run]| witness(runs).map(|run| run.id.clone()).unwrap_or_default();
        let mut environments = Environments::from([(id(&cell.baseline), base.clone()), (id(&cell.candidate), new)]);
        let told = unlike(&cell, &environments);
        assert_eq!(told, [(Circumstance::Environments, "environments differ: System kernel 6.1 → 6.12".to_owned())]);
        environments.insert(id(&cell.candidate), base);
        assert_eq!(unlike(&cell, &environments), []);
    }
}
