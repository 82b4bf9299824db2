//! Who made the load of a run, where it was not the target's own agent: each one's share. Template:
//! `runs/_generators.html`. Pure.

use crate::{
    distributed::shares::{GeneratorList, GeneratorShare},
    results::{evidence::WholeThreshold, generator_record::GeneratorSeen},
    runs::model::Run,
    web::{
        address,
        badge::{self, Pill},
        format::{self, Figure, plural},
    },
};

/// All of them.
#[derive(Clone, Debug)]
pub struct Generators {
    /// In the order of their segments.
    pub rows: Vec<Row>,
    /// Where the percentiles come from, or why there are none; nothing until there are figures.
    pub percentiles: Option<String>,
    /// What became of the script's thresholds.
    pub thresholds: Vec<ThresholdRow>,
    /// What each k6 wrote, if it wrote anything.
    pub logs: Vec<(String, String)>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct Row {
    share: GeneratorShare,
}

impl Generators {
    /// None for a run whose load came from its own agent.
    pub fn of(run: &Run, list: GeneratorList, seen: &[GeneratorSeen]) -> Option<Self> {
        let logs = run.generators.iter().zip(seen).filter(|(_, seen)| !seen.generator_log.is_empty());
        (!list.generators.is_empty()).then(|| Self {
            percentiles: percentiles(run, &list),
            thresholds: list
                .thresholds
                .into_iter()
                .map(|threshold| ThresholdRow { threshold, agents: run.generators.clone() })
                .collect(),
            logs: logs.map(|(agent, seen)| (agent.clone(), seen.generator_log.clone())).collect(),
            rows: list.generators.into_iter().map(|share| Row { share }).collect(),
        })
    }
}

fn percentiles(run: &Run, list: &GeneratorList) -> Option<String> {
    run.figures.requests?;
    let of = plural(list.generators.len(), "generator");
    Some(match (run.figures.p50_ms, list.percentiles_within) {
        (Some(_), Some(width)) => format!(
            "Percentiles come from the added histograms of {of} and are exact to within one of their buckets, which are \
             {:.0}\u{a0}% wide. Counts, means, least and greatest values are exact.",
            width * 100.0
        ),
        _ => format!(
            "There are no percentiles: what {of} told second by second does not have every request in it, and those of the \
             parts can’t be added up."
        ),
    })
}

/// A threshold of the script.
#[derive(Clone, Debug)]
pub struct ThresholdRow {
    threshold: WholeThreshold,
    agents: Vec<String>,
}

impl ThresholdRow {
    /// Of which metric, and what it may be.
    pub fn condition(&self) -> (&str, &str) {
        (&self.threshold.metric, &self.threshold.expression)
    }

    /// Whether all together kept to it; nothing where that is not known.
    pub fn whole(&self) -> Option<Pill> {
        self.threshold.passed.as_ref().map(badge::threshold)
    }

    /// How that is known, or why it is not.
    pub fn basis(&self) -> &'static str {
        self.threshold.basis.words()
    }

    /// What each k6 says of its own part.
    pub fn own(&self) -> Vec<(&str, Option<Pill>)> {
        let said = self.threshold.own.iter().map(|passed| passed.as_ref().map(badge::threshold));
        self.agents.iter().map(String::as_str).zip(said).collect()
    }
}

impl Row {
    /// Whose it is.
    pub fn agent(&self) -> &str {
        &self.share.agent
    }

    /// Its page.
    pub fn address(&self) -> String {
        address::segment(&self.share.agent)
    }

    /// Which part of the load.
    pub fn segment(&self) -> &str {
        &self.share.segment
    }

    /// Whether its result is there.
    pub fn is_there(&self) -> bool {
        self.share.delivered
    }

    /// Requests.
    pub fn requests(&self) -> Figure {
        format::count(self.share.requests)
    }

    /// Requests per second.
    pub fn rps(&self) -> Figure {
        format::number(self.share.rps)
    }

    /// 99th percentile of its own.
    pub fn p99(&self) -> Figure {
        format::latency(self.share.p99_ms)
    }

    /// Failed requests.
    pub fn failed(&self) -> Figure {
        format::count(self.share.failed)
    }

    /// Cores that its k6 used: `0.85 of 2`.
    pub fn used(&self) -> Option<String> {
        used(&self.share)
    }

    /// How much later than the first it began.
    pub fn began(&self) -> Option<String> {
        began(&self.share)
    }

    /// Its clock against the server's.
    pub fn clock(&self) -> Option<String> {
        clock(&self.share)
    }
}

/// Cores that a generator's k6 used, of those it could use: `0.85 of 2`.
pub fn used(share: &GeneratorShare) -> Option<String> {
    let used = share.used_cores?;
    Some(match share.cores {
        Some(cores) => format!("{used:.2} of {cores}"),
        None => format!("{used:.2}"),
    })
}

/// How much later than the first a generator began: `+12 ms`.
pub fn began(share: &GeneratorShare) -> Option<String> {
    share.after_first_ms.map(|ms| format!("+{ms}\u{a0}ms"))
}

/// The clock of a generator against the server's: `+3.2 ± 0.4 ms`.
pub fn clock(share: &GeneratorShare) -> Option<String> {
    let (offset, error) = share.clock_offset_ms.zip(share.clock_error_ms)?;
    Some(format!("{offset:+.1}\u{a0}±\u{a0}{error:.1}\u{a0}ms"))
}
