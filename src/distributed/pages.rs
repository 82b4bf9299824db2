//! The generators of a distributed run on its page. Template: `runs/_generators.html`. Pure.

use crate::{
    distributed::shares::{GeneratorList, GeneratorShare},
    results::evidence::WholeThreshold,
    runs::model::Run,
    web::{
        address,
        badge::{self, Badge},
        format::{self, Figure, plural},
    },
};

/// The section of all generators.
#[derive(Clone, Debug)]
pub struct Generators {
    /// The generators in the order of their segments.
    pub rows: Vec<GeneratorRow>,
    /// The source of the percentiles, or why there are none; none until there are figures.
    pub percentiles: Option<String>,
    /// The script's thresholds with their results.
    pub thresholds: Vec<ThresholdRow>,
}

/// The row of a generator.
#[derive(Clone, Debug)]
pub struct GeneratorRow {
    share: GeneratorShare,
}

impl Generators {
    /// Creates the section; none for a run on one machine.
    pub fn new(run: &Run, list: GeneratorList) -> Option<Self> {
        (!list.generators.is_empty()).then(|| Self {
            percentiles: percentiles(run, &list),
            thresholds: list
                .thresholds
                .into_iter()
                .map(|threshold| ThresholdRow { threshold, agents: run.spec.generators.clone() })
                .collect(),
            rows: list.generators.into_iter().map(|share| GeneratorRow { share }).collect(),
        })
    }
}

fn percentiles(run: &Run, list: &GeneratorList) -> Option<String> {
    run.figures.requests?;
    let generators = plural(list.generators.len(), "generator");
    Some(match (run.figures.p50_ms, list.percentiles_within) {
        (Some(_), Some(width)) => format!(
            "Percentiles come from the merged histograms of {generators} and are exact to within one bucket, which is \
             {:.0}\u{a0}% wide. Counts, means, minima and maxima are exact.",
            width * 100.0
        ),
        _ => format!(
            "Percentiles are unknown: the time series of {generators} do not contain every request, and percentiles of \
             the parts can’t be merged."
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
    /// Returns metric and expression.
    pub fn condition(&self) -> (&str, &str) {
        (&self.threshold.metric, &self.threshold.expression)
    }

    /// Returns the result for the total load; none if unknown.
    pub fn whole(&self) -> Option<Badge> {
        self.threshold.passed.as_ref().map(badge::threshold)
    }

    /// Returns how the result is known, or why it is not.
    pub fn basis(&self) -> &'static str {
        self.threshold.basis.describe()
    }

    /// Returns the result of each k6 for its own part.
    pub fn own(&self) -> Vec<(&str, Option<Badge>)> {
        let results = self.threshold.own.iter().map(|passed| passed.as_ref().map(badge::threshold));
        self.agents.iter().map(String::as_str).zip(results).collect()
    }
}

impl GeneratorRow {
    /// Returns the name of the agent.
    pub fn agent(&self) -> &str {
        &self.share.agent
    }

    /// Returns the path segment of the agent's page.
    pub fn address(&self) -> String {
        address::segment(&self.share.agent)
    }

    /// Returns the segment of the load.
    pub fn segment(&self) -> &str {
        &self.share.segment
    }

    /// Whether its part is delivered.
    pub fn is_there(&self) -> bool {
        self.share.delivered
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> Figure {
        format::count(self.share.requests)
    }

    /// Returns the requests per second.
    pub fn rps(&self) -> Figure {
        format::number(self.share.rps)
    }

    /// Returns the 99th percentile of its own latencies.
    pub fn p99(&self) -> Figure {
        format::latency(self.share.p99_ms)
    }

    /// Returns the number of failed requests.
    pub fn failed(&self) -> Figure {
        format::count(self.share.failed)
    }

    /// Returns the cores that its k6 used: `0.85 of 2`.
    pub fn used(&self) -> Option<String> {
        used(&self.share)
    }

    /// Returns how much later than the first generator it began.
    pub fn began(&self) -> Option<String> {
        began(&self.share)
    }

    /// Returns the offset of its clock from the server's.
    pub fn clock(&self) -> Option<String> {
        clock(&self.share)
    }
}

/// Formats the cores that a generator's k6 used, of those it could use: `0.85 of 2`.
pub fn used(share: &GeneratorShare) -> Option<String> {
    let used = share.used_cores?;
    Some(match share.cores {
        Some(cores) => format!("{used:.2} of {cores}"),
        None => format!("{used:.2}"),
    })
}

/// Formats how much later than the first a generator began: `+12 ms`.
pub fn began(share: &GeneratorShare) -> Option<String> {
    share.after_first_ms.map(|ms| format!("+{ms}\u{a0}ms"))
}

/// Formats the offset of a generator's clock from the server's: `+3.2 ± 0.4 ms`.
pub fn clock(share: &GeneratorShare) -> Option<String> {
    let (offset, error) = share.clock_offset_ms.zip(share.clock_error_ms)?;
    Some(format!("{offset:+.1}\u{a0}±\u{a0}{error:.1}\u{a0}ms"))
}
