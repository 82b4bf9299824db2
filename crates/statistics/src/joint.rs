//! The questions of one pair of cells, tested together by exchanging their runs. Pure.
//!
//! All metrics of a run move together: if both sides were the same program, every assignment of the runs to the sides
//! within the strata was equally likely for all metrics at once. So the most extreme metric of each assignment is
//! compared with the observed ones (Westfall & Young 1993, "Resampling-Based Multiple Testing", algorithm 2.8), and
//! related metrics hardly cost power. A metric's statistic is the p-value of its rank test. Ranks of few runs take few
//! values, and "completely separated" is the last of them, however far apart the sides are. So ties are broken by the
//! share of the scatter that the assignment does not explain: it is 0 if all runs of a side are equal.

use std::collections::HashMap;

use rand::{Rng, SeedableRng, rngs::StdRng};

use crate::{
    Stratum,
    rank_sum::choose,
    rank_test::{Ranked, Reference},
};

/// Maximum number of assignments that are listed; of more, [`SAMPLED`] random ones are drawn.
const MAX_LISTED: f64 = 5_000.0;
const SAMPLED: usize = 4_000;

/// Seed of random assignments: equal runs always have equal results.
const SEED: u64 = 0x70_61_69_72;

/// Difference below which unexplained shares are tied: rounding errors are smaller.
const TIE: f64 = 1e-11;

/// How extreme a statistic is. Smaller values are more extreme.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extremity {
    /// The p-value divided by the weight of the question.
    pub p: f64,
    /// The share of the scatter that the assignment does not explain.
    pub unexplained: f64,
}

impl Extremity {
    /// Returns the least extreme statistic with a weighted p-value below this one.
    pub(crate) fn below(weighted: f64) -> Self {
        Self { p: weighted * (1.0 - 1e-9), unexplained: 1.0 }
    }

    /// Whether this is at least as extreme as another.
    pub(crate) fn reaches(self, other: Self) -> bool {
        let is_tied = (self.p - other.p).abs() <= 1e-12 * other.p;
        if is_tied { self.unexplained <= other.unexplained + TIE } else { self.p < other.p }
    }

    pub(crate) fn order(&self, other: &Self) -> std::cmp::Ordering {
        self.p.total_cmp(&other.p).then(self.unexplained.total_cmp(&other.unexplained))
    }
}

/// Number of runs of the other side and of the baseline in each stratum.
type Shape = Vec<(usize, usize)>;

/// The assignments of runs to the sides, by shape; many pairs of a page have the same.
#[derive(Default)]
pub(crate) struct Assignments(HashMap<Shape, (Vec<u16>, bool)>);

/// A question of a family.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    /// The observed statistic.
    pub observed: Extremity,
    /// The p-value of the rank test.
    pub p: f64,
    /// The smallest p-value of these runs without ties.
    pub least_p: f64,
    /// The weight of the question.
    pub weight: f64,
    /// Extremity in each assignment.
    by_assignment: Vec<Extremity>,
    /// Possible p-values in ascending order.
    possible: Vec<f64>,
}

impl Member {
    /// Returns the probability of a p-value of at most `weighted` times the weight.
    pub(crate) fn reached(&self, weighted: f64, is_strict: bool) -> f64 {
        let most = weighted * self.weight * if is_strict { 1.0 - 1e-9 } else { 1.0 + 1e-9 };
        let count = self.possible.partition_point(|p| *p <= most);
        count.checked_sub(1).map_or(0.0, |place| self.possible[place])
    }
}

/// Questions about the same runs of a pair of cells.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub members: Vec<Member>,
    is_complete: bool,
}

impl Family {
    /// Computes all statistics of metrics with these weights. The strata of all metrics must have the same shape.
    pub(crate) fn new(metrics: &[(&[Stratum], f64)], known: &mut Assignments) -> Self {
        let shape_of =
            |strata: &[Stratum]| strata.iter().map(|one| (one.other.len(), one.base.len())).collect::<Shape>();
        let shape = metrics.first().map(|(strata, _)| shape_of(strata)).unwrap_or_default();
        debug_assert!(metrics.iter().all(|(strata, _)| shape_of(strata) == shape), "equal places have equal shapes");
        let chosen: usize = shape.iter().map(|(other, _)| other).sum();
        let (assignments, is_complete) = known.0.entry(shape).or_insert_with_key(|shape| assignments(shape));
        let member = |(strata, weight): &(&[Stratum], f64)| member(strata, *weight, assignments, chosen);
        Self { members: metrics.iter().filter_map(member).collect(), is_complete: *is_complete }
    }

    /// Returns the most extreme statistic of these members in each assignment, sorted.
    pub(crate) fn most_extreme(&self, remaining: &[usize]) -> Vec<Extremity> {
        let Some((first, rest)) = remaining.split_first() else { return Vec::new() };
        let mut most = self.members[*first].by_assignment.clone();
        for member in rest {
            for (most, own) in most.iter_mut().zip(&self.members[*member].by_assignment) {
                if own.order(most).is_lt() {
                    *most = *own;
                }
            }
        }
        most.sort_unstable_by(Extremity::order);
        most
    }

    /// Returns the probability that one of the remaining members reaches a statistic, given their sorted extremes.
    pub(crate) fn share(&self, remaining: &[usize], sorted: &[Extremity], statistic: Extremity) -> f64 {
        if remaining.is_empty() {
            return 0.0;
        }
        // Extremes tied with the statistic may be sorted on either side of it by rounding errors.
        let sure = sorted.partition_point(|one| one.order(&statistic).is_le());
        let tied = sorted[sure..].iter().take_while(|one| one.reaches(statistic)).count();
        let share = (sure + tied) as f64 / sorted.len() as f64;
        if self.is_complete {
            return share;
        }
        // Each member's own distribution is known exactly.
        let own = |is_strict| remaining.iter().map(move |one| self.members[*one].reached(statistic.p, is_strict));
        let (least, most) = (own(true).fold(0.0, f64::max), own(false).sum::<f64>());
        share.clamp(least.min(most), most)
    }

    /// Returns the probability that one of the members has a weighted p-value below this one.
    pub(crate) fn share_below(&self, members: &[usize], weighted: f64) -> f64 {
        let below = Extremity::below(weighted).p;
        let has =
            |assignment: &usize| members.iter().any(|one| self.members[*one].by_assignment[*assignment].p <= below);
        let all = members.first().map_or(0, |one| self.members[*one].by_assignment.len());
        (0..all).filter(has).count() as f64 / all.max(1) as f64
    }
}

/// Returns the statistics of a metric; none if its values are all equal.
fn member(strata: &[Stratum], weight: f64, assignments: &[u16], chosen: usize) -> Option<Member> {
    let ranked = Ranked::new(strata, 0.0)?;
    let reference = Reference::new(&ranked);
    let by_sum = reference.by_sum(&ranked);
    let ranks: Vec<usize> = ranked.strata.iter().flat_map(|(ranks, _)| ranks.iter().copied()).collect();
    let centred = centred(strata);
    let all: f64 = centred.iter().map(|value| value * value).sum();
    let information: f64 = strata
        .iter()
        .map(|one| (one.base.len() * one.other.len()) as f64 / (one.base.len() + one.other.len()).max(1) as f64)
        .sum();
    (all > 0.0 && information > 0.0).then_some(())?;
    let extremity = |runs: &[u16]| {
        let sum: usize = runs.iter().map(|run| ranks[usize::from(*run)]).sum();
        let difference: f64 = runs.iter().map(|run| centred[usize::from(*run)]).sum();
        Extremity {
            p: by_sum.p(sum) / weight,
            unexplained: (1.0 - difference * difference / (information * all)).max(0.0),
        }
    };
    let by_assignment: Vec<Extremity> = assignments.chunks_exact(chosen.max(1)).map(extremity).collect();
    let observed = *by_assignment.first()?;
    let possible = by_sum.possible();
    Some(Member {
        observed,
        p: observed.p * weight,
        least_p: crate::rank_test::untied(strata),
        weight,
        by_assignment,
        possible,
    })
}

/// Returns the deviations from the mean of each stratum, those of the other side first.
fn centred(strata: &[Stratum]) -> Vec<f64> {
    let mut all = Vec::new();
    for Stratum { base, other } in strata {
        let values = || other.iter().chain(base);
        let mean = values().sum::<f64>() / (base.len() + other.len()).max(1) as f64;
        all.extend(values().map(|value| value - mean));
    }
    all
}

/// Lists the other side's runs in each assignment, the observed one first, and whether these are all assignments.
fn assignments(shape: &[(usize, usize)]) -> (Vec<u16>, bool) {
    let ways: f64 = shape.iter().map(|(other, base)| choose(other + base, *other)).product();
    let mut starts = Vec::new();
    let mut runs: u16 = 0;
    for (other, base) in shape {
        starts.push(runs);
        runs += u16::try_from(other + base).unwrap_or(0);
    }
    if ways <= MAX_LISTED { (listed(shape, &starts), true) } else { (sampled(shape, &starts), false) }
}

fn listed(shape: &[(usize, usize)], starts: &[u16]) -> Vec<u16> {
    let mut all: Vec<Vec<u16>> = vec![Vec::new()];
    for ((other, base), start) in shape.iter().zip(starts) {
        let own = combinations(u16::try_from(other + base).unwrap_or(0), *other);
        let longer = |before: &Vec<u16>| -> Vec<Vec<u16>> {
            own.iter().map(|runs| before.iter().copied().chain(runs.iter().map(|run| start + run)).collect()).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all.concat()
}

/// Returns all choices of `chosen` of the first `all` numbers, in lexicographic order.
fn combinations(all: u16, chosen: usize) -> Vec<Vec<u16>> {
    let mut list = vec![Vec::new()];
    for place in 0..chosen {
        let left = u16::try_from(chosen - place - 1).unwrap_or(0);
        let longer = |before: &Vec<u16>| -> Vec<Vec<u16>> {
            let first = before.last().map_or(0, |last| last + 1);
            (first..all - left).map(|next| before.iter().copied().chain([next]).collect()).collect()
        };
        list = list.iter().flat_map(longer).collect();
    }
    list
}

fn sampled(shape: &[(usize, usize)], starts: &[u16]) -> Vec<u16> {
    let mut random = StdRng::seed_from_u64(SEED);
    let mut all = Vec::new();
    for number in 0..SAMPLED {
        for ((other, base), start) in shape.iter().zip(starts) {
            let mut runs: Vec<u16> = (*start..).take(other + base).collect();
            for place in (0..*other).filter(|_| number > 0) {
                let swapped = random.random_range(place..runs.len());
                runs.swap(place, swapped);
            }
            all.extend(&runs[..*other]);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn all_assignments_are_listed_once_and_the_observed_one_first() {
        for (shape, count) in
            [(vec![(4, 4)], 70), (vec![(2, 2); 3], 216), (vec![(2, 2), (1, 1)], 12), (vec![(3, 2)], 10)]
        {
            let (all, is_complete) = assignments(&shape);
            let chosen: usize = shape.iter().map(|(other, _)| other).sum();
            let distinct: BTreeSet<&[u16]> = all.chunks_exact(chosen).collect();
            assert!(is_complete && distinct.len() == count && all.len() == count * chosen, "{shape:?}");
            assert_eq!(all[0], 0, "{shape:?}");
        }
        let (all, is_complete) = assignments(&[(2, 2); 10]);
        assert!(!is_complete && all.len() == SAMPLED * 20);
    }

    /// A metric and its double are one question; an independent one adds its own extreme assignments.
    #[test]
    fn related_metrics_hardly_cost_power() {
        let one = [Stratum { base: vec![1.0, 2.0, 3.0, 4.0, 5.0], other: vec![6.0, 7.1, 8.0, 9.3, 10.0] }];
        let same = [Stratum { base: vec![2.0, 4.0, 6.0, 8.0, 10.0], other: vec![12.0, 14.2, 16.0, 18.6, 20.0] }];
        let unlike = [Stratum { base: vec![1.0, 9.0, 3.0, 7.0, 5.0], other: vec![6.0, 2.0, 8.0, 4.0, 10.0] }];
        let p = |metrics: &[(&[Stratum], f64)]| {
            let family = Family::new(metrics, &mut Assignments::default());
            let all: Vec<usize> = (0..metrics.len()).collect();
            family.share(&all, &family.most_extreme(&all), family.members[0].observed)
        };
        let alone = p(&[(&one, 1.0)]);
        assert!((alone - 2.0 / 252.0).abs() < 1e-12, "{alone}");
        assert!((p(&[(&one, 1.0), (&same, 1.0)]) - alone).abs() < 1e-12);
        let both = p(&[(&one, 1.0), (&unlike, 1.0)]);
        assert!((2.0 / 252.0..=4.0 / 252.0 + 1e-12).contains(&both), "{both}");
    }

    #[test]
    fn of_two_complete_separations_the_wider_one_is_more_extreme() {
        let near = [Stratum { base: vec![1.0, 2.0, 3.0, 4.0], other: vec![5.0, 6.0, 7.0, 8.0] }];
        let far = [Stratum { base: vec![1.0, 1.1, 1.2, 1.3], other: vec![5.0, 5.1, 5.2, 5.3] }];
        let [near, far] =
            [near, far].map(|strata| Family::new(&[(&strata, 1.0)], &mut Assignments::default()).members[0].observed);
        assert!(far.reaches(near) && !near.reaches(far), "{far:?} {near:?}");
    }
}
