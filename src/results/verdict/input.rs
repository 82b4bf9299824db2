//! What a run is judged from, whether it has just come or was stored long ago. Pure.

use std::collections::BTreeSet;

use brewbench_agent::{
    reports::summary::Figures,
    wire::{
        load::Load,
        outcome::{Enforced, Mechanism},
        series::Series,
    },
};

use crate::results::{
    conditions::Cores,
    cost::Cost,
    evidence::{Evidence, usable},
    verdict::{
        judge::judge,
        limits::Limits,
        model::{Judgement, Making, Recorded},
    },
};

/// Everything that speaks for or against a run with figures.
#[derive(Clone, Debug)]
pub struct Material {
    /// From its summary.
    pub figures: Figures,
    /// How one of our agents made it; none for an import.
    pub made: Option<Made>,
}

/// How a run was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// What held the target to its size.
    pub enforced: Enforced,
    /// The CPU share of the size, cores.
    pub vcpus: Option<f64>,
    /// How hard it was loaded.
    pub load: Option<Load>,
    /// What the agent saw.
    pub evidence: Evidence,
    /// What happened second by second.
    pub series: Seen,
}

/// What is there of the series.
#[derive(Clone, Debug)]
pub enum Seen {
    /// It.
    Series(Box<Series>),
    /// Nothing that can be read.
    Nothing,
    /// Nothing: when the run was made, agents recorded none.
    NotYet,
}

impl Material {
    /// What its requests cost, where that was recorded.
    pub fn cost(&self) -> Option<Cost> {
        self.made.as_ref().map(Cost::of)
    }

    /// What the run is worth by these limits.
    pub fn judge(&self, limits: &Limits) -> Judgement {
        judge(&self.figures, self.made.as_ref().map(Made::making).as_ref(), limits)
    }
}

impl Made {
    /// The cores that the target had: those that it was given, or else those of its size.
    pub fn target_cores(&self) -> Option<f64> {
        let given = self.evidence.cores.target.len() as f64;
        if given > 0.0 { Some(given) } else { self.vcpus.map(f64::ceil) }
    }

    fn making(&self) -> Making<'_> {
        let Self { enforced, vcpus, load, evidence, series } = self;
        let Evidence { observed, cores, environment, conditions, generators, .. } = evidence;
        Making {
            enforced: *enforced,
            cores,
            machine_cores: usable(environment).or_else(|| dealt(cores)),
            vcpus: *vcpus,
            load: load.as_ref(),
            oom_kills: observed.and_then(|observed| observed.oom_kills).unwrap_or(0),
            conditions,
            generators,
            recorded: match series {
                Seen::Series(series) => Recorded::Series(series),
                Seen::Nothing => Recorded::Nothing,
                Seen::NotYet => Recorded::NotYet,
            },
        }
    }
}

/// How many processors both sides have together.
fn dealt(cores: &Cores) -> Option<f64> {
    let all: BTreeSet<_> = cores.target.iter().chain(&cores.generator).collect();
    (!all.is_empty()).then_some(all.len() as f64)
}

/// A mechanism from its column.
pub fn mechanism(word: Option<&str>) -> Mechanism {
    [Mechanism::Cgroup1, Mechanism::Cgroup2]
        .into_iter()
        .find(|mechanism| Some(mechanism.as_str()) == word)
        .unwrap_or(Mechanism::None)
}
