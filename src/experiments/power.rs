//! The statistical power of a plan, computed before it is measured. Pure.

use brewbench_wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    compare::{
        metric::Metric,
        statistics::{ALPHA, Count, MIN_EFFECT, power},
    },
    experiments::plan::{Plan, share_text},
    metrics,
    web::format,
};

/// Statistical power of a plan's comparison, for its primary metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PlanPower {
    /// Number of pairs of cells that will be compared.
    pub comparisons: usize,
    /// The metric that is tested first.
    pub primary: Metric,
    /// Repetitions with which every question can be decided, whatever the others show.
    pub needed: usize,
    /// Repetitions that a single comparison needs.
    #[serde(default = "fewest_in_turn")]
    pub fewest: usize,
    /// Maximum number of repetitions of the plan.
    pub chosen: usize,
    /// Minimum detectable effect as a share: found in 80 % of such experiments, by the past scatter of the cells.
    ///
    /// Null if the scatter is unknown or no difference can be found.
    pub detectable: Option<f64>,
}

/// What earlier runs of the cells of a plan say about its power.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellHistory {
    /// The largest standard deviation of a cell, if known.
    pub scatter: Option<f64>,
    /// Whether there are earlier runs at all.
    pub has_runs: bool,
    /// Targets without enough earlier runs.
    pub unknown_targets: Vec<String>,
}

/// The smallest difference that a plan can show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmallestDifference {
    /// The difference, or why there is none.
    pub text: String,
    /// Whether the plan can't show any difference, although it compares targets.
    pub is_too_little: bool,
}

impl SmallestDifference {
    /// Describes the smallest difference that a plan can show, by the history of its cells.
    pub fn new(plan: &Plan, history: &CellHistory) -> Self {
        let as_expected = |text: String| Self { text, is_too_little: false };
        if let Some(knee) = &plan.knee {
            return as_expected(format!("{} of the rate, the search’s precision", share_text(knee.precision)));
        }
        if plan.targets.len() < 2 {
            return as_expected("none: one target, nothing to compare".to_owned());
        }
        let too_little = |text: String| Self { text, is_too_little: true };
        let Some(power) = plan_power(plan, history.scatter) else {
            return too_little("none: too many comparisons for one experiment".to_owned());
        };
        if !power.is_enough() {
            return too_little(format!("none: a comparison needs {} repetitions", power.fewest));
        }
        if plan.duet {
            return as_expected("known only from the repetitions of the duet itself".to_owned());
        }
        let Some(detectable) = power.detectable else {
            let few = if history.has_runs { "too few" } else { "no" };
            return as_expected(format!("not known yet: {few} earlier runs of these cells"));
        };
        let all =
            if power.decides_all() { String::new() } else { format!("; {} repetitions decide all", power.needed) };
        let least = format!("from {} in {}{all}", format::percent(Some(detectable)).text(), power.primary.name());
        as_expected(match history.unknown_targets.as_slice() {
            [] => least,
            unknown => format!("{least}; {} not known yet", unknown.join(", ")),
        })
    }
}

/// Computes the power of a plan; `None` if it compares nothing or is a knee search.
///
/// `scatter` is the standard deviation of the cells in the past.
pub fn plan_power(plan: &Plan, scatter: Option<f64>) -> Option<PlanPower> {
    let targets = plan.targets.len();
    (targets > 1 && plan.knee.is_none()).then_some(())?;
    let pairs = targets * (targets - 1) / 2 * plan.sizes.len() * plan.loads.len();
    let count = Count { pairs, questions: 0, metrics: metrics::judged().count() };
    let is_open = plan.loads.iter().all(|load| matches!(load, Load::Open(_)));
    let chosen = plan.stopping_rule.map_or(plan.repetitions, |until| until.at_most);
    let chosen = usize::try_from(chosen).unwrap_or(usize::MAX);
    // Few repetitions take few values: the smallest is the level, if nothing else separates the sides as far.
    let order = order(plan);
    let level = count.primary_level().max(power::least_p(chosen, order)).min(ALPHA);
    let with = |scatter| power::detectable_with(chosen, power::Scatter::known(scatter), level, MIN_EFFECT);
    Some(PlanPower {
        comparisons: pairs,
        primary: if is_open { Metric::P99Ms } else { Metric::Rps },
        needed: power::fewest(count.deciding_level(ALPHA), order)?,
        fewest: fewest(order),
        chosen,
        // The scatter of a cell alone says nothing about the difference of a duet.
        detectable: scatter.filter(|_| !plan.duet).and_then(with),
    })
}

fn order(plan: &Plan) -> power::Order {
    if plan.duet { power::Order::AtOnce } else { power::Order::InTurn }
}

/// Returns the repetitions that a single comparison needs.
fn fewest(order: power::Order) -> usize {
    power::fewest(ALPHA, order).unwrap_or(power::MAX_REPETITIONS)
}

fn fewest_in_turn() -> usize {
    fewest(power::Order::InTurn)
}

impl PlanPower {
    /// Whether the plan can find any difference.
    pub fn is_enough(&self) -> bool {
        self.chosen >= self.fewest
    }

    /// Whether the plan decides every question, whatever the others show.
    fn decides_all(&self) -> bool {
        self.chosen >= self.needed
    }

    /// Describes the power in a sentence.
    pub fn describe(&self) -> String {
        let Self { comparisons, primary, needed, fewest, chosen, detectable } = self;
        if !self.is_enough() {
            return format!("A comparison needs {fewest} repetitions; the plan has {chosen}.");
        }
        let found = detectable.map(|detectable| {
            let least = format::percent(Some(detectable));
            format!(
                "A difference of {} in {} is found in 80 % of cases, by earlier runs. ",
                least.text(),
                primary.name()
            )
        });
        let all = match (comparisons, self.decides_all()) {
            (1, true) => "All metrics can be decided.".to_owned(),
            (_, true) => format!("All metrics of {comparisons} comparisons can be decided."),
            _ => format!(
                "With {needed} repetitions instead of {chosen}, a metric can be decided even if it alone differs."
            ),
        };
        found.unwrap_or_default() + &all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::{describe::tests::plan, knee::model::tests::knee};

    fn plan_with(targets: usize, sizes: usize, repetitions: u32) -> Plan {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect();
        Plan { targets: names(targets), sizes: names(sizes), repetitions, ..plan() }
    }

    #[test]
    fn more_comparisons_take_more_repetitions() {
        let power = plan_power(&plan_with(3, 2, 5), None).expect("something to compare");
        assert_eq!((power.comparisons, power.needed, power.chosen), (6, 8, 5));
        assert!(power.is_enough() && power.describe().starts_with("With 8 repetitions instead of 5, "), "{power:?}");
        let power = plan_power(&plan_with(3, 2, 3), None).expect("something to compare");
        assert_eq!(power.describe(), "A comparison needs 4 repetitions; the plan has 3.");
        let power = plan_power(&plan_with(2, 1, 5), None).expect("something to compare");
        assert!(power.is_enough() && power.needed == 5, "{power:?}");
        assert_eq!(power.describe(), "All metrics can be decided.");
        assert_eq!(plan_power(&plan_with(1, 4, 5), None), None);
    }

    #[test]
    fn the_smallest_difference_is_a_figure_or_a_reason() {
        let text =
            |plan: &Plan, history: &CellHistory| SmallestDifference::new(plan, history).text.replace('\u{a0}', " ");
        let none = CellHistory::default();
        let known = CellHistory { scatter: Some(0.01), has_runs: true, unknown_targets: Vec::new() };
        let two = plan_with(2, 1, 6);
        assert_eq!(text(&two, &none), "not known yet: no earlier runs of these cells");
        let few = CellHistory { has_runs: true, ..CellHistory::default() };
        assert_eq!(text(&two, &few), "not known yet: too few earlier runs of these cells");
        let figure = text(&two, &known);
        assert!(figure.starts_with("from ") && figure.ends_with(" % in throughput"), "{figure}");
        let partly = CellHistory { unknown_targets: vec!["slow".to_owned()], ..known.clone() };
        assert!(text(&two, &partly).ends_with("throughput; slow not known yet"));
        assert!(text(&plan_with(3, 2, 5), &known).ends_with("in throughput; 8 repetitions decide all"));
        assert_eq!(text(&plan_with(3, 2, 3), &known), "none: a comparison needs 4 repetitions");
        assert!(SmallestDifference::new(&plan_with(3, 2, 3), &known).is_too_little);
        assert_eq!(text(&plan_with(1, 2, 5), &known), "none: one target, nothing to compare");
        let search = Plan { knee: Some(knee()), loads: Vec::new(), ..plan_with(1, 1, 2) };
        assert_eq!(text(&search, &known), "5% of the rate, the search’s precision");
    }

    #[test]
    fn past_scatter_determines_the_detectable_effect() {
        let at = |count| plan_power(&plan_with(2, 1, count), Some(0.02)).and_then(|power| power.detectable);
        assert!(at(20) < at(6) && at(6).is_some(), "{:?} {:?}", at(20), at(6));
        assert_eq!(at(3), None, "three repetitions find no difference");
    }
}
