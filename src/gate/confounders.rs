//! Confounders of a gate, in words: what the compare page finds between the same two sides. The gate cannot say until
//! the caller accepts them, because they may explain the difference. Pure.

use super::cells::GateCell;
use crate::{
    compare::{
        comparability::{self, Circumstance, Confounder, Environments},
        comparison_context::ComparisonContext,
        equal_work::{self, NamedRuns},
        notes::listed,
        selection::By,
        work_difference::WorkDifference,
    },
    runs::model::Run,
};

/// Returns the confounders of a cell, each with a description.
pub fn confounders(cell: &GateCell, environments: &Environments) -> Vec<(Circumstance, String)> {
    let found = comparability::confounders(&sides(cell), By::Target, environments);
    found.into_iter().map(|one| (one.what, describe(one))).collect()
}

fn describe(Confounder { what, sides, .. }: Confounder) -> String {
    let [baseline, candidate] = sides.map(|values| listed(values.into_iter()));
    format!("{} differ: baseline {baseline}, candidate {candidate}", what.as_str())
}

/// Returns how the work of both sides differs, including differences that a user has accepted.
pub fn different_work(cell: &GateCell, known: &ComparisonContext) -> Vec<WorkDifference> {
    let [baseline, candidate] = sides(cell);
    let sides = [NamedRuns { name: "baseline", runs: &baseline }, NamedRuns { name: "candidate", runs: &candidate }];
    equal_work::between(sides, known)
}

/// Returns the valid runs of both sides.
fn sides(cell: &GateCell) -> [Vec<&Run>; 2] {
    [&cell.baseline, &cell.candidate].map(|runs| runs.iter().filter(|run| run.counts()).collect())
}

#[cfg(test)]
mod tests;
