//! Each generator's own share of a run, as JSON, commands and pages have it. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    catalog::model::Engine,
    distributed::merge::segment,
    results::{
        clock::Clock,
        evidence::{Evidence, WholeThreshold},
        generator_record::{GeneratorSeen, Used},
        store::parts::PartState,
    },
    runs::model::Run,
};

/// Who made the load of a run, where it was not the target's own agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorList {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// In the order of their segments; empty where the target's agent made the load.
    pub generators: Vec<GeneratorShare>,
    /// How wide the buckets are that the run's percentiles come from, as a share of a latency: 0.09 is 9 %. Null until the
    /// run has a result, and where no generator told its histograms.
    pub percentiles_within: Option<f64>,
    /// The script's thresholds for the load of all together; empty until the run has a result, and where it has none.
    pub thresholds: Vec<WholeThreshold>,
}

/// What one generator has done of a run. What is not known, or not yet, is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GeneratorShare {
    /// Its agent.
    pub agent: String,
    /// Its part of the load, as k6 calls it: `1/3:2/3`.
    pub segment: String,
    /// Whether its result is there.
    pub delivered: bool,
    /// Requests that it made.
    pub requests: Option<u64>,
    /// Requests that failed.
    pub failed: Option<u64>,
    /// Requests per second of its own measured time.
    pub rps: Option<f64>,
    /// Median of its own latencies, ms, as its k6 has it.
    pub p50_ms: Option<f64>,
    /// 99th percentile of its own latencies, ms, as its k6 has it.
    pub p99_ms: Option<f64>,
    /// How long it measured, seconds.
    pub measured_s: Option<f64>,
    /// Thresholds of the script, which its k6 has judged for its part alone.
    pub thresholds: Option<u32>,
    /// Those that its part crossed.
    pub thresholds_failed: Option<u32>,
    /// Cores that its k6 could use.
    pub cores: Option<f64>,
    /// Cores that its k6 used on average.
    pub used_cores: Option<f64>,
    /// Cores that its k6 used in the busiest third of the measured time.
    pub busiest_cores: Option<f64>,
    /// Cores that others used on its machine.
    pub others_cores: Option<f64>,
    /// When it began to measure, by the server's clock, unix ms.
    pub start_ms: Option<i64>,
    /// How much later it began than the first of them, ms.
    pub after_first_ms: Option<i64>,
    /// By how much its clock is ahead of the server's, ms.
    pub clock_offset_ms: Option<f64>,
    /// How far that may be wrong, ms.
    pub clock_error_ms: Option<f64>,
    /// Its load generator.
    pub engine: Option<Engine>,
}

impl GeneratorList {
    /// Of a run, from what is kept of its generators, or from how far they are.
    pub fn of(run: &Run, evidence: Option<&Evidence>, states: &[PartState]) -> Self {
        let seen = evidence.map_or(&[][..], |evidence| &evidence.generators);
        let one = |(index, agent): (usize, &String)| {
            let place = i64::try_from(index + 1).unwrap_or(i64::MAX);
            let state = states.iter().find(|state| state.place == place);
            // A run that has ended keeps the names of its agents, whatever they are called later.
            let share = match seen.get(index) {
                Some(seen) => GeneratorShare::seen(seen),
                None => GeneratorShare::expected(state),
            };
            let segment = segment(index, run.generators.len()).segment();
            GeneratorShare { agent: agent.clone(), segment, ..share }
        };
        Self {
            run: run.id.clone(),
            generators: run.generators.iter().enumerate().map(one).collect(),
            percentiles_within: width(seen),
            thresholds: evidence.map_or_else(Vec::new, |evidence| evidence.thresholds.clone()),
        }
    }
}

/// How wide the buckets are that the sum of these has.
fn width(seen: &[GeneratorSeen]) -> Option<f64> {
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

    fn seen(seen: &GeneratorSeen) -> Self {
        let used = seen.used.clone().unwrap_or_default();
        let known = |value: fn(&Used) -> Option<f64>| seen.used.as_ref().and_then(value);
        let share = Self {
            delivered: true,
            cores: seen.cores(),
            used_cores: known(|used| Some(used.mean)),
            busiest_cores: used.thirds.into_iter().reduce(f64::max),
            others_cores: known(|used| Some(used.others)),
            start_ms: seen.start_ms,
            after_first_ms: seen.after_first_ms,
            engine: seen.engine.clone(),
            ..Self::default()
        };
        let Some(figures) = seen.figures else { return share.by(seen.clock) };
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
        .by(seen.clock)
    }

    fn by(self, clock: Option<Clock>) -> Self {
        let (clock_offset_ms, clock_error_ms) = (clock.map(|clock| clock.offset_ms), clock.map(|clock| clock.error_ms));
        Self { clock_offset_ms, clock_error_ms, ..self }
    }
}
