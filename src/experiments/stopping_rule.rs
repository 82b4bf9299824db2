//! The stopping rule of adaptive repetitions. Pure.
//!
//! After each pair of blocks it checks the width of the 95 % confidence intervals of the differences: in throughput or,
//! under a given rate, where throughput is fixed, in p99. Only the width decides, not the sign of a difference, so
//! stopping favours no target. Intervals that are still wide after `at_most` repetitions are reported as wide.

use brewbench_wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::share_text;
use crate::{
    compare::{
        basis,
        metric::Metric,
        past::History,
        statistics::{ALPHA, Effect},
    },
    experiments::plan::{Plan, sizes},
    runs::{load, model::Run},
    web::format,
};

/// Fewer repetitions give no interval at all.
pub const MIN_REPETITIONS: u32 = 4;
/// More repetitions take longer than anyone would wait for.
pub const MAX_REPETITIONS: u32 = 100;

/// When to stop adding repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StoppingRule {
    /// Maximum width of the 95 % confidence intervals: 0.02 is 2 %.
    ///
    /// Applies to the ratio of each other target to the first, in each size and load: of throughput or, under a given
    /// rate, of p99.
    pub narrower_than: f64,
    /// Maximum number of repetitions, 4 to 100.
    pub at_most: u32,
}

/// State of a stopping rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Narrowing {
    /// Number of repetitions so far.
    pub repetitions: u32,
    /// Maximum number of repetitions.
    pub at_most: u32,
    /// Maximum width of the intervals.
    pub narrower_than: f64,
    /// Comparison of each other target with the first, in each size and load.
    pub pairs: Vec<Pair>,
}

/// The difference of two targets in one size under one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Pair {
    /// Name of the target.
    pub target: String,
    /// Name of the first target of the plan.
    pub against: String,
    /// Name of the machine size.
    pub size: String,
    /// Description of the load.
    pub load: String,
    /// Compared metric: throughput or, under a given rate, p99.
    pub metric: Metric,
    /// Ratio of its value to that of the first target; null if unknown.
    pub ratio: Option<f64>,
    /// Lower bound of the 95 % confidence interval of the ratio; null with fewer than four repetitions.
    pub low: Option<f64>,
    /// Upper bound of the 95 % confidence interval of the ratio.
    pub high: Option<f64>,
    /// State of the interval.
    pub state: Width,
    /// Number of runs that count, of the target that has fewer.
    #[serde(default)]
    pub repetitions: usize,
}

/// Whether an interval is narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// It is narrow enough.
    Narrow,
    /// It is still too wide.
    Wide,
    /// It can't be computed, and is not waited for: one of the two targets has no run that counts.
    Unknown,
}

/// The next step once all runs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measure these repetitions.
    Repeat {
        /// First repetition.
        first: u32,
        /// Last repetition.
        last: u32,
    },
    /// No more repetitions are needed.
    Enough,
}

impl StoppingRule {
    /// Returns what is wrong with it in a plan, as a sentence.
    pub fn fault(&self, plan: &Plan) -> Option<String> {
        if !(self.narrower_than > 0.0 && self.narrower_than < 1.0) {
            return Some("the width must be more than 0% and less than 100%".to_owned());
        }
        if plan.targets.len() == 1 {
            return Some("needs at least two targets to compare".to_owned());
        }
        let least = plan.repetitions.max(MIN_REPETITIONS);
        if !(least..=MAX_REPETITIONS).contains(&self.at_most) {
            return Some(format!("the maximum must be between {least} and {MAX_REPETITIONS} repetitions"));
        }
        None
    }

    /// Describes the rule: `until intervals are narrower than 2%, at most 20 repetitions`.
    pub fn describe(&self) -> String {
        let Self { narrower_than, at_most } = self;
        format!("until intervals are narrower than {}, at most {at_most} repetitions", share_text(*narrower_than))
    }
}

impl Pair {
    /// Formats the difference with its interval: `+12.3 % (+11.9 % to +12.8 %)`.
    pub fn difference(&self) -> String {
        let change = |ratio: Option<f64>| format::change(ratio.map(|ratio| ratio - 1.0)).text().to_owned();
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} ({} to {})", change(self.ratio), change(Some(low)), change(Some(high)))
            }
            _ => "–".to_owned(),
        }
    }

    /// Returns the width of the interval, as a share of the first target's value.
    pub fn width(&self) -> Option<f64> {
        Some(self.high? - self.low?)
    }

    /// Formats the width.
    pub fn width_text(&self) -> String {
        self.width().map_or_else(|| "–".to_owned(), |width| share_text((width * 10_000.0).round() / 10_000.0))
    }

    /// Describes the state.
    pub fn word(&self) -> &'static str {
        match self.state {
            Width::Narrow => "narrow enough",
            Width::Wide => "still wide",
            Width::Unknown => "no valid runs",
        }
    }
}

/// Computes the state of a plan's stopping rule.
pub fn narrowing(plan: &Plan, until: StoppingRule, runs: &[Run]) -> Narrowing {
    let repetitions = runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    let StoppingRule { narrower_than, at_most } = until;
    let first = plan.targets.first().map_or("", String::as_str);
    Narrowing { repetitions, at_most, narrower_than, pairs: pairs(plan, first, runs, Some(narrower_than)) }
}

/// Compares each other target of a plan with `first`, in each size and load.
///
/// Without a width that is wanted, no interval is narrow.
pub fn pairs(plan: &Plan, first: &str, runs: &[Run], narrower_than: Option<f64>) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for size in sizes(runs) {
        for wanted in &plan.loads {
            let metric = if matches!(wanted, Load::Open(_)) { Metric::P99Ms } else { Metric::Rps };
            let measured = |target: &str| -> Vec<&Run> {
                let same = |run: &&Run| {
                    let sized = run.spec.size.as_ref().is_some_and(|own| own.name == size.name);
                    run.spec.target == *target && sized && run.spec.load.as_ref() == Some(wanted) && run.counts()
                };
                runs.iter().filter(same).collect()
            };
            let base = measured(first);
            for target in plan.targets.iter().filter(|target| *target != first) {
                let other = measured(target);
                let basis = basis::basis(&base, &other, metric, &History::new());
                let known = basis.as_ref().and_then(|basis| basis.effect(metric, ALPHA));
                let width = known.as_ref().and_then(Effect::width);
                let is_measured = basis.is_some();
                pairs.push(Pair {
                    target: target.clone(),
                    against: first.to_owned(),
                    size: size.name.clone(),
                    load: load::exact(wanted).replace('\u{a0}', " "),
                    metric,
                    ratio: known.map(|known| known.ratio),
                    low: known.and_then(|known| known.low),
                    high: known.and_then(|known| known.high),
                    state: match width {
                        _ if !is_measured => Width::Unknown,
                        Some(width) if narrower_than.is_some_and(|wanted| width < wanted) => Width::Narrow,
                        _ => Width::Wide,
                    },
                    repetitions: base.len().min(other.len()),
                });
            }
        }
    }
    pairs
}

impl Narrowing {
    /// Returns the next step.
    pub fn next(&self) -> Step {
        let is_wide = self.pairs.iter().any(|pair| pair.state == Width::Wide);
        if !is_wide || self.repetitions >= self.at_most {
            return Step::Enough;
        }
        // Blocks are measured in pairs.
        let first = self.repetitions + 1;
        let last = if first.is_multiple_of(2) { first } else { (first + 1).min(self.at_most) };
        Step::Repeat { first, last }
    }

    /// Describes the state in a sentence.
    pub fn describe(&self) -> String {
        let Self { repetitions, at_most, narrower_than, pairs } = self;
        let narrow = pairs.iter().filter(|pair| pair.state == Width::Narrow).count();
        format!(
            "{narrow} of {} narrower than {}, after {repetitions} of at most {at_most} repetitions",
            format::plural(pairs.len(), "interval"),
            share_text(*narrower_than),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::describe::tests::plan,
        runs::{
            load::tests::rate,
            testing::{figured, finished},
        },
    };

    const UNTIL: StoppingRule = StoppingRule { narrower_than: 0.02, at_most: 6 };

    fn adaptive_plan() -> Plan {
        Plan { stopping_rule: Some(UNTIL), ..plan() }
    }

    fn measured(target: &str, figures: &[f64]) -> Vec<Run> {
        let run = |(place, rps): (usize, &f64)| {
            let repetition = u32::try_from(place + 1).expect("few");
            figured(finished(target, repetition), |figures| figures.rps = Some(*rps))
        };
        figures.iter().enumerate().map(run).collect()
    }

    #[test]
    fn wide_intervals_need_more_repetitions_and_narrow_ones_are_enough() {
        let noisy =
            [measured("gosherve", &[90.0, 100.0, 115.0, 96.0]), measured("servy", &[170.0, 200.0, 240.0, 180.0])];
        let current = narrowing(&adaptive_plan(), UNTIL, &noisy.concat());
        assert_eq!(
            (current.pairs.len(), current.pairs[0].state, current.next()),
            (1, Width::Wide, Step::Repeat { first: 5, last: 6 })
        );
        assert_eq!(current.describe(), "0 of 1 interval narrower than 2%, after 4 of at most 6 repetitions");
        let quiet = |count| {
            let figures = [100.0, 100.1, 100.2, 100.15];
            let faster = figures.map(|figure| figure * 1.2);
            [measured("gosherve", &figures[..count]), measured("servy", &faster[..count])].concat()
        };
        let few = narrowing(&adaptive_plan(), UNTIL, &quiet(3));
        assert_eq!(
            (few.pairs[0].state, few.next()),
            (Width::Wide, Step::Repeat { first: 4, last: 4 }),
            "three give no interval"
        );
        let current = narrowing(&adaptive_plan(), UNTIL, &quiet(4));
        assert_eq!((current.pairs[0].state, current.next()), (Width::Narrow, Step::Enough));
        let ratio = current.pairs[0].ratio.expect("a ratio");
        assert!((ratio - 1.2).abs() < 0.01, "{ratio}");
        assert!(current.pairs[0].difference().starts_with("+20.0"), "{}", current.pairs[0].difference());
        assert_eq!((current.pairs[0].target.as_str(), current.pairs[0].against.as_str()), ("servy", "gosherve"));
    }

    #[test]
    fn under_a_given_rate_the_p99_decides() {
        let open = Plan { loads: vec![rate(1_000, 10.0)], ..adaptive_plan() };
        let at = |target: &str, figures: [f64; 4]| {
            let run = |(mut run, p99): (Run, f64)| {
                run.spec.load = Some(rate(1_000, 10.0));
                figured(run, |figures| (figures.rps, figures.p99_ms) = (Some(1_000.0), Some(p99)))
            };
            measured(target, &[0.0; 4]).into_iter().zip(figures).map(run).collect::<Vec<_>>()
        };
        let runs = [at("gosherve", [10.0, 14.0, 9.0, 12.0]), at("servy", [10.0, 8.0, 13.0, 11.0])].concat();
        let current = narrowing(&open, UNTIL, &runs);
        assert_eq!((current.pairs[0].metric, current.next()), (Metric::P99Ms, Step::Repeat { first: 5, last: 6 }));
    }

    #[test]
    fn repetitions_stop_at_the_maximum_and_without_results() {
        let noisy =
            [measured("gosherve", &[90.0, 100.0, 115.0, 80.0, 130.0, 99.0]), measured("servy", &[170.0, 200.0])];
        assert_eq!(narrowing(&adaptive_plan(), UNTIL, &noisy.concat()).next(), Step::Enough);
        let alone = narrowing(&adaptive_plan(), UNTIL, &measured("gosherve", &[90.0, 100.0, 115.0]));
        assert_eq!((alone.pairs[0].state, alone.next()), (Width::Unknown, Step::Enough));
        assert_eq!((alone.pairs[0].difference().as_str(), alone.pairs[0].width_text().as_str()), ("–", "–"));
    }

    #[test]
    fn faults_of_a_rule_are_described() {
        assert_eq!(UNTIL.fault(&plan()), None);
        let one = Plan { targets: vec!["servy".to_owned()], ..plan() };
        let many = Plan { repetitions: 9, ..plan() };
        for (until, plan, words) in [
            (StoppingRule { narrower_than: 0.0, ..UNTIL }, plan(), "more than 0%"),
            (StoppingRule { narrower_than: f64::NAN, ..UNTIL }, plan(), "more than 0%"),
            (UNTIL, one, "at least two targets"),
            (UNTIL, many, "between 9 and 100"),
            (StoppingRule { at_most: 3, ..UNTIL }, plan(), "between 4 and 100"),
            (StoppingRule { at_most: 101, ..UNTIL }, plan(), "and 100 repetitions"),
        ] {
            let fault = until.fault(&plan).expect(words);
            assert!(fault.contains(words), "{fault}");
        }
    }
}
