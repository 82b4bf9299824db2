//! Simulated runs in brewbench's own types: experiments of two programs, in the order in which brewbench measures them.

use brewbench::{
    compare::past,
    experiments::order::{Grid, order},
    metrics,
    runs::{model::Run, store::cells::PastRun},
};
use rand::{Rng, rngs::StdRng};
use serde_json::json;

use super::noise::Within;

/// Name of the baseline program.
pub const BASE: &str = "base";
/// Name of the other program.
pub const OTHER: &str = "other";
/// Names of all programs.
pub const TARGETS: [&str; 5] = [BASE, OTHER, "third", "fourth", "fifth"];

const NIGHT_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
const FIRST_NIGHT_MS: i64 = 1_700_000_000_000;

/// The metrics of simulated runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// Throughput alone.
    One,
    /// Throughput, p50, p99, CPU time and memory.
    Five,
    /// The same, with most of their noise in common, as a machine gives it to them.
    Related,
}

/// Which programs differ by the plan's factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differ {
    /// Each from the one before.
    Each,
    /// The last one from all others, which are equal.
    Last,
}

/// An experiment to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Programs, up to five.
    pub targets: usize,
    /// Machine sizes; the programs are compared in each.
    pub sizes: usize,
    /// Repetitions.
    pub repetitions: usize,
    /// Noise.
    pub within: Within,
    /// Factor on the noise.
    pub noisier: f64,
    /// Simulated metrics.
    pub metrics: Metrics,
    /// The true factor of throughput between two programs; that of latency and costs is the inverse.
    pub factor: f64,
    /// Which programs differ by it.
    pub differ: Differ,
}

impl Plan {
    /// Two equal programs with the noise of an idle machine, and one question.
    pub const USUAL: Self = Self {
        targets: 2,
        sizes: 1,
        repetitions: 5,
        within: Within::LogNormal,
        noisier: 1.0,
        metrics: Metrics::One,
        factor: 1.0,
        differ: Differ::Each,
    };

    /// Returns the logarithm of a program's true factor.
    fn effect(self, target: usize) -> f64 {
        let times = match self.differ {
            Differ::Each => target,
            Differ::Last => usize::from(target + 1 == self.targets),
        };
        times as f64 * self.factor.ln()
    }
}

/// Returns the time of an experiment in a night; those of one night start an hour apart.
pub fn at_ms(night: usize, place: usize) -> i64 {
    let count = |number: usize| i64::try_from(number).unwrap_or(0);
    FIRST_NIGHT_MS + count(night) * NIGHT_MS + count(place) * HOUR_MS
}

/// Returns a run without metrics.
pub fn blank(experiment: &str, target: &str, size: usize, repetition: u32, at: i64) -> Run {
    let run = json!({
        "id": format!("{experiment}-{target}-{size}-{repetition}"), "experiment": experiment, "labels": [],
        "origin": "agent", "interleaved": true, "target": target, "version": null,
        "size": {"name": size_name(size), "vcpus": size, "memory_bytes": 1_u64 << 30, "replicas": 1},
        "scenario": "hash", "scenario_sha256": "00", "parameters": {},
        "load": {"kind": "vus", "vus": 10, "duration_s": 10.0}, "vus": 10, "repetition": repetition,
        "phase": "finished", "verdict": "valid", "reasons": [], "agent": "rack", "generators": [],
        "requests": 100_000, "failed": 0, "error_rate": 0.0,
        "created_by": "simulation", "queued_at_ms": at, "phase_at_ms": at, "started_at_ms": at,
    });
    serde_json::from_value(run).expect("a run of the product's own shape")
}

/// Sets a metric of a run, by the logarithm of its factor.
type Set = fn(&mut Run, f64);

/// Simulates the runs of an experiment at a time; `offset` moves all of them.
pub fn experiment(name: &str, plan: Plan, at: i64, offset: f64, random: &mut StdRng) -> Vec<Run> {
    let grid = Grid { targets: plan.targets, sizes: plan.sizes, loads: 1 };
    let last = u32::try_from(plan.repetitions).unwrap_or(u32::MAX);
    let cells = order(grid, random.random(), 1..=last);
    let mut runs: Vec<Run> =
        cells.iter().map(|cell| blank(name, TARGETS[cell.target], cell.size + 1, cell.repetition, at)).collect();
    let set: [(Set, f64); 5] = [
        (|run, log| run.figures.rps = Some(10_000.0 * log.exp()), 1.0),
        (|run, log| run.figures.p50_ms = Some(4.0 * log.exp()), -1.0),
        (|run, log| run.figures.p99_ms = Some(16.0 * log.exp()), -1.0),
        (|run, log| run.figures.cpu_ms_per_request = Some(0.1 * log.exp()), -1.0),
        (|run, log| run.figures.held_memory_bytes = Some(bytes(2e9 * log.exp())), -1.0),
    ];
    let metrics = if plan.metrics == Metrics::One { 1 } else { set.len() };
    let shared = plan.within.draw(cells.len(), random);
    // Standard deviations of the shared and of the own part add up to that of the noise.
    let (of_shared, of_own) = if plan.metrics == Metrics::Related { (0.8, 0.6) } else { (0.0, 1.0) };
    for (set, sign) in &set[..metrics] {
        let own = plan.within.draw(cells.len(), random);
        for (((run, cell), own), shared) in runs.iter_mut().zip(&cells).zip(own).zip(&shared) {
            let noise = of_own * own + of_shared * sign * shared;
            set(run, plan.noisier * noise + sign * (plan.effect(cell.target) + offset));
        }
    }
    runs
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some gigabytes")]
fn bytes(amount: f64) -> u64 {
    amount as u64
}

/// Returns the runs of one program.
pub fn only(runs: Vec<Run>, target: &str) -> Vec<Run> {
    runs.into_iter().filter(|run| run.spec.target == target).collect()
}

/// Returns the runs of one machine size.
pub fn of_size(runs: &[Run], size: usize) -> Vec<Run> {
    let is_it = |run: &&Run| run.spec.size.as_ref().is_some_and(|own| own.name == size_name(size));
    runs.iter().filter(is_it).cloned().collect()
}

fn size_name(size: usize) -> String {
    format!("{size} vCPU")
}

/// Returns the past of the cells of some runs, as brewbench reads it.
pub fn history(runs: &[Run], past: &[Run]) -> past::History {
    let read = |run: &Run| PastRun {
        experiment: run.experiment.clone().unwrap_or_else(|| String::new().into()),
        at_ms: run.started_at_ms,
        figures: metrics::compared().map(|metric| metric.value_in(run)).collect(),
    };
    past::representatives(runs).into_keys().map(|cell| (cell, past.iter().map(read).collect())).collect()
}
