//! Alpha spending: how much of the error rate each look at growing data may use.
//!
//! Looking at the figures, adding repetitions and looking again means several chances of a false result. The error rate
//! is spent by a function of the repetitions alone, like that of Pocock up to `USUAL` (Lan & `DeMets` 1983, "Discrete
//! sequential boundaries for clinical trials"), with a rest for later ones. So a longer plan continues a shorter one,
//! and everything that knows the earlier looks agrees on the level. The nominal level of each look follows from
//! integrating the density of the statistic over the paths that have not ended before (Armitage, `McPherson` & Rowe
//! 1969).

use std::f64::consts::E;

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::ALPHA;

/// Repetitions at which to look. At fewer than six a look can hardly reject anything.
pub const LOOKS: [usize; 9] = [6, 10, 14, 20, 28, 40, 56, 80, 100];

/// Repetitions up to which most of the error rate is spent.
const USUAL: f64 = 20.0;

/// Share of the error rate that is spent at `USUAL` repetitions.
const SHARE: f64 = 0.85;

/// Grid points of the integration.
const GRID: usize = 400;

/// Returns the level of a look with `repetitions` after looks with fewer.
pub fn level(before: &[usize], repetitions: usize) -> f64 {
    let mut looks: Vec<usize> = before.iter().copied().filter(|look| (1..repetitions).contains(look)).collect();
    looks.sort_unstable();
    looks.dedup();
    looks.push(repetitions);
    nominal(&looks)
}

/// Returns the next look after `repetitions`; `None` if it is beyond `max`, the last one.
pub fn next_look(repetitions: usize, max: usize) -> Option<usize> {
    let planned = LOOKS.into_iter().find(|look| *look > repetitions).unwrap_or(max).min(max);
    (planned > repetitions).then_some(planned)
}

/// Returns the two-sided error rate spent up to a number of repetitions.
fn spent(repetitions: usize) -> f64 {
    let now = repetitions as f64;
    let pocock = |share: f64| (1.0 + (E - 1.0) * share).ln();
    let share = if now <= USUAL { SHARE * pocock(now / USUAL) } else { SHARE + (1.0 - SHARE) * (1.0 - USUAL / now) };
    ALPHA * share
}

/// Returns the two-sided nominal level of the last of these looks.
fn nominal(looks: &[usize]) -> f64 {
    let (Ok(normal), Some(last)) = (Normal::new(0.0, 1.0), looks.last()) else { return 0.0 };
    let mut used = 0.0;
    let mut paths: Option<Paths> = None;
    let mut level = 0.0;
    for look in looks {
        let share = *look as f64 / *last as f64;
        let available = (spent(*look) - used).max(0.0);
        used += available;
        let now = paths.as_ref().map_or_else(|| Paths::first(share, &normal), |paths| paths.next(share, &normal));
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

    /// Without looks in between, a look may use all that was not spent before.
    #[test]
    fn each_look_has_the_level_that_its_repetitions_leave() {
        assert!((level(&[], 6) - spent(6)).abs() < 1e-4, "{}", level(&[], 6));
        let planned: Vec<f64> = (0..5).map(|place| level(&LOOKS[..place], LOOKS[place])).collect();
        assert!(planned.iter().all(|level| (0.004..0.03).contains(level)), "{planned:?}");
        assert!(level(&[6], 20) > level(&[6, 10, 14], 20), "skipped looks cost nothing");
        assert!((level(&[6, 6, 30], 10) - level(&[6], 10)).abs() < 1e-12, "the order of looks is that of their size");
    }

    /// A simulated Brownian motion is outside at any look in at most 5 % of cases.
    #[test]
    fn all_looks_together_keep_the_error_rate() {
        use rand::{Rng, SeedableRng, rngs::StdRng};
        let normal = Normal::new(0.0, 1.0).expect("one");
        let bounds: Vec<f64> = (0..LOOKS.len())
            .map(|place| normal.inverse_cdf(1.0 - level(&LOOKS[..place], LOOKS[place]) / 2.0))
            .collect();
        let mut random = StdRng::seed_from_u64(1);
        let rounds = 20_000;
        let is_outside = |_: &usize| {
            let (mut score, mut before) = (0.0, 0);
            LOOKS.iter().zip(&bounds).any(|(look, bound)| {
                let step = ((look - before) as f64).sqrt();
                score += step * normal.inverse_cdf(random.random_range(1e-12..1.0));
                before = *look;
                score.abs() / (*look as f64).sqrt() >= *bound
            })
        };
        let share = (0..rounds).filter(is_outside).count() as f64 / rounds as f64;
        assert!((0.044..=0.0535).contains(&share), "{share}");
    }

    /// Jennison & Turnbull 2000, "Group Sequential Methods", table 2.1 (Pocock): critical values of five equal looks
    /// are about equal; those of this function, of looks up to the usual number, are close to each other, too.
    #[test]
    fn the_first_looks_can_reject() {
        assert!(level(&[], 6) >= 2.0 / 216.0, "six repetitions reach 0.0093");
        assert_eq!([3, 6, 12, 100].map(|repetitions| next_look(repetitions, 20)), [Some(6), Some(10), Some(14), None]);
        assert_eq!(next_look(14, 17), Some(17));
        assert_eq!(next_look(100, 100), None);
    }
}
