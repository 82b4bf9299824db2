//! What a plan will be able to tell, said before it is measured. Pure.

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

/// What a plan's comparison will be able to tell of its primary metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanPower {
    /// Pairs of cells that will be compared.
    pub comparisons: usize,
    /// The metric that is tested first.
    pub primary: Metric,
    /// Repetitions that it takes to find any difference at all.
    pub needed: usize,
    /// Repetitions of the plan.
    pub chosen: usize,
    /// The smallest difference that is found in 80 % of such experiments, as a share, by what the cells scattered in
    /// the past; null where that is not known, or nothing can be found.
    pub detectable: Option<f64>,
}

/// What a plan will be able to tell; none where it compares nothing, or decides by itself how often it measures.
/// `scatter` is the standard deviation that the cells have shown.
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

    /// In a sentence.
    pub fn sentence(&self) -> String {
        let Self { comparisons, primary, needed, chosen, detectable } = self;
        let asked = format!("{} of {}", plural(*comparisons, "comparison"), primary.name());
        if !self.is_enough() {
            return format!("{asked} need {needed} repetitions to find any difference; {chosen} chosen.");
        }
        match detectable {
            Some(detectable) => format!(
                "Minimum detectable effect about {} in {} with {chosen} repetitions, by earlier experiments.",
                format::percent(Some(*detectable)).text(),
                primary.name()
            ),
            None => format!("{chosen} repetitions: enough to compare; {asked} need at least {needed}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::describe::tests::plan;

    fn of(targets: usize, sizes: usize, repetitions: u32) -> Plan {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect();
        Plan { targets: names(targets), sizes: names(sizes), repetitions, ..plan() }
    }

    #[test]
    fn more_comparisons_take_more_repetitions() {
        let power = plan_power(&of(3, 2, 5), None).expect("something to compare");
        assert_eq!((power.comparisons, power.needed, power.chosen), (6, 7, 5));
        assert_eq!(
            power.sentence(),
            "6 comparisons of throughput need 7 repetitions to find any difference; 5 chosen."
        );
        let power = plan_power(&of(2, 1, 5), None).expect("something to compare");
        assert!(power.is_enough() && power.needed == 4, "{power:?}");
        assert_eq!(plan_power(&of(1, 4, 5), None), None);
    }

    #[test]
    fn what_the_cells_scattered_says_what_will_be_found() {
        let at = |repetitions| plan_power(&of(2, 1, repetitions), Some(0.02)).and_then(|power| power.detectable);
        assert!(at(20) < at(6) && at(6).is_some(), "{:?} {:?}", at(20), at(6));
        assert_eq!(at(3), None, "three find nothing");
    }
}
