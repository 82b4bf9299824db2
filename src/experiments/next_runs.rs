//! Lists the runs to queue: those of a new experiment, and those that follow from the results of earlier ones. Pure.

use std::ops::RangeInclusive;

use super::{
    knee::search,
    order::{Grid, order, shuffle},
};
use crate::{
    experiments::{
        knee::{
            history,
            model::{Knee, rate_of},
        },
        plan::Plan,
        stopping_rule::{self, Step},
        store::RunInputs,
    },
    runs::model::{Run, RunSpec},
};

/// A run to queue.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// What it measures.
    pub spec: RunSpec,
    /// Repetition of its cell, from 1.
    pub repetition: u32,
}

/// Returns the first runs of an experiment, in order.
pub fn first(plan: &Plan, inputs: &RunInputs) -> Vec<PlannedRun> {
    match &plan.knee {
        Some(knee) => rates(plan, knee, inputs, &[]),
        None if plan.stopping_rule.is_some() => repetitions(plan, inputs, 1..=plan.repetitions),
        None => [repetitions(plan, inputs, 1..=plan.repetitions), profiled(plan, inputs)].concat(),
    }
}

/// Returns the runs that follow once all have ended, in order; none if the experiment is complete.
pub fn next(plan: &Plan, inputs: &RunInputs, runs: &[Run]) -> Vec<PlannedRun> {
    if let Some(knee) = &plan.knee {
        return rates(plan, knee, inputs, runs);
    }
    let step = plan.stopping_rule.map(|until| stopping_rule::narrowing(plan, until, runs).next());
    match step {
        Some(Step::Repeat { first, last }) => repetitions(plan, inputs, first..=last),
        // Only once it is known that no measurement follows.
        Some(Step::Enough) if !runs.iter().any(|run| run.spec.profiled) => profiled(plan, inputs),
        Some(Step::Enough) | None => Vec::new(),
    }
}

/// Returns the profiled runs, interleaved as measured ones are.
fn profiled(plan: &Plan, inputs: &RunInputs) -> Vec<PlannedRun> {
    let runs = repetitions(plan, inputs, 1..=plan.profiled_repetitions);
    let profiled = |spec| RunSpec { profiled: true, ..spec };
    runs.into_iter().map(|PlannedRun { spec, repetition }| PlannedRun { spec: profiled(spec), repetition }).collect()
}

/// Returns all cells of these repetitions, in order.
pub fn repetitions(plan: &Plan, inputs: &RunInputs, which: RangeInclusive<u32>) -> Vec<PlannedRun> {
    let Plan { targets, loads, .. } = plan;
    let grid = Grid { targets: targets.len(), sizes: inputs.sizes.len(), loads: loads.len() };
    let planned = |cell: super::order::PlanIndices| PlannedRun {
        spec: inputs.spec(plan, &targets[cell.target], &inputs.sizes[cell.size], &loads[cell.load]),
        repetition: cell.repetition,
    };
    order(grid, plan.seed.unwrap_or_default(), which).into_iter().map(planned).collect()
}

/// Returns the next rates of all knee searches, shuffled so that no target always comes first.
fn rates(plan: &Plan, knee: &Knee, inputs: &RunInputs, runs: &[Run]) -> Vec<PlannedRun> {
    let mut all = Vec::new();
    for size in &inputs.sizes {
        for target in &plan.targets {
            let own: Vec<&Run> = history::search_runs(runs, target, &size.name).collect();
            let search::Step::Measure(rates) = history::next(plan, knee, &own) else { continue };
            for (rate, times) in rates {
                // Never fails: both ends of the range make a valid load.
                let Ok(load) = knee.load(rate) else { continue };
                let before = own.iter().filter(|run| rate_of(run) == Some(rate)).count();
                let spec = inputs.spec(plan, target, size, &load);
                let planned = |place: usize| PlannedRun {
                    spec: spec.clone(),
                    repetition: u32::try_from(place).unwrap_or(u32::MAX),
                };
                all.extend((before + 1..=before + times).map(planned));
            }
        }
    }
    shuffle(&mut all, plan.seed.unwrap_or_default(), u64::try_from(runs.len()).unwrap_or_default());
    all
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::Load;

    use super::*;
    use crate::{
        experiments::{
            describe::tests::plan,
            knee::model::tests::{at, knee},
        },
        runs::{load::tests::vus, testing::finished},
    };

    fn inputs() -> RunInputs {
        RunInputs { sizes: finished("servy", 1).spec.size.into_iter().collect(), scenario_sha256: "00aa".to_owned() }
    }

    #[test]
    fn a_new_experiment_has_every_cell_in_every_repetition() {
        let plan = Plan { loads: vec![vus(1, 10.0), vus(2, 10.0)], ..plan() };
        let planned = first(&plan, &inputs());
        assert_eq!(planned.len(), 12);
        for target in ["gosherve", "servy"] {
            for load in &plan.loads {
                let repetitions: Vec<_> = planned
                    .iter()
                    .filter(|run| run.spec.target == target && run.spec.load() == load)
                    .map(|run| run.repetition)
                    .collect();
                assert_eq!(repetitions, [1, 2, 3]);
            }
        }
        assert_eq!(next(&plan, &inputs(), &[]), []);
    }

    #[test]
    fn a_search_measures_both_ends_first_and_then_bisects_for_each_target() {
        let plan = Plan { knee: Some(knee()), loads: Vec::new(), ..plan() };
        let rates = |planned: Vec<PlannedRun>| {
            let rate = |load: &Load| load.shape().expect("a shape").peak();
            let mut all: Vec<_> =
                planned.iter().map(|run| (run.spec.target.clone(), rate(run.spec.load()), run.repetition)).collect();
            all.sort();
            all
        };
        let expected = |all: &[(&str, u32, u32)]| -> Vec<(String, u32, u32)> {
            all.iter().map(|(target, rate, repetition)| ((*target).to_owned(), *rate, *repetition)).collect()
        };
        let ends = [("gosherve", 1_000, 1), ("gosherve", 20_000, 1), ("servy", 1_000, 1), ("servy", 20_000, 1)];
        assert_eq!(rates(first(&plan, &inputs())), expected(&ends));
        let runs = [
            at("servy", 1_000, 5.0),
            at("servy", 20_000, 90.0),
            at("gosherve", 1_000, 5.0),
            at("gosherve", 20_000, 9.0),
        ];
        let planned = next(&plan, &inputs(), &runs);
        assert_eq!(rates(planned), expected(&[("gosherve", 20_000, 2), ("gosherve", 20_000, 3), ("servy", 4_470, 1)]));
    }
}
