//! What repeats of one cell did before: how far its runs scatter within an experiment, and how far it moves from one
//! experiment to the next though nobody meant it to.
//!
//! Targets that were measured turn by turn move together, so the second does not touch their ratio. Those of two
//! experiments do not: a machine that was 3 % slower on Tuesday makes a difference that no test of the runs can tell
//! from a true one. How far that goes is read from the past: the fence above which a move is no usual one (Tukey 1977,
//! "Exploratory Data Analysis", 2D: the upper quartile and one and a half times the distance of the quartiles), as
//! rustc-perf has it for its benchmarks. True changes of the past are few among the moves, and quartiles do not see few.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::spread::sorted;

/// With fewer runs beyond the first of each experiment nothing is said of how they scatter.
const LEAST_FREEDOM: usize = 8;

/// With fewer moves nothing is said of how far they go.
const LEAST_MOVES: usize = 8;

/// What the past of a cell says of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Noise {
    /// Earlier experiments with the cell.
    pub experiments: usize,
    /// Their runs that count and have the figure.
    pub runs: usize,
    /// Standard deviation of the figure's logarithm within an experiment: 0.02 is 2 %.
    pub scatter: f64,
    /// The figure seldom moves farther from one experiment to the next, as a share; null with fewer than nine experiments.
    pub moves: Option<f64>,
}

impl Noise {
    /// How many values the scatter is known from, beyond one for each experiment.
    pub fn freedom(&self) -> usize {
        self.runs - self.experiments
    }
}

/// From the figures of each experiment, the oldest first. None where there are too few, or a figure is not greater than
/// zero.
pub fn noise<'a>(experiments: impl IntoIterator<Item = &'a [f64]>) -> Option<Noise> {
    let experiments: Vec<&[f64]> = experiments.into_iter().filter(|values| !values.is_empty()).collect();
    if experiments.iter().copied().flatten().any(|value| !(value.is_finite() && *value > 0.0)) {
        return None;
    }
    let experiments: Vec<Vec<f64>> =
        experiments.into_iter().map(|values| sorted(values.iter().map(|value| value.ln()))).collect();
    let runs = experiments.iter().map(Vec::len).sum::<usize>();
    let freedom = runs.checked_sub(experiments.len()).filter(|freedom| *freedom >= LEAST_FREEDOM)?;
    let scatter = (experiments.iter().map(|values| squares(values)).sum::<f64>() / freedom as f64).sqrt();
    let medians: Vec<f64> = experiments.iter().map(|values| quartile(values, 2)).collect();
    let moves = sorted(medians.windows(2).map(|pair| (pair[1] - pair[0]).abs()));
    let fence = (moves.len() >= LEAST_MOVES).then(|| {
        let (lower, upper) = (quartile(&moves, 1), quartile(&moves, 3));
        (upper + 1.5 * (upper - lower)).exp_m1()
    });
    Some(Noise { experiments: experiments.len(), runs, scatter, moves: fence })
}

/// So many quarters of the values lie below: between the two nearest, in proportion (Hyndman & Fan 1996, definition 7).
/// `values` must be sorted, and not empty.
fn quartile(values: &[f64], quarters: usize) -> f64 {
    let place = quarters * (values.len() - 1);
    let (below, above) = (values[place / 4], values[place.div_ceil(4)]);
    below + (above - below) * (place % 4) as f64 / 4.0
}

/// Squares of the distances from the mean, added.
pub fn squares(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(experiments: &[Vec<f64>]) -> Option<Noise> {
        noise(experiments.iter().map(Vec::as_slice))
    }

    /// Three runs about each level, two percent apart.
    fn about(levels: &[f64]) -> Vec<Vec<f64>> {
        levels.iter().map(|level| [0.98, 1.0, 1.02].map(|factor| factor * level).to_vec()).collect()
    }

    #[test]
    fn scatter_is_that_within_experiments_wherever_they_lie() {
        let calm = of(&about(&[100.0; 4])).expect("noise");
        let moving = of(&about(&[100.0, 50.0, 300.0, 80.0])).expect("noise");
        assert!((calm.scatter - 0.02).abs() < 1e-4 && (moving.scatter - calm.scatter).abs() < 1e-12);
        assert_eq!((calm.runs, calm.experiments, calm.freedom(), calm.moves), (12, 4, 8, None));
    }

    #[test]
    fn moves_are_those_that_are_usual_and_a_true_change_among_them_is_none() {
        let mut levels = vec![100.0, 101.0, 100.0, 99.0, 100.0, 101.0, 100.0, 99.0, 100.0, 101.0];
        let usual = of(&about(&levels)).and_then(|noise| noise.moves).expect("moves");
        assert!((0.009..0.02).contains(&usual), "{usual}");
        levels.extend([50.0, 50.5, 50.0]);
        let changed = of(&about(&levels)).and_then(|noise| noise.moves).expect("moves");
        assert!((changed - usual).abs() < 0.01, "{changed}");
    }

    #[test]
    fn a_past_of_little_says_nothing() {
        assert_eq!(of(&[]), None);
        assert_eq!(of(&about(&[100.0; 3])), None, "six values too many");
        assert_eq!(of(&vec![vec![100.0]; 30]), None, "one run each says nothing of scatter");
        assert_eq!(of(&vec![vec![0.0, 0.0, 0.0]; 9]), None, "there is no ratio to zero");
        assert_eq!(of(&vec![vec![5.0; 3]; 9]).expect("noise").moves, Some(0.0));
    }
}
