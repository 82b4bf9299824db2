//! Each generator's share of a distributed run, for JSON, commands and pages. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    catalog::model::Engine,
    distributed::merge::segment,
    results::{
        clock::Clock,
        evidence::{Evidence, WholeThreshold},
        generator_record::{CpuUse, GeneratorRecord},
        store::parts::PartState,
    },
    runs::model::Run,
};

/// The generators of a distributed run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorList {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// The generators in the order of their segments; empty for a run on one machine.
    pub generators: Vec<GeneratorShare>,
    /// Width of the histogram buckets behind the run's percentiles, relative to the latency: 0.09 is 9 %. Null until
    /// the run has a result, and if no generator reported histograms.
    pub percentiles_within: Option<f64>,
    /// The script's thresholds for the total load; empty until the run has a result.
    pub thresholds: Vec<WholeThreshold>,
}

/// The share of one generator. Unknown values are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorShare {
    /// The name of its agent; in a cluster, its number and the name of its node.
    pub agent: String,
    /// Its execution segment in k6's notation: `1/3:2/3`.
    pub segment: String,
    /// Whether its part is delivered.
    pub delivered: bool,
    /// Requests of its part.
    pub requests: Option<u64>,
    /// Failed requests of its part.
    pub failed: Option<u64>,
    /// Requests per second of its own measured time.
    pub rps: Option<f64>,
    /// Median of its own latencies as reported by its k6, ms.
    pub p50_ms: Option<f64>,
    /// 99th percentile of its own latencies as reported by its k6, ms.
    pub p99_ms: Option<f64>,
    /// Length of its measured time, seconds.
    pub measured_s: Option<f64>,
    /// Number of thresholds of the script, which its k6 has judged for its own part.
    pub thresholds: Option<u32>,
    /// Number of thresholds that its own part failed.
    pub thresholds_failed: Option<u32>,
    /// Cores that its k6 could use.
    pub cores: Option<f64>,
    /// Cores that its k6 used on average.
    pub used_cores: Option<f64>,
    /// Cores that its k6 used in the busiest third of the measured time.
    pub busiest_cores: Option<f64>,
    /// Cores that other processes used on its machine.
    pub others_cores: Option<f64>,
    /// When it began to measure, by the server's clock, unix ms; null for a Pod.
    pub start_ms: Option<i64>,
    /// How much later than the first generator it began, ms.
    pub after_first_ms: Option<i64>,
    /// How far its clock is ahead of the server's, ms; null for a Pod.
    pub clock_offset_ms: Option<f64>,
    /// The maximum error of the offset, ms; of a Pod, how much later than it says it may have begun.
    pub clock_error_ms: Option<f64>,
    /// Its load generator.
    pub engine: Option<Engine>,
}

impl GeneratorList {
    /// Lists the generators of a run, from its evidence or, during the run, from the states of its parts.
    pub fn new(run: &Run, evidence: Option<&Evidence>, states: &[PartState]) -> Self {
        let seen = evidence.map_or(&[][..], |evidence| &evidence.generators);
        let names: Vec<String> = match run.spec.cluster_generators {
            0 => run.spec.generators.clone(),
            count => (0..count as usize).map(|index| cluster_name(seen, index)).collect(),
        };
        let one = |(index, agent): (usize, &String)| {
            let place = i64::try_from(index + 1).unwrap_or(i64::MAX);
            let state = states.iter().find(|state| state.place == place);
            // A run keeps the names of its agents when these are renamed.
            let share = match seen.get(index) {
                Some(seen) => GeneratorShare::seen(seen),
                None => GeneratorShare::expected(state),
            };
            let segment = segment(index, names.len()).segment();
            GeneratorShare { agent: agent.clone(), segment, ..share }
        };
        Self {
            run: run.id.clone(),
            generators: names.iter().enumerate().map(one).collect(),
            percentiles_within: width(seen),
            thresholds: evidence.map_or_else(Vec::new, |evidence| evidence.thresholds.clone()),
        }
    }
}

/// Returns the name of a generator in a cluster: its number, and its node once that is known.
fn cluster_name(seen: &[GeneratorRecord], index: usize) -> String {
    seen.get(index).map_or_else(|| format!("Pod {}", index + 1), |record| record.agent.clone())
}

/// Returns the relative width of the merged histogram's buckets.
fn width(seen: &[GeneratorRecord]) -> Option<f64> {
    let coarsest = seen.iter().filter_map(|one| one.series?.schema).min()?;
    Some((-f64::from(coarsest)).exp2().exp2() - 1.0)
}

impl GeneratorShare {
    fn expected(state: Option<&PartState>) -> Self {
        let clock = state.and_then(|state| {
            Some(Clock { offset_ms: state.clock_offset_ms?, error_ms: state.clock_error_ms.unwrap_or(0.0) })
        });
        Self { delivered: state.is_some_and(|state| state.delivered), ..Self::default() }.by(clock)
    }

    fn seen(seen: &GeneratorRecord) -> Self {
        let used = seen.used.clone().unwrap_or_default();
        let known = |value: fn(&CpuUse) -> Option<f64>| seen.used.as_ref().and_then(value);
        let share = Self {
            delivered: true,
            cores: seen.cores(),
            used_cores: known(|used| Some(used.mean)),
            busiest_cores: used.thirds.into_iter().reduce(f64::max),
            // A Pod does not know what else its node does.
            others_cores: known(|used| Some(used.others)).filter(|_| !seen.is_pod()),
            start_ms: seen.start_ms.filter(|_| !seen.is_pod()),
            after_first_ms: seen.after_first_ms,
            engine: seen.engine.clone(),
            ..Self::default()
        };
        // All Pods of a run go by the clock of its agent, which is not compared with the server's.
        let offset_ms = seen.clock.map(|clock| clock.offset_ms).filter(|_| !seen.is_pod());
        let share =
            Self { clock_offset_ms: offset_ms, clock_error_ms: seen.clock.map(|clock| clock.error_ms), ..share };
        let Some(figures) = seen.figures else { return share };
        Self {
            requests: Some(figures.requests),
            failed: figures.failed,
            rps: Some(figures.rps),
            p50_ms: figures.p50_ms,
            p99_ms: figures.p99_ms,
            measured_s: Some(figures.measured_ms / 1e3),
            thresholds: Some(figures.thresholds),
            thresholds_failed: Some(figures.thresholds_failed),
            ..share
        }
    }

    fn by(self, clock: Option<Clock>) -> Self {
        let (clock_offset_ms, clock_error_ms) = (clock.map(|clock| clock.offset_ms), clock.map(|clock| clock.error_ms));
        Self { clock_offset_ms, clock_error_ms, ..self }
    }
}
