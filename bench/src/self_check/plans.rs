//! Plans of several targets and sizes with five metrics: which of them decide everything if the differences are clear,
//! and how often pages of equal programs name one.

use brewbench::{
    compare::{
        cell::Cell,
        comparison_context::ComparisonContext,
        statistics::{Decision, Leader},
        view::Comparison,
    },
    metrics,
};
use rand::rngs::StdRng;

use super::{
    compare::compare,
    tally::{Share, rounds},
    world::{BASE, Differ, Metrics, Plan, TARGETS, at_ms, experiment},
};

/// Number of simulated metrics that are judged.
const JUDGED: usize = 5;

/// What a page is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// Every target with every other.
    Each,
    /// A chosen baseline, which is the first target.
    Baseline,
}

fn page(plan: Plan, against: Against, random: &mut StdRng) -> Comparison {
    let runs = experiment("tonight", Plan { metrics: Metrics::Five, ..plan }, at_ms(0, 0), 0.0, random);
    compare(runs, (against == Against::Baseline).then_some(BASE), &ComparisonContext::default())
}

/// Returns whether a page names all true differences from the baseline, and without a chosen one also the leader, in
/// every row and metric.
fn is_decided(page: &Comparison, plan: Plan, against: Against) -> bool {
    let last = TARGETS[plan.targets - 1];
    let target = |cell: &Cell| page.subjects[cell.subject].target.as_str();
    let is_other = |cell: &&Cell| target(cell) == last || (plan.differ == Differ::Each && target(cell) != BASE);
    page.rows.iter().all(|row| {
        let is_better =
            |metric| row.cells.iter().filter(is_other).all(|cell| cell.stat(metric).decision == Some(Decision::Better));
        let leads = |metric| match row.leader(metric) {
            Leader::Of(place) => target(&row.cells[place]) == last,
            _ => against == Against::Baseline,
        };
        metrics::judged().filter(|metric| is_better(*metric) && leads(*metric)).count() == JUDGED
    })
}

/// Returns whether a page names any difference: of a cell from the baseline, or a leader.
fn is_any_difference(page: &Comparison) -> bool {
    page.rows.iter().any(|row| {
        let is_difference = |metric| row.cells.iter().any(|cell| is_named(cell.stat(metric).decision));
        metrics::judged().any(|metric| is_difference(metric) || matches!(row.leader(metric), Leader::Of(_)))
    })
}

fn is_named(decision: Option<Decision>) -> bool {
    decision.is_some_and(Decision::is_difference)
}

/// Returns the pages that decide everything.
pub fn decided(plan: Plan, against: Against, count: usize, seed: u64) -> Share {
    let round = |random: &mut StdRng| is_decided(&page(plan, against, random), plan, against);
    share(rounds(count, seed, round))
}

/// Returns the pages of equal programs that name a difference.
pub fn named(plan: Plan, against: Against, count: usize, seed: u64) -> Share {
    let plan = Plan { factor: 1.0, ..plan };
    share(rounds(count, seed, |random: &mut StdRng| is_any_difference(&page(plan, against, random))))
}

/// Returns the repetitions with which a page says it can decide everything, whatever the other differences are.
pub fn enough(plan: Plan, against: Against, seed: u64) -> usize {
    let pages = rounds(1, seed, |random: &mut StdRng| page(plan, against, random).asked.enough);
    pages.into_iter().max().unwrap_or(0)
}

fn share(hits: Vec<bool>) -> Share {
    let mut share = Share::default();
    for hit in hits {
        share.count(hit);
    }
    share
}
