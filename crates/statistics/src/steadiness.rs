//! Detects a drift that repeats in each repetition of a cell, such as the warm-up of a just-in-time compiler. Pure.
//!
//! A warm-up repeats in each run, a disturbance does not. So a drift is judged over the repetitions, which are
//! independent of each other: each is projected on the shape of a drift (those of [`drift`](mod@super::drift)), and the
//! mean of the projections is compared with their standard error. Even runs with few seconds have power this way.
//!
//! The variance of a projection has three sources. The scatter of the projections over the repetitions needs no
//! assumption, but few repetitions know it badly. The scatter of the seconds around their mean over the repetitions,
//! with their own autocorrelation, knows it better and is added with the weight of `PRIOR` repetitions (a moderated t
//! statistic: Smyth 2004, Statistical Applications in Genetics and Molecular Biology 3, article 3). What the shape does
//! not explain of the mean is added last: pauses at the same seconds of each run are no drift.
//!
//! The statistic is the maximum over all shapes, which overlap so much that they count as `QUESTIONS` independent ones.
//! The tests below verify the share of steady cells in which a drift is found.
//!
//! No drift found is not steady: runs may be too short to show one, or their seconds may scatter so much that even a
//! change by [`MAX_HIDDEN`] would be missed. Such cells are [`Steadiness::NotJudged`].

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::drift::{MIN_SHARE, centred, dot, shapes, square};

/// Minimum number of repetitions: one can't show that a drift repeats.
const MIN_REPETITIONS: usize = 2;

/// Minimum number of points.
const MIN_POINTS: usize = 2;

/// Minimum number of independent differences between seconds: with fewer, two pauses that coincide look like a drift.
const MIN_DIFFERENCES: usize = 5;

/// Weight of the scatter of the seconds, in repetitions.
const PRIOR: f64 = 4.0;

/// Autocorrelations to choose from; more correlated noise looks like a drift.
const CORRELATIONS: usize = 20;

/// Noise below this is rounding.
const MIN_DEVIATION: f64 = 1e-6;

/// Share of steady cells in which a drift may be found.
const LEVEL: f64 = 0.02;

/// Number of independent questions that the shapes amount to; simulated.
const QUESTIONS: f64 = 10.0;

/// If a drift of this size would be missed, a cell is not judged.
pub const MAX_HIDDEN: f64 = 0.4;

/// Standard normal quantile of the share of drifts that [`MAX_HIDDEN`] refers to: 80 %.
const POWER: f64 = 0.842;

/// What the repetitions of a cell show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Steadiness {
    /// No drift repeats in them, and a large one would have been found.
    Steady,
    /// A drift repeats in them.
    Drifts(RepeatedDrift),
    /// They can show no drift.
    NotJudged(Obstacle),
}

/// Why repetitions can show no drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Too few points, for this many repetitions.
    TooShort,
    /// The points scatter too much.
    TooNoisy,
}

/// A drift that repeats in the repetitions of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RepeatedDrift {
    /// Level of the first point.
    pub first: f64,
    /// Level of the last point.
    pub last: f64,
    /// Number of repetitions.
    pub repetitions: usize,
    /// How many of them drift in this direction.
    pub agreeing: usize,
}

impl RepeatedDrift {
    /// Returns the change of the level as a share of the first.
    pub fn change(&self) -> f64 {
        self.last / self.first - 1.0
    }
}

/// Returns what these repetitions show, each with points of equal length.
///
/// Points beyond the shortest repetition are ignored. A cell with a repetition without any value above zero is too short.
pub fn steadiness(repetitions: &[Vec<f64>]) -> Steadiness {
    CellSeconds::new(repetitions).map_or(Steadiness::NotJudged(Obstacle::TooShort), |cell| cell.judge())
}

/// Whether repetitions with this many points can show a drift: two with six points, three with four, four or five with
/// three, and more with two.
pub fn can_show(repetitions: usize, points: usize) -> bool {
    let differences = repetitions.saturating_sub(1) * points.saturating_sub(1);
    repetitions >= MIN_REPETITIONS && points >= MIN_POINTS && differences >= MIN_DIFFERENCES
}

/// The logarithms of a cell's seconds.
struct CellSeconds {
    /// Of each repetition, around its mean.
    runs: Vec<Vec<f64>>,
    /// Mean of all.
    level: f64,
    /// Mean of the repetitions at each point.
    mean: Vec<f64>,
}

impl CellSeconds {
    fn new(repetitions: &[Vec<f64>]) -> Option<Self> {
        let count = repetitions.iter().map(Vec::len).min().filter(|count| can_show(repetitions.len(), *count))?;
        let logs: Vec<Vec<f64>> =
            repetitions.iter().map(|values| logarithms(&values[..count])).collect::<Option<_>>()?;
        let number = logs.len() as f64;
        let level = logs.iter().flatten().sum::<f64>() / (number * count as f64);
        let runs: Vec<Vec<f64>> = logs.iter().map(|logs| centred(logs)).collect();
        let mean = (0..count).map(|at| runs.iter().map(|run| run[at]).sum::<f64>() / number).collect();
        Some(Self { runs, level, mean })
    }

    fn judge(&self) -> Steadiness {
        let (fits, degrees) = self.fits();
        let best = fits.iter().max_by(|one, other| one.statistic().total_cmp(&other.statistic()));
        let (Some(best), Ok(t)) = (best, StudentsT::new(0.0, 1.0, degrees)) else {
            return Steadiness::NotJudged(Obstacle::TooShort);
        };
        if 2.0 * t.sf(best.statistic()) * QUESTIONS <= LEVEL {
            return Steadiness::Drifts(self.drift(best));
        }
        let critical = t.inverse_cdf(1.0 - LEVEL / (2.0 * QUESTIONS)) + POWER;
        // How much the level changes if the shape is just found: for half of the shapes less than this.
        let mut hidden: Vec<f64> = fits.iter().map(|fit| critical * fit.error * fit.range()).collect();
        hidden.sort_by(f64::total_cmp);
        let is_hidden = hidden[hidden.len() / 2] > MAX_HIDDEN.ln_1p();
        if is_hidden { Steadiness::NotJudged(Obstacle::TooNoisy) } else { Steadiness::Steady }
    }

    fn drift(&self, best: &Fit) -> RepeatedDrift {
        let Fit { shape, size, .. } = best;
        let level = |deviation: Option<&f64>| (self.level + size * deviation.unwrap_or(&0.0)).exp();
        let agreeing = self.runs.iter().filter(|run| dot(shape, run) * size > 0.0).count();
        let (first, last) = (level(shape.first()), level(shape.last()));
        RepeatedDrift { first, last, repetitions: self.runs.len(), agreeing }
    }

    /// Fits all shapes, and returns the degrees of freedom of their errors.
    fn fits(&self) -> (Vec<Fit>, f64) {
        let (free, others) = (self.mean.len() as f64 - 2.0, self.runs.len() as f64 - 1.0);
        let without_mean = |run: &Vec<f64>| run.iter().zip(&self.mean).map(|(value, mean)| value - mean).collect();
        let left: Vec<Vec<f64>> = self.runs.iter().map(without_mean).collect();
        let noise = Noise::estimated(&left);
        // Two points have one contrast, which the repetitions show already.
        let weight = PRIOR.min(others * free);
        let fit = |shape: Vec<f64>| {
            let size = dot(&shape, &self.mean);
            let own: f64 = left.iter().map(|left| dot(&shape, left).powi(2)).sum();
            let moderated = (weight * noise.variance(&shape) + own) / (weight + others) / (others + 1.0);
            let unexplained = (square(&self.mean) - size * size) / free.max(1.0);
            let repeated = (unexplained - noise.level / (others + 1.0)).max(0.0);
            Fit { shape, size, error: (moderated + repeated).max(MIN_DEVIATION.powi(2)).sqrt() }
        };
        (shapes(self.mean.len()).into_iter().map(fit).collect(), weight + others)
    }
}

/// A shape that is fitted to the mean of the repetitions.
struct Fit {
    shape: Vec<f64>,
    size: f64,
    /// Standard error of the size.
    error: f64,
}

impl Fit {
    fn statistic(&self) -> f64 {
        self.size.abs() / self.error
    }

    /// Returns how far the last point of the shape is from the first.
    fn range(&self) -> f64 {
        self.shape.first().zip(self.shape.last()).map_or(0.0, |(first, last)| (last - first).abs())
    }
}

/// Noise of the seconds: a first-order autoregression.
struct Noise {
    /// Variance of a second.
    variance: f64,
    correlation: f64,
    /// Mean variance of a second around the mean of its run.
    level: f64,
}

impl Noise {
    /// Estimates the noise from what is left of each repetition after removing their mean.
    fn estimated(left: &[Vec<f64>]) -> Self {
        let count = left[0].len();
        let squares: f64 = left.iter().map(|left| square(left)).sum();
        let products: f64 = left.iter().flat_map(|left| left.windows(2)).map(|pair| pair[0] * pair[1]).sum();
        let found = if squares > 0.0 { products / squares } else { 0.0 };
        // Of runs this short, the correlation seems far too small; so it is the one that makes such values likely.
        let (correlation, own) = (0..CORRELATIONS)
            .map(|step| step as f64 / CORRELATIONS as f64)
            .map(|correlation| (correlation, expected(count, correlation)))
            .min_by(|(_, (one, _)), (_, (other, _))| (one - found).abs().total_cmp(&(other - found).abs()))
            .map_or((0.0, count as f64 - 1.0), |(correlation, (_, own))| (correlation, own));
        let degrees = left.len() as f64 - 1.0;
        Self { variance: squares / (degrees * own), correlation, level: squares / (degrees * (count as f64 - 1.0)) }
    }

    /// Returns the variance of a projection.
    fn variance(&self, shape: &[f64]) -> f64 {
        // The sum over all pairs of points, computed by recursion.
        let mut before = 0.0;
        let products: f64 = shape
            .iter()
            .map(|value| {
                let product = value * before;
                before = self.correlation * (before + value);
                product
            })
            .sum();
        self.variance * (square(shape) + 2.0 * products)
    }
}

/// Returns the autocorrelation that a series of this length shows around its own mean, and its sum of squares in
/// variances: expected values for a first-order autoregression.
fn expected(count: usize, correlation: f64) -> (f64, f64) {
    let length = count as f64;
    let powers: Vec<f64> = std::iter::successors(Some(1.0), |power| Some(power * correlation)).take(count).collect();
    let covariance = |one: usize, other: usize| powers[one.abs_diff(other)];
    let sums: Vec<f64> = (0..count).map(|one| (0..count).map(|other| covariance(one, other)).sum()).collect();
    let all = sums.iter().sum::<f64>() / (length * length);
    let around = |one: usize, other: usize| covariance(one, other) - (sums[one] + sums[other]) / length + all;
    let squares: f64 = (0..count).map(|at| around(at, at)).sum();
    let products: f64 = (1..count).map(|at| around(at - 1, at)).sum();
    (products / squares, squares)
}

/// Returns the logarithms; none unless some value is greater than zero.
fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean > 0.0).then(|| values.iter().map(|value| value.max(MIN_SHARE * mean).ln()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drift::tests::Numbers;

    /// Of these, one standard error of 1 % is 0.3 points.
    const CELLS: usize = 1_000;

    /// Returns the share of cells in which a drift of more than 1 % is found; `run` simulates one repetition.
    fn share(seed: u64, repetitions: usize, mut run: impl FnMut(&mut Numbers) -> Vec<f64>) -> f64 {
        let mut numbers = Numbers(seed);
        let found = (0..CELLS).filter(|_| {
            let cell: Vec<Vec<f64>> = (0..repetitions).map(|_| run(&mut numbers)).collect();
            matches!(steadiness(&cell), Steadiness::Drifts(drift) if drift.change().abs() > 0.01)
        });
        found.count() as f64 / CELLS as f64
    }

    /// Simulates a repetition whose level differs by 3 % from that of others.
    fn run(
        numbers: &mut Numbers,
        count: usize,
        (noise, correlation): (f64, f64),
        level: impl Fn(usize) -> f64,
    ) -> Vec<f64> {
        let own = 1_000.0 * (0.03 * numbers.normal()).exp();
        let series = numbers.series(count, correlation);
        series.into_iter().enumerate().map(|(at, value)| own * level(at) * (noise * value).exp()).collect()
    }

    /// Repetitions and points of cells: six seconds, three seconds, and a minute.
    const CELLS_OF: [(usize, usize); 9] = [(2, 6), (3, 4), (4, 3), (6, 2), (5, 4), (5, 5), (10, 5), (5, 28), (20, 5)];

    #[test]
    fn steady_noise_is_rarely_a_drift() {
        for (repetitions, count) in CELLS_OF {
            for correlation in [0.0, 0.5] {
                let found = share(1, repetitions, |numbers| run(numbers, count, (0.03, correlation), |_| 1.0));
                assert!(found <= 0.02, "{repetitions} × {count} points, {correlation}: {found}");
            }
            let heavy = |numbers: &mut Numbers| {
                (0..count).map(|_| (0.02 * numbers.normal() / numbers.uniform().sqrt()).exp()).collect()
            };
            let found = share(2, repetitions, heavy);
            assert!(found <= 0.02, "{repetitions} × {count} points, heavy tails: {found}");
        }
    }

    #[test]
    fn regular_pauses_are_rarely_a_drift() {
        for (repetitions, count) in CELLS_OF {
            let found = share(3, repetitions, |numbers| {
                let (period, phase) = (numbers.below(4) + 2, numbers.below(8));
                run(numbers, count, (0.01, 0.0), |at| if (at + phase) % period == 0 { 0.8 } else { 1.0 })
            });
            assert!(found <= 0.02, "{repetitions} × {count} points: {found}");
        }
        // At the same seconds of each run.
        for period in 2..5 {
            let found = share(4, 5, |numbers| {
                run(numbers, 9, (0.01, 0.0), |at| if (at + 1) % period == 0 { 0.8 } else { 1.0 })
            });
            assert!(found <= 0.02, "a pause every {period} seconds: {found}");
        }
    }

    #[test]
    fn a_burst_in_one_repetition_is_not_a_drift() {
        for (repetitions, count) in [(2, 6), (3, 5), (5, 5), (5, 28), (10, 5)] {
            let mut number = 0;
            let found = share(5, repetitions, |numbers| {
                number += 1;
                let (hit, from) = (number % repetitions == 0, numbers.below(count - 1));
                run(numbers, count, (0.01, 0.0), |at| if hit && (from..from + 2).contains(&at) { 0.6 } else { 1.0 })
            });
            assert!(found <= 0.01, "{repetitions} × {count} points: {found}");
        }
    }

    #[test]
    fn a_warm_up_of_15_percent_is_found_in_five_runs_of_six_seconds() {
        let jit = |tau: f64| move |at: usize| 1.0 - 0.13 * (-(at as f64) / tau).exp();
        for count in [4, 5] {
            for tau in [1.0, 1.5, 3.0] {
                let found = share(6, 5, |numbers| run(numbers, count, (0.02, 0.3), jit(tau)));
                assert!(found >= 0.9, "{count} points, {tau} s: {found}");
            }
            assert!(share(7, 5, |numbers| run(numbers, count, (0.03, 0.3), jit(1.5))) >= 0.9, "{count} points");
        }
        assert!(share(8, 5, |numbers| run(numbers, 10, (0.05, 0.3), jit(3.0))) >= 0.7);
        assert!(share(9, 2, |numbers| run(numbers, 10, (0.02, 0.0), jit(3.0))) >= 0.9, "two repetitions");
    }

    #[test]
    fn the_size_and_the_repetitions_of_a_drift_are_estimated() {
        let mut numbers = Numbers(10);
        let runs: Vec<Vec<f64>> =
            (0..6).map(|_| run(&mut numbers, 5, (0.002, 0.0), |at| 0.8 + 0.05 * at as f64)).collect();
        let Steadiness::Drifts(found) = steadiness(&runs) else { panic!("a drift") };
        assert!((found.change() - 0.25).abs() < 0.01 && (950.0..1_050.0).contains(&found.last), "{found:?}");
        assert_eq!((found.agreeing, found.repetitions), (6, 6));
    }

    #[test]
    fn too_few_repetitions_or_points_show_nothing() {
        let rising = |count: u32| (0..count).map(|at| 100.0 + f64::from(at)).collect::<Vec<f64>>();
        let too_short = Steadiness::NotJudged(Obstacle::TooShort);
        assert_eq!(steadiness(&[]), too_short);
        assert_eq!(steadiness(&[rising(20)]), too_short, "one repetition");
        assert_eq!(steadiness(&vec![rising(5); 2]), too_short, "four differences");
        assert!(matches!(steadiness(&vec![rising(6); 2]), Steadiness::Drifts(drift) if drift.agreeing == 2));
        assert_eq!(steadiness(&vec![rising(1); 9]), too_short, "one point");
        assert_eq!(steadiness(&vec![vec![0.0; 9]; 9]), too_short, "no requests");
        assert_eq!(steadiness(&vec![vec![7.0; 9]; 9]), Steadiness::Steady, "constant");
    }

    #[test]
    fn noise_that_hides_a_large_drift_is_not_called_steady() {
        for (repetitions, count, noise, most, least) in
            [(5, 4, 0.03, 0.01, 0.0), (5, 28, 0.05, 0.01, 0.0), (5, 4, 0.2, 1.0, 0.9), (5, 28, 0.6, 1.0, 0.9)]
        {
            let mut numbers = Numbers(11);
            let unknown = (0..CELLS).filter(|_| {
                let cell: Vec<Vec<f64>> =
                    (0..repetitions).map(|_| run(&mut numbers, count, (noise, 0.0), |_| 1.0)).collect();
                steadiness(&cell) == Steadiness::NotJudged(Obstacle::TooNoisy)
            });
            let share = unknown.count() as f64 / CELLS as f64;
            assert!((least..=most).contains(&share), "{repetitions} × {count} points, noise {noise}: {share}");
        }
    }
}
