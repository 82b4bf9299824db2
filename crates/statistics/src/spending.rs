//! Alpha spending: how much of the error rate each look at growing data may use.
//!
//! Looking at the figures, adding repetitions and looking again means several chances of a false result. A plan with a
//! fixed last look spends the error rate by the O'Brien–Fleming-type function of Lan & `DeMets` (1983, "Discrete
//! sequential boundaries for clinical trials"): next to nothing early, almost all of it at the last look. The nominal
//! level of each look follows from integrating the density of the statistic over the paths that have not ended before
//! (Armitage, `McPherson` & Rowe 1969).

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::ALPHA;

/// Repetitions at the first look; fewer cannot show a difference.
pub const FIRST_LOOK: usize = 4;

/// Repetitions between two looks: a pair of blocks.
pub const STEP: usize = 2;

/// Grid points of the integration.
const GRID: usize = 400;

/// Returns the level of the look with `repetitions` in a plan that ends with `max`.
///
/// A look between two planned ones has the smaller level of the previous one.
pub fn level(repetitions: usize, max: usize) -> f64 {
    let looks: Vec<usize> = (FIRST_LOOK..max).step_by(STEP).chain([max]).collect();
    let Some(place) = looks.iter().rposition(|look| *look <= repetitions) else { return 0.0 };
    let shares: Vec<f64> = looks[..=place].iter().map(|look| *look as f64 / max.max(1) as f64).collect();
    nominal(&shares)
}

/// Returns the two-sided error rate spent at a share of the information.
fn spent(share: f64, normal: &Normal) -> f64 {
    4.0 * normal.sf(normal.inverse_cdf(1.0 - ALPHA / 4.0) / share.min(1.0).sqrt())
}

/// Returns the two-sided nominal level of the last of these looks.
fn nominal(shares: &[f64]) -> f64 {
    let Ok(normal) = Normal::new(0.0, 1.0) else { return 0.0 };
    let mut used = 0.0;
    let mut paths: Option<Paths> = None;
    let mut level = 0.0;
    for share in shares {
        let available = (spent(*share, &normal) - used).max(0.0);
        used += available;
        let now = paths.as_ref().map_or_else(|| Paths::first(*share, &normal), |paths| paths.next(*share, &normal));
        let bound = now.bound(available);
        level = 2.0 * normal.sf(bound / share.sqrt());
        paths = Some(now.within(bound));
    }
    level
}

/// The density of the score (a Brownian motion in the share of information) over paths that have not ended.
struct Paths {
    share: f64,
    step: f64,
    density: Vec<f64>,
}

impl Paths {
    fn grid(share: f64) -> (f64, f64) {
        let end = 6.0 * share.sqrt();
        (-end, 2.0 * end / (GRID - 1) as f64)
    }

    fn at(&self, place: usize) -> f64 {
        Self::grid(self.share).0 + self.step * place as f64
    }

    fn first(share: f64, normal: &Normal) -> Self {
        let (from, step) = Self::grid(share);
        let density = |place: usize| normal.pdf((from + step * place as f64) / share.sqrt()) / share.sqrt();
        Self { share, step, density: (0..GRID).map(density).collect() }
    }

    fn next(&self, share: f64, normal: &Normal) -> Self {
        let deviation = (share - self.share).sqrt();
        let (from, step) = Self::grid(share);
        let density = |place: usize| {
            let to = from + step * place as f64;
            let arriving = |(before, density): (usize, &f64)| {
                density * normal.pdf((to - self.at(before)) / deviation) / deviation * self.step
            };
            self.density.iter().enumerate().filter(|(_, density)| **density > 0.0).map(arriving).sum()
        };
        Self { share, step, density: (0..GRID).map(density).collect() }
    }

    /// Returns the bound beyond which, on both sides, the paths have this probability.
    fn bound(&self, probability: f64) -> f64 {
        let mut beyond = 0.0;
        for place in (0..GRID / 2).map(|place| GRID - 1 - place) {
            let more = 2.0 * self.density[place] * self.step;
            if beyond + more > probability {
                let part = (probability - beyond) / more;
                return self.at(place) + self.step * (0.5 - part);
            }
            beyond += more;
        }
        0.0
    }

    fn within(mut self, bound: f64) -> Self {
        for place in 0..GRID {
            if self.at(place).abs() > bound {
                self.density[place] = 0.0;
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jennison & Turnbull 2000, "Group Sequential Methods", table 7.3: five equal looks, two-sided 5 %, critical
    /// values 4.877, 3.357, 2.680, 2.290, 2.031 (Lan & `DeMets`, O'Brien–Fleming type).
    #[test]
    fn the_levels_match_the_table() {
        let normal = Normal::new(0.0, 1.0).expect("one");
        let shares = [0.2, 0.4, 0.6, 0.8, 1.0];
        for (place, value) in [4.877, 3.357, 2.680, 2.290, 2.031].into_iter().enumerate().skip(1) {
            let found = normal.inverse_cdf(1.0 - nominal(&shares[..=place]) / 2.0);
            assert!((found - value).abs() < 0.02, "look {}: {found}, table {value}", place + 1);
        }
    }

    #[test]
    fn a_single_look_spends_everything_and_early_looks_almost_nothing() {
        assert!((level(4, 4) - ALPHA).abs() < 0.001, "{}", level(4, 4));
        assert!(level(4, 20) < 0.001 && level(3, 20) < f64::MIN_POSITIVE);
        let levels: Vec<f64> = (4..=20).map(|repetitions| level(repetitions, 20)).collect();
        assert!(levels.is_sorted(), "{levels:?}");
        assert!(levels[16] > 0.03 && levels[16] < ALPHA, "{levels:?}");
        assert!((level(30, 20) - level(20, 20)).abs() < 1e-12, "beyond the plan");
    }
}
