//! All parts of a run become one result. Pure.

use std::collections::BTreeSet;

use brewbench_agent::{
    reports::{read, summary::Summary},
    wire::{
        engine::EngineVersion,
        job::Segment,
        outcome::{Cores, Ended, Outcome},
        series::{Packed, Series},
        work_done::WorkDone,
    },
};

use crate::{
    distributed::{
        merge_series::merged,
        merge_summaries::{Latencies, summed},
        merge_thresholds::thresholds,
        model::Part,
    },
    results::{
        clock::Clocked,
        evidence::Evidence,
        finalize,
        generator_record::{GeneratorSeen, compare_starts},
        series::model::latencies,
        verdict::input::Seen,
    },
};

/// What all of them come to.
#[derive(Debug)]
pub struct Whole {
    /// As if one agent had done it all. Its phases were noted when the target's agent told them.
    pub outcome: Outcome,
    /// What was seen besides.
    pub evidence: Evidence,
}

/// Reads the summary that a generator brought. The error is a sentence.
pub fn summary(outcome: &Outcome) -> Result<Summary, String> {
    let Some(text) = &outcome.summary else { return Err("k6 left no summary".to_owned()) };
    read::parse(text.as_bytes()).map_err(|fault| format!("k6's summary can't be used: {fault}"))
}

/// One result of all: of the target's agent, and of the generators in the order of their segments. The error is a
/// sentence about one of them.
pub fn whole(host: &Part, generators: &[Part]) -> Result<Whole, String> {
    let summaries = generators
        .iter()
        .map(|part| summary(&part.outcome).map_err(|why| format!("{}: {why}", part.agent)))
        .collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Option<Series>> = generators.iter().map(series).collect();
    let of_host = series(host);
    let clocked = |series, part: &Part| Clocked { series, clock: part.clock };
    let of_generators: Vec<Option<Clocked<'_>>> =
        all.iter().zip(generators).map(|(series, part)| series.as_ref().map(|series| clocked(series, part))).collect();
    let there: Vec<Clocked<'_>> = of_generators.iter().flatten().copied().collect();
    let merged = merged(of_host.as_ref().map(|series| clocked(series, host)), &there);
    let (succeeded, failed) = merged.measured.as_ref().map(latencies).unwrap_or_default();
    let latencies = Latencies { succeeded, failed };
    let text = summed(&summaries, &latencies);
    // What can't be read is told where it is judged.
    let thresholds =
        read::parse(text.as_bytes()).map_or_else(|_| Vec::new(), |sum| thresholds(&summaries, &sum, &latencies));

    let mut seen: Vec<GeneratorSeen> = Vec::with_capacity(generators.len());
    for (index, part) in generators.iter().enumerate() {
        let (figures, series) = (summaries[index].figures(), of_generators[index]);
        let segment = segment(index, generators.len());
        seen.push(GeneratorSeen::of(&part.agent, segment, &part.outcome, &figures, series, part.clock));
    }
    compare_starts(&mut seen);
    Ok(Whole {
        evidence: Evidence { generators: seen, thresholds, ..of_target(&host.outcome) },
        outcome: outcome(host, generators, text, &merged),
    })
}

/// Which part of the load that of a place is, from 0.
pub fn segment(index: usize, of: usize) -> Segment {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Segment { index: number(index), of: number(of) }
}

/// What the target's agent saw. It ran no k6.
pub(crate) fn of_target(outcome: &Outcome) -> Evidence {
    let mut evidence = Evidence::of(outcome);
    evidence.cores.generator.clear();
    evidence
}

fn outcome(host: &Part, generators: &[Part], summary: String, series: &Series) -> Outcome {
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

/// The load generator of all parts; where they differ, all of them.
fn engine(generators: &[Part]) -> Option<EngineVersion> {
    let engines: BTreeSet<&EngineVersion> = generators.iter().filter_map(|part| part.outcome.engine.as_ref()).collect();
    let names: BTreeSet<&str> = engines.iter().map(|engine| engine.name.as_str()).collect();
    let versions: BTreeSet<&str> = engines.iter().map(|engine| engine.version.as_str()).collect();
    let joined = |all: BTreeSet<&str>| all.into_iter().collect::<Vec<_>>().join(", ");
    (!engines.is_empty()).then(|| EngineVersion { name: joined(names), version: joined(versions) })
}

fn series(part: &Part) -> Option<Series> {
    match finalize::series(&part.outcome).1 {
        Seen::Series(series) => Some(*series),
        Seen::Nothing | Seen::NotYet => None,
    }
}
