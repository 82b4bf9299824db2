//! The sentence about a comparison of profiles: how large the difference is and where it is. Pure.
//!
//! The place of a difference is found by descending from the root, always to the node that explains the most, as long
//! as its difference is significant and at least half of the total one.

mod number;
mod place;
mod text;

use serde::Serialize;

pub use place::Place;

use crate::profiles::{
    changes::{Change, Changes, Presence, Subject},
    explained::{Explained, explained},
    max_t::Interval,
    stacks::Unit,
    tree::{Symbol, Tree},
};

/// Maximum number of functions that are listed.
const MAX_LISTED: usize = 5;

/// A difference of the candidate from the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean of the candidate minus mean of the baseline.
    pub value: f64,
    /// 95 % confidence interval; None if it is unbounded.
    pub interval: Option<Interval>,
}

/// A function whose own time differs significantly.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedFunction {
    /// The function.
    pub symbol: Symbol,
    /// Difference of its own time.
    pub difference: Difference,
    /// Difference relative to the baseline: 0.2 is 20 % more; None if it is new.
    pub relative: Option<f64>,
    /// On which sides it occurs.
    pub presence: Presence,
    /// Share of the total difference that it explains.
    ///
    /// None unless the total differs significantly.
    pub explains: Option<Explained>,
}

/// Why there is, or is no, difference of the total to be explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A side has no runs with samples.
    NotComparable,
    /// Too few runs to show any difference.
    TooFew,
    /// The CPU time per request is unknown: shares are compared, and their total is always 100 %.
    SharesOnly,
    /// No difference of the total is shown.
    NoDifference,
    /// The total differs significantly.
    Difference,
}

/// What a comparison of profiles has shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Headline {
    /// Whether the total differs.
    pub verdict: Verdict,
    /// Unit of all differences.
    pub unit: Unit,
    /// Number of compared runs of the baseline and of the candidate.
    pub runs: [usize; 2],
    /// Fewest repetitions a side at which a difference can be shown at all.
    pub fewest: usize,
    /// Difference of the CPU time per request; None if it is unknown.
    pub difference: Option<Difference>,
    /// The last node that holds at least half of the difference.
    pub place: Option<Place>,
    /// Up to five functions with the largest significant differences of their own time.
    pub functions: Vec<ChangedFunction>,
    /// The function whose own time explains the largest share of the difference.
    pub explains_most: Option<ChangedFunction>,
}

impl Headline {
    /// Summarises a comparison of the runs of a tree.
    pub fn new(tree: &Tree, changes: &Changes) -> Self {
        let verdict = verdict(changes);
        let listed = listed(tree, changes);
        let share = |one: &ChangedFunction| one.explains.map_or(f64::NEG_INFINITY, |explains| explains.share);
        let explaining = listed.iter().filter(|one| share(one) > 0.0);
        let is_difference = verdict == Verdict::Difference;
        Self {
            verdict,
            unit: changes.unit,
            runs: [changes.sides.baseline, changes.sides.candidate],
            fewest: changes.fewest,
            difference: changes
                .whole
                .map(|whole| Difference { value: whole.difference, interval: changes.whole_interval() }),
            place: if is_difference { place::find(tree, changes) } else { None },
            explains_most: explaining.max_by(|a, b| share(a).total_cmp(&share(b))).cloned(),
            functions: listed.into_iter().take(MAX_LISTED).collect(),
        }
    }
}

fn verdict(changes: &Changes) -> Verdict {
    if changes.sides.baseline == 0 || changes.sides.candidate == 0 {
        Verdict::NotComparable
    } else if !changes.can_show() {
        Verdict::TooFew
    } else {
        match changes.whole {
            None => Verdict::SharesOnly,
            Some(whole) if whole.is_significant() => Verdict::Difference,
            Some(_) => Verdict::NoDifference,
        }
    }
}

/// Returns the functions with significant own time, the largest difference first.
///
/// Those of the total's sign beyond the listed ones cannot explain more than the first of them does.
fn listed(tree: &Tree, changes: &Changes) -> Vec<ChangedFunction> {
    let own = changes.significant_own();
    let sign = changes.whole.map_or(0.0, |whole| whole.difference);
    let first = own.iter().find(|index| changes.changes[**index].difference * sign > 0.0);
    let mut indexes: Vec<usize> = own.iter().copied().take(MAX_LISTED).collect();
    if let Some(first) = first.filter(|first| !indexes.contains(first)) {
        indexes.push(*first);
    }
    let intervals = changes.intervals(&indexes);
    indexes.iter().zip(intervals).filter_map(|(index, interval)| changed(tree, changes, *index, interval)).collect()
}

fn changed(tree: &Tree, changes: &Changes, index: usize, interval: Option<Interval>) -> Option<ChangedFunction> {
    let change = changes.changes[index];
    let Subject::Own(symbol) = change.subject else { return None };
    Some(ChangedFunction {
        symbol: tree.symbols[symbol].clone(),
        difference: Difference { value: change.difference, interval },
        relative: (change.baseline > 0.0).then(|| change.difference / change.baseline),
        presence: change.presence,
        explains: share_of_whole(changes, index),
    })
}

/// Returns the share of the total difference that a change explains; None unless the total differs significantly.
fn share_of_whole(changes: &Changes, index: usize) -> Option<Explained> {
    changes.whole.filter(Change::is_significant)?;
    explained(changes.values(index), changes.wholes(), changes.assignments())
}

#[cfg(test)]
mod tests;
