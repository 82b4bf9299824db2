//! Assignments of runs to two sides, the reference of permutation tests. Pure.
//!
//! If both sides were the same program, every assignment of the runs to the sides would have been equally likely. The
//! p-value is the share of assignments whose statistic is at least that of the observed one. Statistics are two-sided,
//! so with sides of equal size an assignment and its mirror image have the same one: only one of the two is listed.
//! Random ones are seeded, so equal runs always have equal results.

use crate::app::random::below;
use crate::profiles::mean::mean;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::compare::statistics::ALPHA;

/// Maximum number of assignments; with more runs, this many are drawn at random.
pub const MAX_ASSIGNMENTS: usize = 20_000;

/// Seed of random assignments: equal runs always have equal results.
const SEED: u64 = 0x70_72_6f_66_69_6c_65;

/// Number of runs on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sides {
    /// Runs of the baseline, which come first.
    pub baseline: usize,
    /// Runs of the candidate.
    pub candidate: usize,
}

impl Sides {
    /// Returns the number of all runs.
    pub fn runs(self) -> usize {
        self.baseline + self.candidate
    }

    /// Returns the difference of the means for a sum over the candidate of values whose overall mean is zero.
    pub(super) fn per_sum(self) -> f64 {
        self.runs() as f64 / (self.baseline as f64 * self.candidate as f64)
    }

    /// Returns the number of assignments of runs to these sides.
    fn ways(self) -> f64 {
        (1..=self.candidate).map(|i| (self.baseline + i) as f64 / i as f64).product()
    }

    /// Returns the smallest p-value that runs of these sides can reach.
    pub fn least_p(self) -> f64 {
        let mirrored = if self.baseline == self.candidate { 2.0 } else { 1.0 };
        (mirrored / self.ways()).min(1.0)
    }
}

/// Returns the fewest repetitions a side at which a difference can be shown at all.
pub fn fewest() -> usize {
    let can_show = |n: &usize| Sides { baseline: *n, candidate: *n }.least_p() <= ALPHA;
    (1..=MAX_ASSIGNMENTS).find(can_show).unwrap_or(MAX_ASSIGNMENTS)
}

/// Assignments of runs to sides, the observed one first.
#[derive(Clone, Debug)]
pub struct Assignments {
    sides: Sides,
    /// The candidate's runs of each assignment, one after the other.
    runs: Vec<usize>,
}

impl Assignments {
    /// Lists all assignments, or [`MAX_ASSIGNMENTS`] random ones if there are more.
    pub fn new(sides: Sides) -> Self {
        let observed = sides.baseline..sides.runs();
        let runs = if sides.ways() <= MAX_ASSIGNMENTS as f64 {
            let first = usize::from(sides.baseline == sides.candidate && sides.baseline > 0);
            let others =
                combinations(first, sides).into_iter().filter(|runs| !runs.iter().copied().eq(observed.clone()));
            observed.clone().chain(others.flatten()).collect()
        } else {
            observed.chain(random(sides)).collect()
        };
        Self { sides, runs }
    }

    /// Returns the sides.
    pub fn sides(&self) -> Sides {
        self.sides
    }

    /// Returns the number of assignments.
    pub fn count(&self) -> usize {
        self.runs.len().checked_div(self.sides.candidate).unwrap_or(1)
    }

    /// Iterates over the candidate's runs of each assignment.
    pub fn iter(&self) -> impl Iterator<Item = &[usize]> {
        self.runs.chunks_exact(self.sides.candidate.max(1))
    }

    /// Iterates over the differences of the means in each assignment.
    pub(super) fn differences<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let mean = mean(values);
        let sum = move |runs: &[usize]| runs.iter().map(|run| values[*run] - mean).sum::<f64>();
        self.iter().map(move |runs| sum(runs) * self.sides.per_sum())
    }

    /// Returns the number of assignments that may be at least as extreme as the observed one at 5 %, itself included.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and the number of runs")]
    pub(super) fn tolerated(&self) -> usize {
        (ALPHA * self.count() as f64 + 1e-9).floor() as usize
    }

    /// Returns the farthest point that is not rejected, given the farthest that each assignment does not reject.
    ///
    /// None if it is unbounded.
    pub(super) fn limit(&self, mut farthest: Vec<f64>) -> Option<f64> {
        let tolerated = self.tolerated();
        if tolerated >= farthest.len() {
            return None;
        }
        let (_, limit, _) = farthest.select_nth_unstable_by(tolerated, |a, b| b.total_cmp(a));
        limit.is_finite().then_some(*limit)
    }
}

/// Returns all choices of the candidate's runs among those from `first` on, in lexicographic order.
fn combinations(first: usize, sides: Sides) -> Vec<Vec<usize>> {
    let (all, chosen) = (sides.runs(), sides.candidate);
    let mut current: Vec<usize> = (first..first + chosen).collect();
    let mut list = Vec::new();
    loop {
        list.push(current.clone());
        let Some(place) = (0..chosen).rev().find(|place| current[*place] < all - chosen + place) else { return list };
        let next = current[place] + 1;
        for (offset, run) in current[place..].iter_mut().enumerate() {
            *run = next + offset;
        }
    }
}

/// Draws the candidate's runs of all assignments but the observed one.
fn random(sides: Sides) -> Vec<usize> {
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut order: Vec<usize> = (0..sides.runs()).collect();
    let mut drawn = Vec::with_capacity((MAX_ASSIGNMENTS - 1) * sides.candidate);
    for _ in 1..MAX_ASSIGNMENTS {
        for place in 0..sides.candidate {
            let other = place + below(&mut random, order.len() - place);
            order.swap(place, other);
        }
        drawn.extend_from_slice(&order[..sides.candidate]);
    }
    drawn
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn sides(baseline: usize, candidate: usize) -> Sides {
        Sides { baseline, candidate }
    }

    #[test]
    fn assignments_are_complete_and_begin_with_the_observed_one() {
        // Of mirror images only one is listed: half of 70 and of 252.
        for (baseline, candidate, count) in [(1, 1, 1), (2, 3, 10), (4, 4, 35), (5, 5, 126), (5, 4, 126), (1, 4, 5)] {
            let all = Assignments::new(sides(baseline, candidate));
            let distinct: BTreeSet<&[usize]> = all.iter().collect();
            assert_eq!((all.count(), distinct.len()), (count, count), "{baseline} and {candidate}");
            let observed: Vec<usize> = (baseline..baseline + candidate).collect();
            assert_eq!(all.iter().next(), Some(observed.as_slice()));
        }
    }

    #[test]
    fn many_runs_get_random_assignments_that_never_change() {
        let (one, other) = (Assignments::new(sides(10, 10)), Assignments::new(sides(10, 10)));
        assert_eq!((one.count(), &one.runs), (MAX_ASSIGNMENTS, &other.runs));
        let on_candidate = one.iter().filter(|runs| runs.contains(&3)).count();
        assert!(
            (9_700..10_300).contains(&on_candidate),
            "each run is on each side about equally often: {on_candidate}"
        );
        assert!(one.iter().all(|runs| runs.iter().collect::<BTreeSet<_>>().len() == 10));
    }

    #[test]
    fn three_repetitions_a_side_can_show_nothing() {
        assert_eq!(fewest(), 4);
        assert!((sides(3, 3).least_p() - 0.1).abs() < 1e-12);
        assert!((sides(4, 4).least_p() - 2.0 / 70.0).abs() < 1e-12);
        assert_eq!(Assignments::new(sides(3, 3)).tolerated(), 0);
        assert_eq!(Assignments::new(sides(4, 4)).tolerated(), 1);
    }

    #[test]
    fn sides_without_runs_have_one_assignment() {
        for (baseline, candidate) in [(0, 0), (3, 0), (0, 3)] {
            assert_eq!(Assignments::new(sides(baseline, candidate)).count(), 1);
        }
    }
}
