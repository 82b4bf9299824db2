//! How many more repetitions would show a smaller difference. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compare::statistics::power::{Scatter, detectable_with};

/// The differences that are offered, as shares, the largest first.
const GOALS: [f64; 6] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01];

/// At most this many times the repetitions so far are proposed.
const MAX_GROWTH: usize = 3;

/// At least this many repetitions may be proposed, however few there are.
const MIN_PROPOSED: usize = 12;

/// Repetitions to add to each side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoreRepetitions {
    /// How many.
    pub repetitions: usize,
    /// The difference found in 80 % of such comparisons, as a share; null if there are too few for any.
    pub shows: Option<f64>,
}

impl MoreRepetitions {
    /// Returns the fewest that find a smaller difference, of round size, than the `now` repetitions so far.
    pub fn for_less(now: usize, found: f64, scatter: Scatter, level: f64, min_effect: f64) -> Option<Self> {
        let most = (now * MAX_GROWTH).max(MIN_PROPOSED);
        let finds = |repetitions: usize| detectable_with(repetitions, scatter, level, min_effect);
        let best = finds(most)?;
        let goal = GOALS.into_iter().rfind(|goal| *goal >= best && *goal < found)?;
        let needed = (now + 1..=most).find(|repetitions| finds(*repetitions).is_some_and(|found| found <= goal))?;
        Some(Self { repetitions: needed - now, shows: Some(goal) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_and_smaller_difference_is_proposed() {
        let of = |now, found, deviation| MoreRepetitions::for_less(now, found, Scatter::known(deviation), 0.05, 0.01);
        let more = of(6, 0.4, 0.08).expect("more would help");
        let shows = more.shows.expect("a difference");
        assert!(GOALS.contains(&shows) && shows < 0.4 && more.repetitions <= 12, "{more:?}");
        let finds = |repetitions| detectable_with(repetitions, Scatter::known(0.08), 0.05, 0.01).expect("known");
        assert!(finds(6 + more.repetitions) <= shows && finds(5 + more.repetitions) > shows, "{more:?}");
        assert_eq!(of(6, 0.02, 0.08), None, "three times as many find nothing smaller");
        assert_eq!(of(6, 0.011, 0.000_1), None, "what is found already is the smallest that counts");
    }
}
