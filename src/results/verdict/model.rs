//! What a run is judged from and what comes of it. Pure.

use brewbench_agent::wire::{load::Load, outcome::Enforced, series::Series};

use crate::{
    results::{
        conditions::{Conditions, Cores},
        generator_record::GeneratorSeen,
        verdict::usage::Side,
    },
    runs::verdict::{Reason, Verdict},
};

/// Which rules these are: a number that grows when a figure would be judged otherwise than before.
pub const RULES: u32 = 5;

/// What a run is worth, and why it is not simply valid.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// As bad as its worst reason.
    pub verdict: Verdict,
    /// In the order of the themes.
    pub reasons: Vec<Reason>,
}

impl From<Vec<Reason>> for Judgement {
    fn from(reasons: Vec<Reason>) -> Self {
        let verdict = reasons.iter().map(|reason| reason.verdict).max().unwrap_or(Verdict::Valid);
        Self { verdict, reasons }
    }
}

/// How a run was made, where one of our agents made it.
#[derive(Clone, Copy, Debug)]
pub struct Making<'a> {
    /// What held the target to its size.
    pub enforced: Enforced,
    /// Where both sides ran.
    pub cores: &'a Cores,
    /// How many processors the machine has for all of this, if known.
    pub machine_cores: Option<f64>,
    /// The CPU share of the target's size, cores.
    pub vcpus: Option<f64>,
    /// How hard it was loaded.
    pub load: Option<&'a Load>,
    /// Processes of the target that ran out of memory.
    pub oom_kills: u64,
    /// What only its agent could see.
    pub conditions: &'a Conditions,
    /// Those who made the load, where it was not the target's agent.
    pub generators: &'a [GeneratorSeen],
    /// What happened second by second.
    pub recorded: Recorded<'a>,
}

impl Making<'_> {
    /// How many whole cores the target ran on.
    pub(crate) fn target_cores(&self) -> f64 {
        match self.cores.target.len() {
            0 => self.vcpus.unwrap_or(1.0).ceil(),
            cores => cores as f64,
        }
    }

    /// Whose CPU time the samples of the target's machine tell.
    pub(crate) fn side(&self) -> Side {
        if self.generators.is_empty() { Side::Both } else { Side::Target }
    }
}

/// What is there of what happened second by second.
#[derive(Clone, Copy, Debug)]
pub enum Recorded<'a> {
    /// It, whole or not.
    Series(&'a Series),
    /// Nothing that can be read.
    Nothing,
    /// Nothing, because nobody recorded anything when the run was made.
    NotYet,
}
