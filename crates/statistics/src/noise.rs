//! Noise of a metric of a cell in the past: scatter within an experiment and variation between experiments.
//!
//! The scatter is estimated robustly, see [`crate::scatter`]. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{between::squares, power::Scatter, scatter};

/// Minimum number of runs beyond the first of each experiment for an estimate of the scatter.
const MIN_DEGREES: usize = 8;

/// Degrees of freedom of the scatter for each run beyond the first of an experiment, as simulated (see the tests).
const EFFICIENCY: f64 = 0.7;

/// Noise of a metric of a cell in the past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Noise {
    /// Number of earlier experiments with the cell.
    pub experiments: usize,
    /// Number of their runs that count and have the metric.
    pub runs: usize,
    /// Standard deviation of the logarithm within an experiment: 0.02 is 2 %; null with few runs.
    pub scatter: Option<f64>,
    /// Standard deviation of the medians, as a share; null with fewer than three experiments.
    pub between: Option<f64>,
}

impl Noise {
    /// Returns the scatter within experiments.
    pub(crate) fn within(&self) -> Option<Scatter> {
        let degrees = self.runs.saturating_sub(self.experiments) as f64 * EFFICIENCY;
        Some(Scatter { degrees, ..Scatter::known(self.scatter?) })
    }
}

/// Estimates the noise from the values of each experiment. None unless all are greater than zero.
pub fn noise<'a>(experiments: impl IntoIterator<Item = &'a [f64]>) -> Option<Noise> {
    let experiments: Vec<&[f64]> = experiments.into_iter().filter(|values| !values.is_empty()).collect();
    if experiments.iter().copied().flatten().any(|value| !(value.is_finite() && *value > 0.0)) {
        return None;
    }
    let logs: Vec<Vec<f64>> =
        experiments.into_iter().map(|values| values.iter().map(|value| value.ln()).collect()).collect();
    let runs = logs.iter().map(Vec::len).sum::<usize>();
    let degrees = runs - logs.len();
    let scatter = if degrees >= MIN_DEGREES { scatter::scatter(&logs) } else { None };
    let medians: Vec<f64> = logs.iter().filter_map(|values| super::describe::median(values)).collect();
    let between = (medians.len() > 2).then(|| {
        let all = squares(medians.iter().copied());
        (all / (medians.len() - 1) as f64).sqrt()
    });
    (runs > 0).then_some(Noise { experiments: logs.len(), runs, scatter, between })
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn of(experiments: &[Vec<f64>]) -> Option<Noise> {
        noise(experiments.iter().map(Vec::as_slice))
    }

    /// Three runs around each level, two percent apart.
    fn about(levels: &[f64]) -> Vec<Vec<f64>> {
        levels.iter().map(|level| [0.98, 1.0, 1.02].map(|factor| factor * level).to_vec()).collect()
    }

    #[test]
    fn scatter_within_experiments_does_not_depend_on_their_levels() {
        let calm = of(&about(&[100.0; 4])).expect("noise");
        let moving = of(&about(&[100.0, 50.0, 300.0, 80.0])).expect("noise");
        let (one, other) = (calm.scatter.expect("scatter"), moving.scatter.expect("scatter"));
        assert!((0.015..0.025).contains(&one) && (other - one).abs() < 1e-12, "{one} {other}");
        assert!(moving.between.expect("moves") > 0.5 && calm.between.expect("none") < 1e-12);
        assert_eq!((calm.runs, calm.experiments), (12, 4));
    }

    #[test]
    fn the_scatter_of_the_past_is_as_precise_as_its_degrees_of_freedom_say() {
        const ROUNDS: usize = 2_000;
        let mut random = StdRng::seed_from_u64(1);
        let mut run = |_| (0.02 * crate::power::normal(&mut random)).exp();
        let mut past = || of(&(0..6).map(|_| (0..5).map(&mut run).collect()).collect::<Vec<_>>()).expect("noise");
        let all: Vec<Scatter> = (0..ROUNDS).map(|_| past().within().expect("enough runs")).collect();
        let logs: Vec<f64> = all.iter().map(|one| (one.deviation / 0.02).ln()).collect();
        let mean = logs.iter().sum::<f64>() / ROUNDS as f64;
        let degrees = 0.5 / (squares(logs.iter().copied()) / ROUNDS as f64);
        assert!(mean.abs() < 0.04, "{mean}");
        assert!((degrees / all[0].degrees - 1.0).abs() < 0.15, "{degrees} and {}", all[0].degrees);
    }

    #[test]
    fn a_disturbed_run_of_the_past_changes_little() {
        let mut runs = about(&[100.0; 4]);
        let before = of(&runs).and_then(|noise| noise.scatter).expect("scatter");
        runs[2][1] = 1e-3;
        let after = of(&runs).and_then(|noise| noise.scatter).expect("scatter");
        assert!((1.0..1.5).contains(&(after / before)), "{before} {after}");
    }

    #[test]
    fn a_short_past_has_no_estimate() {
        assert_eq!(of(&[]), None);
        let three = of(&about(&[100.0; 3])).expect("noise");
        assert_eq!((three.scatter, three.between.is_some()), (None, true), "too few degrees of freedom");
        assert_eq!(of(&vec![vec![100.0]; 30]).expect("noise").scatter, None, "single runs do not show the scatter");
        assert_eq!(of(&vec![vec![0.0, 0.0, 0.0]; 9]), None, "there is no ratio to zero");
        assert_eq!(of(&about(&[100.0; 2])).expect("noise").between, None);
    }
}
