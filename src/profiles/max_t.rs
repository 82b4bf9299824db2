//! Exact permutation test of many questions at once: step-down max-T (Westfall & Young 1993, algorithm 2.8). Pure.
//!
//! A question is one value per run, such as the time of one function. Its statistic is |mean difference| / (s + s0),
//! where s is the pooled standard error and s0 a constant of the family, so that functions with an accidentally small
//! scatter do not dominate (Tusher, Tibshirani & Chu 2001). The largest statistic of an assignment is compared with the
//! observed ones. As related questions have related statistics, more of them hardly cost any power.
//!
//! The constant is the median of s over the family in the assignment where that median is smallest. That of the
//! observed assignment would depend on which runs are on which side, and the test would not be exact; one per
//! assignment would be inflated by true differences wherever sides are mixed, and other questions would seem to differ.
//!
//! Intervals invert the same test. Shift a question's candidate by δ at distance u from the estimate: an assignment is
//! at least as extreme exactly if its mean difference is at least u, whatever s0 is, or if another question of the step
//! is. Both happen up to some distance only, so the end of the interval is a quantile of these distances.

use crate::profiles::mean::mean;
use std::cmp::Ordering;

use crate::compare::statistics::ALPHA;
use crate::profiles::permutation::{Assignments, Sides};

/// Relative difference below which statistics are tied: rounding errors are smaller.
const TIE: f64 = 1e-9;

/// Variation relative to the value below which all values of a question are equal.
const FLAT: f64 = 1e-12;

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in the interval.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The result of testing a family of questions.
#[derive(Clone, Debug)]
pub struct MaxT {
    assignments: Assignments,
    /// Questions from the largest statistic to the smallest.
    order: Vec<usize>,
    /// Position of each question in `order`, its rank.
    ranks: Vec<usize>,
    family: Family,
    /// Adjusted p-values by rank.
    adjusted: Vec<f64>,
}

/// Values by rank of the question, without their means.
#[derive(Clone, Debug)]
struct Family {
    sides: Sides,
    /// All questions of the first run, then of the second, and so on.
    rows: Vec<f64>,
    /// Sum of squares of each question.
    squares: Vec<f64>,
    /// The constant s0.
    typical_error: f64,
}

impl MaxT {
    /// Tests a family of questions, each with the values of all runs.
    pub fn new(questions: &[Vec<f64>], assignments: Assignments) -> Self {
        let mut family = Family::new(questions.iter().map(Vec::as_slice), assignments.sides());
        family.typical_error = family.smallest_median_error(&assignments);
        let observed = family.observed();
        let mut order: Vec<usize> = (0..questions.len()).collect();
        order.sort_by(|a, b| observed[*b].total_cmp(&observed[*a]).then(a.cmp(b)));
        let sorted = Family::new(order.iter().map(|question| questions[*question].as_slice()), family.sides);
        let family = Family { typical_error: family.typical_error, ..sorted };
        let mut ranks = vec![0; order.len()];
        for (rank, question) in order.iter().enumerate() {
            ranks[*question] = rank;
        }
        let adjusted = family.adjusted(&assignments);
        Self { assignments, order, ranks, family, adjusted }
    }

    /// Returns the p-value of a question, corrected for all questions of the family.
    pub fn p(&self, question: usize) -> f64 {
        self.adjusted[self.ranks[question]]
    }

    /// Returns the assignments that were compared with the observed one.
    pub fn assignments(&self) -> &Assignments {
        &self.assignments
    }

    /// Returns the intervals of the mean differences of these questions.
    ///
    /// None where an interval is unbounded. It contains 0 exactly if the corrected p-value is above 5 %.
    pub fn intervals(&self, questions: &[usize]) -> Vec<Option<Interval>> {
        let rejected = self.adjusted.iter().take_while(|p| **p <= ALPHA).count();
        let mut ends: Vec<Ends> = questions
            .iter()
            .map(|question| Ends::new(&self.family, self.ranks[*question], &self.assignments))
            .collect();
        let mut statistics = Statistics::new(self.order.len());
        for runs in self.assignments.iter() {
            statistics.fill(&self.family, runs, rejected);
            for end in &mut ends {
                end.add(&self.family, runs, &statistics, rejected);
            }
        }
        ends.into_iter().map(|end| end.interval(&self.assignments)).collect()
    }
}

impl Family {
    fn new<'a>(questions: impl Iterator<Item = &'a [f64]> + Clone, sides: Sides) -> Self {
        let count = questions.clone().count();
        let mut rows = vec![0.0; count * sides.runs()];
        let mut squares = vec![0.0; count];
        for (place, values) in questions.enumerate() {
            let mean = mean(values);
            let largest = values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            if values.iter().all(|value| (value - mean).abs() <= FLAT * largest) {
                continue;
            }
            for (run, value) in values.iter().enumerate() {
                rows[run * count + place] = value - mean;
            }
            squares[place] = values.iter().map(|value| (value - mean).powi(2)).sum();
        }
        Self { sides, rows, squares, typical_error: 0.0 }
    }

    /// Stores the sum of the given runs for each question.
    fn sums(&self, runs: &[usize], sums: &mut [f64]) {
        sums.fill(0.0);
        for run in runs {
            let row = &self.rows[run * sums.len()..][..sums.len()];
            for (sum, value) in sums.iter_mut().zip(row) {
                *sum += value;
            }
        }
    }

    /// Returns the pooled standard error of a mean difference.
    fn error(&self, rank: usize, difference: f64) -> f64 {
        let per_sum = self.sides.per_sum();
        let within = self.squares[rank] - difference * difference / per_sum;
        if within <= FLAT * self.squares[rank] {
            return 0.0;
        }
        (within / self.sides.runs().saturating_sub(2).max(1) as f64 * per_sum).sqrt()
    }

    fn statistic(&self, rank: usize, difference: f64) -> f64 {
        if difference == 0.0 {
            return 0.0;
        }
        difference.abs() / (self.error(rank, difference) + self.typical_error)
    }

    /// Returns the smallest median of the standard errors over all assignments.
    fn smallest_median_error(&self, assignments: &Assignments) -> f64 {
        let mut sums = vec![0.0; self.squares.len()];
        let middle = sums.len() / 2;
        let median = |runs: &[usize]| {
            self.sums(runs, &mut sums);
            for (rank, sum) in sums.iter_mut().enumerate() {
                *sum = self.error(rank, *sum * self.sides.per_sum());
            }
            *sums.select_nth_unstable_by(middle, f64::total_cmp).1
        };
        if self.squares.is_empty() { 0.0 } else { assignments.iter().map(median).fold(f64::INFINITY, f64::min) }
    }

    /// Returns the statistics of the observed assignment.
    fn observed(&self) -> Vec<f64> {
        let runs: Vec<usize> = (self.sides.baseline..self.sides.runs()).collect();
        let mut statistics = Statistics::new(self.squares.len());
        statistics.fill(self, &runs, 0);
        statistics.own
    }

    /// Returns the adjusted p-values by rank: no question gets a smaller one than a question with a larger statistic.
    fn adjusted(&self, assignments: &Assignments) -> Vec<f64> {
        let observed = self.observed();
        let mut extreme = vec![0_usize; observed.len()];
        let mut statistics = Statistics::new(observed.len());
        for runs in assignments.iter() {
            statistics.fill(self, runs, 0);
            for ((count, largest), observed) in extreme.iter_mut().zip(&statistics.from_here).zip(&observed) {
                *count += usize::from(*largest >= observed * (1.0 - TIE));
            }
        }
        let count = assignments.count() as f64;
        let monotone = |largest: &mut f64, extreme: usize| {
            *largest = largest.max(extreme as f64 / count);
            Some(*largest)
        };
        extreme.into_iter().scan(0.0, monotone).collect()
    }
}

/// Statistics of one assignment by rank.
struct Statistics {
    sums: Vec<f64>,
    own: Vec<f64>,
    /// The largest statistic of this and all later ranks.
    from_here: Vec<f64>,
    /// The largest statistic of all ranks before this one that are not rejected.
    before: Vec<f64>,
}

impl Statistics {
    fn new(count: usize) -> Self {
        Self { sums: vec![0.0; count], own: vec![0.0; count], from_here: vec![0.0; count], before: vec![0.0; count] }
    }

    fn fill(&mut self, family: &Family, runs: &[usize], rejected: usize) {
        family.sums(runs, &mut self.sums);
        let per_sum = family.sides.per_sum();
        for (rank, (own, sum)) in self.own.iter_mut().zip(&self.sums).enumerate() {
            *own = family.statistic(rank, sum * per_sum);
        }
        let mut largest = 0.0_f64;
        for (from_here, own) in self.from_here.iter_mut().zip(&self.own).rev() {
            largest = largest.max(*own);
            *from_here = largest;
        }
        let mut largest = 0.0_f64;
        for (before, own) in self.before.iter_mut().zip(&self.own).skip(rejected) {
            *before = largest;
            largest = largest.max(*own);
        }
    }

    /// Returns the largest statistic of the other questions in the step that decides on `rank`.
    ///
    /// That is its own step if it is rejected, otherwise the step at which the test stopped.
    fn others(&self, rank: usize, rejected: usize) -> f64 {
        let later = self.from_here.get(rank + 1).copied().unwrap_or_default();
        if rank < rejected { later } else { later.max(self.before[rank]) }
    }
}

/// How far from its estimate each assignment leaves a question's shift unrejected, in both directions.
struct Ends {
    rank: usize,
    estimate: f64,
    /// Distance that corresponds to a statistic of one.
    scale: f64,
    down: Vec<f64>,
    up: Vec<f64>,
}

impl Ends {
    fn new(family: &Family, rank: usize, assignments: &Assignments) -> Self {
        let sides = family.sides;
        let count = family.squares.len();
        let sum: f64 = (sides.baseline..sides.runs()).map(|run| family.rows[run * count + rank]).sum();
        let estimate = sum * sides.per_sum();
        let scale = family.error(rank, estimate) + family.typical_error;
        let empty = || Vec::with_capacity(assignments.count());
        Self { rank, estimate, scale, down: empty(), up: empty() }
    }

    fn add(&mut self, family: &Family, runs: &[usize], statistics: &Statistics, rejected: usize) {
        let sides = family.sides;
        let others = statistics.others(self.rank, rejected) * self.scale * (1.0 + TIE);
        let kept = runs.iter().filter(|run| **run >= sides.baseline).count() as f64;
        // Mean difference of this assignment if the candidate's runs were 1 and the others 0: how it changes with δ.
        let slope = kept / sides.candidate as f64 - (sides.candidate as f64 - kept) / sides.baseline as f64;
        let unshifted = statistics.sums[self.rank] * sides.per_sum() - self.estimate * slope;
        let own = |slope: f64| {
            let slope = if unshifted < 0.0 { -slope } else { slope };
            let is_observed_or_mirrored = slope.abs() >= 1.0 - FLAT;
            if is_observed_or_mirrored { f64::INFINITY } else { unshifted.abs() / (1.0 - slope) * (1.0 + TIE) }
        };
        self.down.push(own(slope).max(others));
        self.up.push(own(-slope).max(others));
    }

    fn interval(self, assignments: &Assignments) -> Option<Interval> {
        let low = self.estimate - assignments.limit(self.down)?;
        let high = self.estimate + assignments.limit(self.up)?;
        (low.partial_cmp(&high) != Some(Ordering::Greater)).then_some(Interval { low, high })
    }
}

#[cfg(test)]
mod tests;
