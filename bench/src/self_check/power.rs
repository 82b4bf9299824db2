//! The minimum detectable effect of a page, and whether the next experiment finds a difference of that size.

use brewbench::compare::{comparison_context::ComparisonContext, metric::Metric, statistics::Decision};
use rand::rngs::StdRng;

use super::{
    compare::{challenger, compare},
    noise::Within,
    tally::{Share, rounds},
    world::{BASE, Metrics, Plan, at_ms, experiment},
};

/// Results of simulated pairs of experiments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Power {
    /// Differences of the size of the minimum detectable effect that are found.
    pub found: Share,
    /// Sum of the minimum detectable effects.
    sum: f64,
}

impl Power {
    /// Returns the mean minimum detectable effect; `None` without any.
    pub fn mean(self) -> Option<f64> {
        (self.found.total > 0).then(|| self.sum / self.found.total as f64)
    }

    fn add(self, other: Self) -> Self {
        Self { found: self.found.plus(other.found), sum: self.sum + other.sum }
    }
}

/// Reads the minimum detectable effect of equal programs, and measures programs that differ by as much.
pub fn detectable(within: Within, repetitions: usize, metrics: Metrics, count: usize, seed: u64) -> Power {
    let plan = |factor| Plan { repetitions, within, metrics, factor, ..Plan::USUAL };
    let measure = |factor: f64, random: &mut StdRng| {
        let page = compare(
            experiment("tonight", plan(factor), at_ms(0, 0), 0.0, random),
            Some(BASE),
            &ComparisonContext::default(),
        );
        challenger(&page).map(|cell| cell.stat(Metric::Rps).clone())
    };
    let round = |random: &mut StdRng| {
        let mut power = Power::default();
        if let Some(size) = measure(1.0, random).and_then(|stat| stat.detectable) {
            let decision = measure(1.0 + size, random).and_then(|stat| stat.decision);
            power.found.count(decision.is_some_and(Decision::is_difference));
            power.sum += size;
        }
        power
    };
    rounds(count, seed, round).into_iter().fold(Power::default(), Power::add)
}
