//! The statistical power of a plan, computed before it is measured. Pure.

use brewbench_agent::wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    compare::{
        metric::Metric,
        statistics::{self, Count, power},
    },
    experiments::plan::Plan,
    metrics,
    web::format::{self, plural},
};

/// Statistical power of a plan's comparison, for its primary metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanPower {
    /// Number of pairs of cells that will be compared.
    pub comparisons: usize,
    /// The metric that is tested first.
    pub primary: Metric,
    /// Repetitions needed to find any difference.
    pub needed: usize,
    /// Maximum number of repetitions of the plan.
    pub chosen: usize,
    /// Minimum detectable effect as a share: found in 80 % of such experiments, by the past scatter of the cells.
    ///
    /// Null if the scatter is unknown or no difference can be found.
    pub detectable: Option<f64>,
}

/// Computes the power of a plan; `None` if it compares nothing or is a knee search.
///
/// `scatter` is the standard deviation of the cells in the past.
pub fn plan_power(plan: &Plan, scatter: Option<f64>) -> Option<PlanPower> {
    let targets = plan.targets.len();
    (targets > 1 && plan.knee.is_none()).then_some(())?;
    let pairs = targets * (targets - 1) / 2 * plan.sizes.len() * plan.loads.len();
    let level = statistics::primary_level(Count { pairs, questions: 0, metrics: metrics::judged().count() });
    let is_open = plan.loads.iter().all(|load| matches!(load, Load::Open(_)));
    let chosen = plan.until.map_or(plan.repetitions, |until| until.at_most);
    let chosen = usize::try_from(chosen).unwrap_or(usize::MAX);
    Some(PlanPower {
        comparisons: pairs,
        primary: if is_open { Metric::P99Ms } else { Metric::Rps },
        needed: power::fewest(level)?,
        chosen,
        detectable: scatter.and_then(|scatter| power::detectable_with(chosen, scatter, level)),
    })
}

impl PlanPower {
    /// Whether the plan can find any difference.
    pub fn is_enough(&self) -> bool {
        self.chosen >= self.needed
    }

    /// Describes the power in a sentence.
    pub fn sentence(&self) -> String {
        let Self { comparisons, primary, needed, chosen, detectable } = self;
        let subject = format!("{} of {}", plural(*comparisons, "comparison"), primary.name());
        let need = if *comparisons == 1 { "needs" } else { "need" };
        if !self.is_enough() {
            return format!("{subject} {need} {needed} repetitions to find any difference; the plan has {chosen}.");
        }
        match detectable {
            Some(detectable) => format!(
                "Minimum detectable effect: about {} in {} with {chosen} repetitions, based on earlier experiments.",
                format::percent(Some(*detectable)).text(),
                primary.name()
            ),
            None => format!("{chosen} repetitions are enough to compare; {subject} {need} at least {needed}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::describe::tests::plan;

    fn plan_with(targets: usize, sizes: usize, repetitions: u32) -> Plan {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect();
        Plan { targets: names(targets), sizes: names(sizes), repetitions, ..plan() }
    }

    #[test]
    fn more_comparisons_take_more_repetitions() {
        let power = plan_power(&plan_with(3, 2, 5), None).expect("something to compare");
        assert_eq!((power.comparisons, power.needed, power.chosen), (6, 7, 5));
        assert_eq!(
            power.sentence(),
            "6 comparisons of throughput need 7 repetitions to find any difference; the plan has 5."
        );
        let power = plan_power(&plan_with(2, 1, 5), None).expect("something to compare");
        assert!(power.is_enough() && power.needed == 4, "{power:?}");
        assert_eq!(plan_power(&plan_with(1, 4, 5), None), None);
    }

    #[test]
    fn past_scatter_determines_the_detectable_effect() {
        let at = |count| plan_power(&plan_with(2, 1, count), Some(0.02)).and_then(|power| power.detectable);
        assert!(at(20) < at(6) && at(6).is_some(), "{:?} {:?}", at(20), at(6));
        assert_eq!(at(3), None, "three repetitions find no difference");
    }
}
