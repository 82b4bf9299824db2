//! What is stored about a generator: enough to re-judge it without its series, and to show its share. Pure.

use std::collections::BTreeMap;

use brewbench_wire::{
    histogram::Histogram,
    job::Segment,
    outcome::{Conditions, Outcome},
    reports::summary::Figures,
    series::{Gaps, Series, WindowKind},
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    catalog::model::Engine,
    results::{
        clock::{Clock, Clocked},
        verdict::usage::{Span, UsageScope, spans, thirds},
    },
};

/// A generator of a distributed run. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorRecord {
    /// Name of its agent when the run ended.
    pub agent: String,
    /// Its part of the load in k6's notation: `1/3:2/3`.
    pub segment: String,
    /// What it measured.
    pub figures: Option<Share>,
    /// Processors assigned to k6; empty if all.
    pub cores: Vec<usize>,
    /// Its load generator.
    #[serde(alias = "k6_version", deserialize_with = "stored_engine")]
    pub engine: Option<Engine>,
    /// The load generator's last output.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// Facts about its machine.
    pub environment: BTreeMap<String, String>,
    /// Conditions on its machine.
    pub conditions: Conditions,
    /// Its clock compared with the server's.
    pub clock: Option<Clock>,
    /// When its measurement started, by the server's clock, unix ms.
    pub start_ms: Option<i64>,
    /// How much later that was than the first generator's, ms.
    pub after_first_ms: Option<i64>,
    /// What its series contained.
    pub series: Option<SeriesContent>,
    /// CPU use on its machine.
    pub used: Option<CpuUse>,
}

/// Reads an engine, or the k6 version that older servers stored; empty if unknown.
fn stored_engine<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Engine>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Engine(Engine),
        VersionOfK6(String),
    }
    Ok(match Option::deserialize(deserializer)? {
        Some(Stored::Engine(engine)) => Some(engine),
        Some(Stored::VersionOfK6(version)) if version.is_empty() => None,
        Some(Stored::VersionOfK6(version)) => Some(Engine { name: "k6".to_owned(), version: Some(version) }),
        None => None,
    })
}

/// Metrics of a generator's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Requests.
    pub requests: u64,
    /// Requests that failed.
    pub failed: Option<u64>,
    /// Requests per second of its own measured time.
    pub rps: f64,
    /// How long it measured.
    pub measured_ms: f64,
    /// Median of its own latencies.
    pub p50_ms: Option<f64>,
    /// 99th percentile of its own latencies.
    pub p99_ms: Option<f64>,
    /// Thresholds of the script, evaluated for its part.
    pub thresholds: u32,
    /// How many of them its part failed.
    pub thresholds_failed: u32,
}

/// What the measured part of a series contained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesContent {
    /// Requests.
    pub requests: u64,
    /// Seconds.
    pub seconds: u64,
    /// Samples of CPU and memory.
    pub samples: u64,
    /// Known gaps.
    pub gaps: Gaps,
    /// The coarsest schema of its histograms; None if all are empty.
    #[serde(default)]
    pub schema: Option<i8>,
}

/// CPU use of a generator's machine during the measurement, in cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// By k6 in each third of the measured time; one value if that was short.
    pub thirds: Vec<f64>,
    /// By k6 on average.
    pub mean: f64,
    /// Share of the measured time for which a quota throttled k6, summed over its cores.
    pub throttled: f64,
    /// By others.
    pub others: f64,
    /// Given to other virtual machines.
    pub steal: f64,
    /// Share of the requested CPU time that was given to them.
    pub stolen: f64,
}

impl GeneratorRecord {
    /// Returns the record of an outcome; `segment` is the agent's part of the load.
    pub fn from_outcome(
        agent: &str,
        segment: Segment,
        outcome: &Outcome,
        figures: &Figures,
        series: Option<Clocked<'_>>,
        clock: Option<Clock>,
    ) -> Self {
        Self {
            agent: agent.to_owned(),
            segment: segment.segment(),
            figures: Some(Share::from_figures(figures)),
            cores: outcome.cores.generator.clone(),
            engine: outcome.engine.as_ref().map(Engine::from_report),
            generator_log: outcome.generator_log.clone(),
            environment: outcome.environment.clone(),
            conditions: outcome.conditions.clone().checked(),
            clock,
            start_ms: series.and_then(|series| series.start_ms(WindowKind::Measured)),
            after_first_ms: None,
            series: series.and_then(|clocked| SeriesContent::from_series(clocked.series)),
            used: series.and_then(|clocked| CpuUse::from_series(clocked.series)),
        }
    }

    /// Whether it was a Pod in a cluster, which knows its node.
    pub fn is_pod(&self) -> bool {
        self.environment.contains_key("load.node")
    }

    /// Returns how many processors k6 could use.
    pub fn cores(&self) -> Option<f64> {
        let assigned = if self.cores.is_empty() { usable(&self.environment) } else { Some(self.cores.len() as f64) };
        assigned.map(|cores| self.conditions.generator_cores(cores))
    }

    /// Returns how many processors of the machine agents may use.
    pub fn machine_cores(&self) -> Option<f64> {
        usable(&self.environment).or(self.cores())
    }
}

/// Sets how much later than the first each generator started.
pub fn compare_starts(generators: &mut [GeneratorRecord]) {
    let first = generators.iter().filter_map(|one| one.start_ms).min();
    for one in generators {
        one.after_first_ms = one.start_ms.zip(first).map(|(start, first)| start.saturating_sub(first));
    }
}

impl Share {
    fn from_figures(figures: &Figures) -> Self {
        Self {
            requests: figures.requests,
            failed: figures.failed,
            rps: figures.rps,
            measured_ms: figures.measured_ms,
            p50_ms: figures.latency.p50_ms,
            p99_ms: figures.latency.p99_ms,
            thresholds: figures.thresholds.unwrap_or(0),
            thresholds_failed: figures.thresholds_failed.unwrap_or(0),
        }
    }
}

impl SeriesContent {
    /// Returns the content of a series; None without a measured part.
    pub fn from_series(series: &Series) -> Option<Self> {
        let window = series.measured.as_ref()?;
        Some(Self {
            requests: window.seconds.iter().fold(0, |sum, second| sum.saturating_add(second.requests())),
            seconds: window.seconds.len() as u64,
            samples: window.usage.len() as u64,
            gaps: window.gaps,
            schema: window
                .seconds
                .iter()
                .flat_map(|second| [&second.succeeded, &second.failed])
                .filter(|histogram| !histogram.is_empty())
                .map(Histogram::schema)
                .min(),
        })
    }
}

impl CpuUse {
    fn from_series(series: &Series) -> Option<Self> {
        let spans = spans(series, UsageScope::Generator, 1.0);
        let all = Span::sum(&spans)?;
        Some(Self {
            thirds: thirds(&spans).into_iter().filter_map(Span::sum).map(|third| third.generator()).collect(),
            mean: all.generator(),
            throttled: all.generator_throttled_sum(),
            others: all.others(),
            steal: all.steal(),
            stolen: all.stolen(),
        })
    }
}

/// Returns the number of processors that the agent may use; agents of 0.1.0 call it `cores`.
pub fn usable(environment: &BTreeMap<String, String>) -> Option<f64> {
    let cores = ["cpu.usable", "cores"].into_iter().find_map(|name| environment.get(name))?;
    cores.parse().ok().filter(|cores: &f64| cores.is_finite())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_old_record_with_a_k6_version_is_read() {
        let read = |text: serde_json::Value| serde_json::from_value::<GeneratorRecord>(text).expect("a record");
        let old = read(json!({"agent": "rack", "k6_version": "1.8.1", "k6_log": "up"}));
        let engine = Engine { name: "k6".to_owned(), version: Some("1.8.1".to_owned()) };
        assert_eq!((old.engine.as_ref(), old.generator_log.as_str()), (Some(&engine), "up"));
        assert_eq!(read(json!({"k6_version": ""})).engine, None);
        assert_eq!(read(serde_json::to_value(&old).expect("written")), old);
    }
}
