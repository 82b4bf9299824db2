//! Merges all parts of a distributed run into one result. Pure.

use std::collections::BTreeSet;

use brewbench_wire::{
    engine::EngineVersion,
    job::Segment,
    load_time::LoadTime,
    outcome::{Cores, Ended, Outcome},
    reports::{
        formats::native,
        read,
        summary::{Figures, Summary},
    },
    series::{Packed, Series},
    work_done::WorkDone,
};

use crate::{
    distributed::{
        merge_series::merged,
        merge_summaries::{Latencies, summed},
        merge_thresholds::thresholds,
        model::AgentPart,
    },
    results::{
        clock::Clocked,
        evidence::Evidence,
        finalize,
        generator_record::{GeneratorRecord, compare_starts},
        series::model::latencies,
        verdict::input::StoredSeries,
    },
};

/// The merged result of all parts.
#[derive(Debug)]
pub struct Merged {
    /// The outcome as if one agent had done the run. The host reported its phases before.
    pub outcome: Outcome,
    /// The evidence besides the summary.
    pub evidence: Evidence,
}

/// Reads the summary of a generator. The error is a sentence.
pub fn summary(outcome: &Outcome) -> Result<Summary, String> {
    let Some(text) = &outcome.summary else { return Err("the load generator left no summary".to_owned()) };
    read::parse_own(text.as_bytes()).map_err(|fault| format!("the load generator's summary can't be used: {fault}"))
}

/// Merges the part of the host and those of the generators, in the order of their segments. The error is a sentence
/// that names the agent.
pub fn merge(host: &AgentPart, generators: &[AgentPart]) -> Result<Merged, String> {
    let summaries = generators
        .iter()
        .map(|part| summary(&part.outcome).map_err(|why| format!("{}: {why}", part.agent)))
        .collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Option<Series>> = generators.iter().map(series).collect();
    let host_series = series(host);
    let clocked = |series, part: &AgentPart| Clocked { series, clock: part.clock };
    let generator_series: Vec<Option<Clocked<'_>>> =
        all.iter().zip(generators).map(|(series, part)| series.as_ref().map(|series| clocked(series, part))).collect();
    let present: Vec<Clocked<'_>> = generator_series.iter().flatten().copied().collect();
    let merged = merged(host_series.as_ref().map(|series| clocked(series, host)), &present);
    let (succeeded, failed) = merged.measured.as_ref().map(latencies).unwrap_or_default();
    let latencies = Latencies { succeeded, failed };
    let figures: Vec<Figures> = summaries
        .iter()
        .zip(generators)
        .map(|(summary, part)| summary.figures_over(part.outcome.conditions.load_time))
        .collect();
    let longest_ms = figures.iter().map(|figures| figures.measured_ms).fold(0.0, f64::max);
    let texts: Vec<&str> = generators.iter().filter_map(|part| part.outcome.summary.as_deref()).collect();
    let text = native::merged(&texts).unwrap_or_else(|| summed(&summaries, longest_ms, &latencies));
    // A summary that can't be read is reported when it is judged.
    let thresholds =
        read::parse_own(text.as_bytes()).map_or_else(|_| Vec::new(), |sum| thresholds(&summaries, &sum, &latencies));

    let mut seen: Vec<GeneratorRecord> = Vec::with_capacity(generators.len());
    for (index, part) in generators.iter().enumerate() {
        let (figures, series) = (&figures[index], generator_series[index]);
        let segment = segment(index, generators.len());
        seen.push(GeneratorRecord::from_outcome(&part.agent, segment, &part.outcome, figures, series, part.clock));
    }
    compare_starts(&mut seen);
    let outcome = outcome(host, generators, text, &merged);
    let mut evidence = host_evidence(&outcome);
    evidence.generator_log.clone_from(&host.outcome.generator_log);
    evidence.conditions.load_time = load_time(generators, longest_ms);
    Ok(Merged { evidence: Evidence { generators: seen, thresholds, ..evidence }, outcome })
}

/// Returns the time of the load of all generators: the longest one, so that nothing looks faster than it was. Unknown
/// if it is of all of them.
fn load_time(generators: &[AgentPart], longest_ms: f64) -> Option<LoadTime> {
    let known = generators.iter().filter_map(|part| part.outcome.conditions.load_time);
    let late_requests = known.map(|time| time.late_requests).reduce(u64::saturating_add)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float to integer cast saturates")]
    Some(LoadTime { ms: longest_ms.round() as u64, late_requests })
}

/// Returns the segment of the load with this index.
pub fn segment(index: usize, of: usize) -> Segment {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Segment { index: number(index), of: number(of) }
}

/// Returns the evidence of the host, which ran no load generator.
pub(crate) fn host_evidence(outcome: &Outcome) -> Evidence {
    let mut evidence = Evidence::from_outcome(outcome);
    evidence.cores.generator.clear();
    evidence
}

fn outcome(host: &AgentPart, generators: &[AgentPart], summary: String, series: &Series) -> Outcome {
    Outcome {
        ended: Ended::Finished,
        times: Vec::new(),
        summary: Some(summary),
        work: WorkDone::sum(generators.iter().map(|part| &part.outcome.work)),
        series: (*series != Series::default()).then(|| Packed::pack(series)),
        generator_log: String::new(),
        cores: Cores { target: host.outcome.cores.target.clone(), generator: Vec::new() },
        engine: engine(generators),
        ..host.outcome.clone()
    }
}

/// Returns the load generator of all parts; if they differ, lists all of them.
fn engine(generators: &[AgentPart]) -> Option<EngineVersion> {
    let engines: BTreeSet<&EngineVersion> = generators.iter().filter_map(|part| part.outcome.engine.as_ref()).collect();
    let names: BTreeSet<&str> = engines.iter().map(|engine| engine.name.as_str()).collect();
    let versions: BTreeSet<&str> = engines.iter().map(|engine| engine.version.as_str()).collect();
    let joined = |all: BTreeSet<&str>| all.into_iter().collect::<Vec<_>>().join(", ");
    (!engines.is_empty()).then(|| EngineVersion { name: joined(names), version: joined(versions) })
}

fn series(part: &AgentPart) -> Option<Series> {
    match finalize::series(&part.outcome).1 {
        StoredSeries::Series(series) => Some(*series),
        StoredSeries::Missing | StoredSeries::NotRecorded => None,
    }
}
