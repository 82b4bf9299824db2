//! Types of the verdict rules. Pure.

use brewbench_wire::{
    engine::EngineKind,
    load::Load,
    load_record::Messages,
    outcome::{Conditions, Cores, Enforced},
    series::Series,
    target::TargetKind,
};

use crate::{
    results::{generator_record::GeneratorRecord, verdict::usage::UsageScope},
    runs::verdict::{Reason, Verdict},
};

/// Version of the rules; grows whenever a run could get a different verdict.
pub const RULES: u32 = 9;

/// A verdict with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The worst verdict of its reasons.
    pub verdict: Verdict,
    /// In the order of the rules.
    pub reasons: Vec<Reason>,
}

impl From<Vec<Reason>> for Judgement {
    fn from(reasons: Vec<Reason>) -> Self {
        let verdict = reasons.iter().map(|reason| reason.verdict).max().unwrap_or(Verdict::Valid);
        Self { verdict, reasons }
    }
}

impl Judgement {
    /// Adds a reason, if there is one.
    #[must_use]
    pub fn with(self, reason: Option<Reason>) -> Self {
        self.reasons.into_iter().chain(reason).collect::<Vec<_>>().into()
    }
}

/// What the rules know about a run that an agent measured, besides its metrics.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The load generator.
    pub engine: EngineKind,
    /// How the target was provided, if known.
    pub kind: Option<TargetKind>,
    /// What enforced the target's machine size.
    pub enforced: Enforced,
    /// Processors of target and load generator.
    pub cores: &'a Cores,
    /// Number of processors that the agent may use, if known.
    pub machine_cores: Option<f64>,
    /// CPU of the target's machine size, cores.
    pub vcpus: Option<f64>,
    /// The load.
    pub load: Option<&'a Load>,
    /// OOM kills of the target's processes.
    pub oom_kills: u64,
    /// Conditions that the agent observed.
    pub conditions: &'a Conditions,
    /// Responses that the script did not expect; None if unknown.
    pub failures: Option<&'a Messages>,
    /// The end of k6's output.
    pub generator_log: &'a str,
    /// Generators of a distributed run.
    pub generators: &'a [GeneratorRecord],
    /// The time series.
    pub series: SeriesState<'a>,
    /// Why a profile of the target is missing.
    pub profile_faults: &'a [String],
    /// What is unknown about the target's code.
    pub code_unknown: Option<&'a str>,
}

impl Context<'_> {
    /// Returns the number of cores that the target ran on.
    pub(crate) fn target_cores(&self) -> f64 {
        match self.cores.target.len() {
            0 => self.vcpus.unwrap_or(1.0).ceil(),
            cores => cores as f64,
        }
    }

    /// Returns the number of cores that k6 could use.
    pub(crate) fn generator_cores(&self) -> f64 {
        self.conditions.generator_cores(self.cores.generator.len() as f64)
    }

    /// Returns in which share of the measured time the run was loaded: less than all of it in a duet.
    pub(crate) fn own_share(&self) -> f64 {
        let record = self.conditions.load_record.as_ref();
        let times = record.and_then(|record| record.open_ms.zip(record.regular_ms));
        times.map_or(1.0, |(open_ms, regular_ms)| open_ms as f64 / regular_ms.max(1) as f64)
    }

    /// Whether another target was loaded in turns with this one.
    pub(crate) fn is_duet(&self) -> bool {
        self.conditions.load_record.as_ref().is_some_and(|record| record.open_ms.is_some())
    }

    /// Returns whose CPU time the samples of the agent's machine must contain.
    pub(crate) fn side(&self) -> UsageScope {
        match self.generators {
            [] if self.is_url() => UsageScope::Generator,
            [] => UsageScope::Both,
            _ => UsageScope::Target,
        }
    }

    /// Whether the target was a server that already ran, of which the agent sees nothing but responses.
    pub(crate) fn is_url(&self) -> bool {
        self.kind == Some(TargetKind::Url)
    }

    /// Whether the target may have run on the agent's machine without the agent's knowledge.
    pub(crate) fn is_beside_url(&self) -> bool {
        self.is_url() && self.conditions.network.as_ref().is_none_or(|network| network.interface.is_none())
    }
}

/// The time series, or why there is none.
#[derive(Clone, Copy, Debug)]
pub enum SeriesState<'a> {
    /// The series, possibly with gaps.
    Series(&'a Series),
    /// Missing or unreadable.
    Missing,
    /// Agents did not record series at that time.
    NotRecorded,
}
