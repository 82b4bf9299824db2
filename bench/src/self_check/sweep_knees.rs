//! Knees of simulated sweeps: how often equal targets get different ones, and whether the range holds the truth.

use brewbench::{
    compare::{comparison_context::ComparisonContext, knee::SweepKnee, statistics::spread, view::Comparison},
    experiments::order::{Grid, order},
    runs::model::Run,
};
use rand::{Rng, rngs::StdRng};
use serde_json::{from_value, json};

use super::{
    compare::compare,
    noise::{SIGMA, Within},
    tally::{Share, rounds},
    world::{TARGETS, at_ms, blank},
};

/// Virtual users of the sweep, and requests per second at each load: the knee is at 16.
const CURVE: [(u32, f64); 6] = [(2, 1_000.0), (4, 1_900.0), (8, 3_400.0), (16, 5_800.0), (32, 5_900.0), (64, 6_000.0)];

/// Place of the knee in it.
const KNEE: usize = 3;

/// Loads by which the knee of another target differs from that of the first.
const LATER: usize = 2;

/// Results of simulated sweeps of two targets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knees {
    /// Sweeps in which the knees of both targets differ.
    pub differ: Share,
    /// The same if the knee were the lowest load whose median is within 5 % of the highest median.
    pub medians_differ: Share,
    /// Knees of the first target whose range holds the true one.
    pub covers: Share,
    /// Knees of the first target that are a single load.
    pub single: Share,
    /// Total loads in the ranges of the first target.
    pub loads: usize,
}

impl Knees {
    /// Returns the mean number of loads in a range.
    pub fn mean(self) -> f64 {
        self.loads as f64 / self.covers.total.max(1) as f64
    }

    fn add(self, other: Self) -> Self {
        Self {
            differ: self.differ.plus(other.differ),
            medians_differ: self.medians_differ.plus(other.medians_differ),
            covers: self.covers.plus(other.covers),
            single: self.single.plus(other.single),
            loads: self.loads + other.loads,
        }
    }

    fn of(runs: Vec<Run>) -> Self {
        let medians = [0, 1].map(|target| by_medians(&runs, TARGETS[target]));
        let page: Comparison = compare(runs, None, &ComparisonContext::default());
        let mut knees = Self::default();
        let [one, other] = page.knees.as_slice() else { return knees };
        knees.differ.count(one.knee.is_before(&other.knee) || other.knee.is_before(&one.knee));
        knees.medians_differ.count(medians[0] != medians[1]);
        let (from, to) = one.knee.range().unwrap_or((0, u32::MAX));
        knees.covers.count((from..=to).contains(&CURVE[KNEE].0));
        knees.single.count(matches!(one.knee, SweepKnee::Between { from, to } if from == to));
        knees.loads = CURVE.iter().filter(|(load, _)| (from..=to).contains(load)).count();
        knees
    }
}

/// Simulates sweeps of two targets; the knee of the second is at the same load, or two loads later.
pub fn sweeps(is_later: bool, noise: f64, repetitions: u32, count: usize, seed: u64) -> Knees {
    let sweep = |random: &mut StdRng| Knees::of(sweep(is_later, noise, repetitions, random));
    rounds(count, seed, sweep).into_iter().fold(Knees::default(), Knees::add)
}

fn sweep(is_later: bool, noise: f64, repetitions: u32, random: &mut StdRng) -> Vec<Run> {
    let grid = Grid { targets: 2, sizes: 1, loads: CURVE.len() };
    let cells = order(grid, random.random(), 1..=repetitions);
    let drawn = Within::LogNormal.draw(cells.len(), random);
    let run = |(cell, own): (_, f64)| {
        let brewbench::experiments::order::PlanIndices { target, load, repetition, .. } = cell;
        let (vus, rate) = CURVE[load];
        // The same curve for a target that needs four times the load.
        let rate = match (is_later && target == 1, load.checked_sub(LATER)) {
            (false, _) => rate,
            (true, Some(earlier)) => CURVE[earlier].1,
            (true, None) => rate / 4.0,
        };
        let run = blank("tonight", TARGETS[target], 1, repetition, at_ms(0, 0));
        let load = from_value(json!({"kind": "vus", "vus": vus, "duration_s": 10.0})).expect("a load");
        let mut run = Run { id: format!("{}-{vus}", run.id).into(), spec: run.spec.clone().under(load), ..run };
        run.figures.rps = Some(rate * (noise / SIGMA * own).exp());
        run
    };
    cells.into_iter().zip(drawn).map(run).collect()
}

/// Returns the lowest load whose median is within 5 % of the highest median.
fn by_medians(runs: &[Run], target: &str) -> Option<u32> {
    let median = |load: u32| {
        let own = runs.iter().filter(|run| run.spec.target == target && run.spec.vus == Some(load));
        spread(own.filter_map(|run| run.figures.rps)).map_or(0.0, |spread| spread.median)
    };
    let medians = CURVE.map(|(load, _)| (load, median(load)));
    let most = medians.iter().map(|(_, median)| *median).fold(0.0, f64::max);
    medians.iter().find(|(_, median)| *median >= 0.95 * most).map(|(load, _)| *load)
}
