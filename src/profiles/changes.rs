//! Significant differences of CPU time between a baseline's and a candidate's runs. Pure.
//!
//! First and alone the total CPU time per request is tested. The other questions are one family: the total of each
//! node, and own time and total of each function. [`MaxT`] corrects for all of them, so that at most 5 % of comparisons
//! without any difference show one.
//!
//! A question is asked if it is worth more than [`MIN_SHARE`] of the CPU time on at least one side. Which side a run is
//! on must not decide what is asked, or the test would not be exact. So the runs with the largest shares count, as many
//! as the smaller side has: their mean is never below that of a side.

use crate::profiles::mean::mean;
use serde::Serialize;

use crate::compare::statistics::ALPHA;
use crate::profiles::{
    functions::Functions,
    max_t::{Interval, MaxT},
    permutation::{Assignments, Sides, fewest},
    stacks::Unit,
    tree::Tree,
};

/// Smallest share of the CPU time that is worth a question.
pub const MIN_SHARE: f64 = 0.005;

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The CPU time per request of the complete run.
    Whole,
    /// A node of the tree with everything it calls.
    Node(usize),
    /// A symbol of the tree without what it calls.
    Own(usize),
    /// A symbol of the tree with everything it calls.
    Total(usize),
}

/// On which sides something occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// On both.
    Both,
    /// Only on the candidate.
    New,
    /// Only on the baseline.
    Vanished,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What the question is about.
    pub subject: Subject,
    /// Mean of the baseline.
    pub baseline: f64,
    /// Mean of the candidate.
    pub candidate: f64,
    /// Mean of the candidate minus mean of the baseline.
    pub difference: f64,
    /// On which sides it occurs.
    pub presence: Presence,
    /// p-value, corrected for all questions of its family.
    pub p: f64,
}

impl Change {
    /// Whether there is a difference.
    pub fn is_significant(&self) -> bool {
        self.p <= ALPHA
    }
}

/// Answers to all questions of a comparison.
#[derive(Clone, Debug)]
pub struct Changes {
    /// Unit of all values.
    pub unit: Unit,
    /// Number of compared runs on each side. Runs without samples do not count.
    pub sides: Sides,
    /// Fewest repetitions a side at which a difference can be shown at all.
    pub fewest: usize,
    /// The CPU time per request; None if it is unknown or a side has no runs.
    pub whole: Option<Change>,
    /// All other questions.
    pub changes: Vec<Change>,
    wholes: Vec<f64>,
    values: Vec<Vec<f64>>,
    whole_test: MaxT,
    test: MaxT,
}

impl Changes {
    /// Compares the first `baseline` runs of a tree with the others.
    pub fn new(tree: &Tree, functions: &Functions, baseline: usize) -> Self {
        let runs: Vec<usize> = (0..tree.runs()).filter(|run| !tree.empty.contains(run)).collect();
        let before = runs.iter().filter(|run| **run < baseline).count();
        let sides = Sides { baseline: before, candidate: runs.len() - before };
        let is_comparable = sides.baseline > 0 && sides.candidate > 0;
        let select = |values: &[f64]| -> Vec<f64> { runs.iter().map(|run| values[*run]).collect() };
        let wholes = select(&tree.whole);
        let mut asked: Vec<(Subject, Vec<f64>)> =
            subjects(tree, functions).map(|(subject, values)| (subject, select(values))).collect();
        asked.retain(|(_, values)| is_comparable && is_worth_asking(values, &wholes, sides));
        let (subjects, values): (Vec<Subject>, Vec<Vec<f64>>) = asked.into_iter().unzip();
        let assignments = Assignments::new(sides);
        let has_whole = is_comparable && tree.unit == Unit::MsPerRequest;
        let whole_test = MaxT::new(if has_whole { std::slice::from_ref(&wholes) } else { &[] }, assignments.clone());
        let test = MaxT::new(&values, assignments);
        let answer = |(number, subject): (usize, &Subject)| change(*subject, &values[number], sides, test.p(number));
        let changes = subjects.iter().enumerate().map(answer).collect();
        let whole = has_whole.then(|| change(Subject::Whole, &wholes, sides, whole_test.p(0)));
        Self { unit: tree.unit, sides, fewest: fewest(), whole, changes, wholes, values, whole_test, test }
    }

    /// Whether these numbers of runs can show a difference at all.
    pub fn can_show(&self) -> bool {
        self.sides.baseline > 0 && self.sides.candidate > 0 && self.sides.least_p() <= ALPHA
    }

    /// Returns the interval of the difference of the CPU time per request.
    ///
    /// None if it is unbounded or unknown.
    pub fn whole_interval(&self) -> Option<Interval> {
        self.whole?;
        self.whole_test.intervals(&[0]).pop()?
    }

    /// Returns the intervals of the differences of some changes, by index.
    ///
    /// None where they are unbounded. An interval contains 0 exactly if the change is not significant.
    /// Computing several at once is faster.
    pub fn intervals(&self, changes: &[usize]) -> Vec<Option<Interval>> {
        self.test.intervals(changes)
    }

    /// Returns the values of a change by run, those of the baseline first.
    pub fn values(&self, change: usize) -> &[f64] {
        &self.values[change]
    }

    /// Returns the CPU time of each run, those of the baseline first.
    pub fn wholes(&self) -> &[f64] {
        &self.wholes
    }

    /// Returns the assignments of runs to sides.
    pub fn assignments(&self) -> &Assignments {
        self.test.assignments()
    }

    /// Returns the indexes of the significant changes of own time, the largest first.
    pub fn significant_own(&self) -> Vec<usize> {
        let is_own = |change: &Change| matches!(change.subject, Subject::Own(_)) && change.is_significant();
        let mut own: Vec<usize> = (0..self.changes.len()).filter(|index| is_own(&self.changes[*index])).collect();
        let size = |index: &usize| self.changes[*index].difference.abs();
        own.sort_by(|a, b| size(b).total_cmp(&size(a)));
        own
    }
}

/// Iterates over everything that can be asked, with the values of all runs of the tree.
fn subjects<'a>(tree: &'a Tree, functions: &'a Functions) -> impl Iterator<Item = (Subject, &'a [f64])> {
    let nodes = (1..tree.nodes.len()).map(|node| (Subject::Node(node), tree.total(node)));
    let own = functions.functions.iter().map(|one| (Subject::Own(one.symbol), one.own.as_slice()));
    let total = functions.functions.iter().map(|one| (Subject::Total(one.symbol), one.total.as_slice()));
    nodes.chain(own).chain(total)
}

/// Whether the mean of the largest shares exceeds [`MIN_SHARE`].
fn is_worth_asking(values: &[f64], wholes: &[f64], sides: Sides) -> bool {
    let mut shares: Vec<f64> = values.iter().zip(wholes).map(|(value, whole)| value / whole).collect();
    shares.sort_unstable_by(|a, b| b.total_cmp(a));
    mean(&shares[..sides.baseline.min(sides.candidate)]) > MIN_SHARE
}

fn change(subject: Subject, values: &[f64], sides: Sides, p: f64) -> Change {
    let (baseline, candidate) = values.split_at(sides.baseline);
    let (baseline, candidate) = (mean(baseline), mean(candidate));
    let presence = match (baseline > 0.0, candidate > 0.0) {
        (false, true) => Presence::New,
        (true, false) => Presence::Vanished,
        _ => Presence::Both,
    };
    Change { subject, baseline, candidate, difference: candidate - baseline, presence, p }
}

#[cfg(test)]
mod tests;
