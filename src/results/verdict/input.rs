//! What a run is judged from, at ingest and when re-judging. Pure.

use std::collections::BTreeSet;

use brewbench_wire::{
    engine::EngineKind,
    load::Load,
    outcome::{Cores, Enforced, Mechanism},
    reports::summary::Figures,
    series::Series,
    target::TargetKind,
};

use crate::{
    metrics,
    results::{
        cost,
        evidence::Evidence,
        generator_record::usable,
        resolution,
        verdict::{
            judge::judge,
            limits::Limits,
            model::{Context, Judgement, SeriesState},
        },
    },
};

/// Everything that the verdict on a run with metrics depends on.
#[derive(Clone, Debug)]
pub struct VerdictInput {
    /// Metrics from its summary.
    pub figures: Figures,
    /// How an agent measured it; None for an import.
    pub execution: Option<Execution>,
}

/// How an agent measured a run.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The load generator.
    pub engine: EngineKind,
    /// How the target was provided, if known.
    pub kind: Option<TargetKind>,
    /// What enforced the target's machine size.
    pub enforced: Enforced,
    /// CPU of the machine size, cores.
    pub vcpus: Option<f64>,
    /// The load.
    pub load: Option<Load>,
    /// What the agent observed.
    pub evidence: Evidence,
    /// The time series.
    pub series: StoredSeries,
}

/// The time series, or why there is none.
#[derive(Clone, Debug)]
pub enum StoredSeries {
    /// The series.
    Series(Box<Series>),
    /// Missing or unreadable.
    Missing,
    /// Agents did not record series at that time.
    NotRecorded,
}

impl VerdictInput {
    /// Returns the figures to store: those of the summary, and the target's resource use if an agent measured it.
    pub fn figures(&self) -> metrics::Figures {
        let mut figures = metrics::Figures::from(&self.figures);
        if let Some(execution) = &self.execution {
            cost::add(&mut figures, execution);
            resolution::add(&mut figures, execution);
        }
        figures
    }

    /// Returns what older servers did not compute at ingest: the target's resource use and the resolution.
    pub fn added_later(&self) -> metrics::Figures {
        let metrics::Figures { requests, resolution, .. } = self.figures();
        let mut added = metrics::Figures { requests, resolution, ..metrics::Figures::default() };
        if let Some(execution) = &self.execution {
            cost::add(&mut added, execution);
        }
        metrics::Figures { requests: None, ..added }
    }

    /// Judges the run by these limits.
    pub fn judge(&self, limits: &Limits) -> Judgement {
        judge(&self.figures, self.execution.as_ref().map(Execution::context).as_ref(), limits)
    }
}

impl Execution {
    /// Returns the number of cores of the target: the assigned ones, or else those of its machine size.
    pub fn target_cores(&self) -> Option<f64> {
        let assigned = self.evidence.cores.target.len() as f64;
        if assigned > 0.0 { Some(assigned) } else { self.vcpus.map(f64::ceil) }
    }

    fn context(&self) -> Context<'_> {
        let Self { engine, kind, enforced, vcpus, load, evidence, series } = self;
        let Evidence {
            observed,
            cores,
            environment,
            conditions,
            failures,
            generators,
            profile_faults,
            generator_log,
            ..
        } = evidence;
        Context {
            engine: *engine,
            kind: *kind,
            enforced: *enforced,
            cores,
            machine_cores: usable(environment).or_else(|| assigned_cores(cores)),
            vcpus: *vcpus,
            load: load.as_ref(),
            oom_kills: observed.and_then(|observed| observed.oom_kills).unwrap_or(0),
            conditions,
            failures: failures.as_ref(),
            generator_log,
            generators,
            series: match series {
                StoredSeries::Series(series) => SeriesState::Series(series),
                StoredSeries::Missing => SeriesState::Missing,
                StoredSeries::NotRecorded => SeriesState::NotRecorded,
            },
            profile_faults,
            code_unknown: environment.get("target.code_unknown").map(String::as_str),
        }
    }
}

/// Returns the number of processors of target and load generator together.
fn assigned_cores(cores: &Cores) -> Option<f64> {
    let all: BTreeSet<_> = cores.target.iter().chain(&cores.generator).collect();
    (!all.is_empty()).then_some(all.len() as f64)
}

/// Parses a mechanism from its column.
pub fn mechanism(word: Option<&str>) -> Mechanism {
    [Mechanism::Cgroup1, Mechanism::Cgroup2, Mechanism::Guest, Mechanism::Pod]
        .into_iter()
        .find(|mechanism| Some(mechanism.as_str()) == word)
        .unwrap_or(Mechanism::None)
}
