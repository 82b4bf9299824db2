//! What is kept of a generator of a run: enough to judge it again without its series, and to show its share. Pure.

use std::collections::BTreeMap;

use brewbench_agent::{
    reports::summary::Figures,
    series::histogram::Histogram,
    wire::{
        job::Segment,
        outcome::Outcome,
        series::{Lacks, Part, Series},
    },
};
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    catalog::model::Engine,
    results::{
        clock::{Clock, Clocked},
        conditions::Conditions,
        evidence::usable,
        verdict::usage::{Side, Span, spans, thirds},
    },
};

/// A generator of a run, as it was seen. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct GeneratorSeen {
    /// What it was called when the run ended.
    pub agent: String,
    /// Which part of the load was its own, as k6 has it: `1/3:2/3`.
    pub segment: String,
    /// What it measured.
    pub figures: Option<Share>,
    /// The processors that k6 was given; empty if all.
    pub cores: Vec<usize>,
    /// Its load generator.
    #[serde(alias = "k6_version", deserialize_with = "stored_engine")]
    pub engine: Option<Engine>,
    /// The load generator's last output.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// Facts about its machine.
    pub environment: BTreeMap<String, String>,
    /// What speaks for or against the circumstances there.
    pub conditions: Conditions,
    /// Its clock held against the server's.
    pub clock: Option<Clock>,
    /// When it began to measure, by the server's clock, unix ms.
    pub start_ms: Option<i64>,
    /// How much later that was than the first one's, ms.
    pub after_first_ms: Option<i64>,
    /// What its series had in it.
    pub series: Option<SeriesSeen>,
    /// What was used on its machine.
    pub used: Option<Used>,
}

/// Until load generators had names, the version of k6 was stored; empty where it was not known.
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

/// The figures of a generator's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Requests.
    pub requests: u64,
    /// Requests that failed.
    pub failed: Option<u64>,
    /// Requests a second of its own measured time.
    pub rps: f64,
    /// How long it measured.
    pub measured_ms: f64,
    /// Median of its own latencies.
    pub p50_ms: Option<f64>,
    /// 99th percentile of its own latencies.
    pub p99_ms: Option<f64>,
    /// Thresholds of the script, judged for its part.
    pub thresholds: u32,
    /// Those that its part crossed.
    pub thresholds_failed: u32,
}

/// What the series of a measured part had in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeriesSeen {
    /// Requests.
    pub requests: u64,
    /// Seconds.
    pub seconds: u64,
    /// Samples of CPU and memory.
    pub samples: u64,
    /// What it is known to lack.
    pub lacks: Lacks,
    /// The coarsest schema of its histograms; nothing if all are empty.
    #[serde(default)]
    pub schema: Option<i8>,
}

/// CPU of a generator's machine while it measured, in cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// By k6 in the thirds of the measured time, or once for all of it if that was short.
    pub thirds: Vec<f64>,
    /// By k6.
    pub mean: f64,
    /// Time in which a quota held k6 back, as a part of the measured time, added up over its cores.
    pub throttled: f64,
    /// By others.
    pub others: f64,
    /// Given to other virtual machines.
    pub steal: f64,
    /// Share of the wanted CPU time that was given to them.
    pub stolen: f64,
}

impl GeneratorSeen {
    /// What an outcome says of its generator; `segment` is its part of the load.
    pub fn of(
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
            figures: Some(Share::of(figures)),
            cores: outcome.cores.generator.clone(),
            engine: outcome.engine.as_ref().map(Engine::of),
            generator_log: outcome.generator_log.clone(),
            environment: outcome.environment.clone(),
            conditions: outcome.conditions.clone().into(),
            clock,
            start_ms: series.and_then(|series| series.start_ms(Part::Measured)),
            after_first_ms: None,
            series: series.and_then(|clocked| SeriesSeen::of(clocked.series)),
            used: series.and_then(|clocked| Used::of(clocked.series)),
        }
    }

    /// How many processors k6 could use.
    pub fn cores(&self) -> Option<f64> {
        if self.cores.is_empty() { usable(&self.environment) } else { Some(self.cores.len() as f64) }
    }

    /// How many processors the machine has for all of this.
    pub fn machine_cores(&self) -> Option<f64> {
        usable(&self.environment).or(self.cores())
    }
}

/// Says of each how much later than the first it began.
pub fn compare_starts(generators: &mut [GeneratorSeen]) {
    let first = generators.iter().filter_map(|one| one.start_ms).min();
    for one in generators {
        one.after_first_ms = one.start_ms.zip(first).map(|(start, first)| start.saturating_sub(first));
    }
}

impl Share {
    fn of(figures: &Figures) -> Self {
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

impl SeriesSeen {
    /// Of a series; nothing without a measured part.
    pub fn of(series: &Series) -> Option<Self> {
        let stretch = series.measured.as_ref()?;
        Some(Self {
            requests: stretch.seconds.iter().fold(0, |sum, second| sum.saturating_add(second.requests())),
            seconds: stretch.seconds.len() as u64,
            samples: stretch.usage.len() as u64,
            lacks: stretch.lacks,
            schema: stretch
                .seconds
                .iter()
                .flat_map(|second| [&second.succeeded, &second.failed])
                .filter(|histogram| !histogram.is_empty())
                .map(Histogram::schema)
                .min(),
        })
    }
}

impl Used {
    fn of(series: &Series) -> Option<Self> {
        let spans = spans(series, Side::Generator);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_of_the_time_when_only_the_version_of_k6_was_stored_is_read() {
        let read = |text: serde_json::Value| serde_json::from_value::<GeneratorSeen>(text).expect("a record");
        let old = read(json!({"agent": "rack", "k6_version": "1.8.1", "k6_log": "up"}));
        let engine = Engine { name: "k6".to_owned(), version: Some("1.8.1".to_owned()) };
        assert_eq!((old.engine.as_ref(), old.generator_log.as_str()), (Some(&engine), "up"));
        assert_eq!(read(json!({"k6_version": ""})).engine, None);
        assert_eq!(read(serde_json::to_value(&old).expect("written")), old);
    }
}
