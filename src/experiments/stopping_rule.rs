//! Repetitions until the differences are known well enough. Pure.
//!
//! After each pair of blocks it is asked how wide the 95 % intervals of the differences still are: of those in
//! throughput, and under a given rate, which is everybody's throughput, of those in the p99. The width alone decides,
//! not on which side of nothing a difference lies: so stopping favours no target. What is still wide at `at_most`
//! repetitions stays so, and is told.

use brewbench_agent::wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::plan::share_text;
use crate::{
    compare::{
        metric::Metric,
        pair,
        past::History,
        statistics::{ALPHA, Effect},
    },
    experiments::plan::{Plan, sizes},
    runs::{load, model::Run},
    web::format,
};

/// Fewer give no interval at all.
pub const LEAST_REPETITIONS: u32 = 4;
/// More than this is no measurement that anybody waits for.
pub const MOST_REPETITIONS: u32 = 100;

/// When there are enough repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Once the 95 % interval of the ratio of throughputs, under a given rate of the p99, of each other target to the first
    /// in each size and load, is narrower than this: 0.02 is 2 %.
    pub narrower_than: f64,
    /// Or once there are so many, 4 to 100.
    pub at_most: u32,
}

/// How far that is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Narrowing {
    /// Repetitions that there are.
    pub repetitions: u32,
    /// The most that there will be.
    pub at_most: u32,
    /// How narrow intervals are to be.
    pub narrower_than: f64,
    /// Each other target against the first, in each size and load.
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
    /// How hard, in words.
    pub load: String,
    /// What is held against each other: throughput, or p99 under a given rate.
    pub metric: Metric,
    /// The ratio of its figure to that of the other; null where it is not known.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio begins here; null with fewer than four repetitions.
    pub low: Option<f64>,
    /// And ends here.
    pub high: Option<f64>,
    /// How it stands.
    pub state: Width,
}

/// Whether an interval is narrow enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Width {
    /// It is.
    Narrow,
    /// Not yet.
    Wide,
    /// Nobody waits for it: one of the two has no run that counts.
    Unknown,
}

/// What follows once all runs have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// These repetitions.
    Repeat {
        /// From this one.
        first: u32,
        /// To this one.
        last: u32,
    },
    /// Nothing any more.
    Enough,
}

impl Until {
    /// What is wrong with it in a plan, as a sentence.
    pub fn fault(&self, plan: &Plan) -> Option<String> {
        if !(self.narrower_than > 0.0 && self.narrower_than < 1.0) {
            return Some("the width is more than 0% and less than 100%".to_owned());
        }
        if plan.targets.len() < 2 {
            return Some("there is no second target to tell a difference from the first".to_owned());
        }
        let least = plan.repetitions.max(LEAST_REPETITIONS);
        if !(least..=MOST_REPETITIONS).contains(&self.at_most) {
            return Some(format!("at most between {least} and {MOST_REPETITIONS} repetitions"));
        }
        None
    }

    /// In words: `until intervals are narrower than 2%, at most 20 repetitions`.
    pub fn words(&self) -> String {
        let Self { narrower_than, at_most } = self;
        format!("until intervals are narrower than {}, at most {at_most}", share_text(*narrower_than))
    }
}

impl Pair {
    /// The difference with its interval: `+12.3 % (+11.9 % to +12.8 %)`.
    pub fn difference(&self) -> String {
        let change = |ratio: Option<f64>| format::change(ratio.map(|ratio| ratio - 1.0)).text().to_owned();
        match (self.low, self.high) {
            (Some(low), Some(high)) => {
                format!("{} ({} to {})", change(self.ratio), change(Some(low)), change(Some(high)))
            }
            _ => "–".to_owned(),
        }
    }

    /// How wide the interval is, in percent of the first target's throughput.
    pub fn width(&self) -> Option<f64> {
        Some(self.high? - self.low?)
    }

    /// The same as a figure.
    pub fn width_text(&self) -> String {
        self.width().map_or_else(|| "–".to_owned(), |width| share_text((width * 10_000.0).round() / 10_000.0))
    }

    /// The state in a word.
    pub fn word(&self) -> &'static str {
        match self.state {
            Width::Narrow => "narrow enough",
            Width::Wide => "still wide",
            Width::Unknown => "no figures that count",
        }
    }
}

/// How far the runs of a plan are.
pub fn narrowing(plan: &Plan, until: Until, runs: &[Run]) -> Narrowing {
    let repetitions = runs.iter().map(|run| run.repetition).max().unwrap_or(0);
    let Until { narrower_than, at_most } = until;
    let mut pairs = Vec::new();
    let Some((first, others)) = plan.targets.split_first() else {
        return Narrowing { repetitions, at_most, narrower_than, pairs };
    };
    for size in sizes(runs) {
        for wanted in &plan.loads {
            let metric = if matches!(wanted, Load::Open(_)) { Metric::P99Ms } else { Metric::Rps };
            let measured = |target: &str| -> Vec<&Run> {
                let same = |run: &&Run| {
                    let sized = run.size.as_ref().is_some_and(|own| own.name == size.name);
                    run.target == *target && sized && run.load.as_ref() == Some(wanted) && run.counts()
                };
                runs.iter().filter(same).collect()
            };
            let base = measured(first);
            for target in others {
                let basis = pair::basis(&base, &measured(target), metric, &History::new());
                let known = basis.as_ref().and_then(|basis| basis.effect(metric, ALPHA));
                let width = known.as_ref().and_then(Effect::width);
                let is_measured = basis.is_some();
                pairs.push(Pair {
                    target: target.clone(),
                    against: first.clone(),
                    size: size.name.clone(),
                    load: load::exact(wanted).replace('\u{a0}', " "),
                    metric,
                    ratio: known.map(|known| known.ratio),
                    low: known.and_then(|known| known.low),
                    high: known.and_then(|known| known.high),
                    state: match width {
                        _ if !is_measured => Width::Unknown,
                        Some(width) if width < narrower_than => Width::Narrow,
                        _ => Width::Wide,
                    },
                });
            }
        }
    }
    Narrowing { repetitions, at_most, narrower_than, pairs }
}

impl Narrowing {
    /// What follows.
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

    /// In a sentence.
    pub fn told(&self) -> String {
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

    const UNTIL: Until = Until { narrower_than: 0.02, at_most: 6 };

    fn asked() -> Plan {
        Plan { until: Some(UNTIL), ..plan() }
    }

    fn measured(target: &str, figures: &[f64]) -> Vec<Run> {
        let run = |(place, rps): (usize, &f64)| {
            let repetition = u32::try_from(place + 1).expect("few");
            figured(finished(target, repetition), |figures| figures.rps = Some(*rps))
        };
        figures.iter().enumerate().map(run).collect()
    }

    #[test]
    fn wide_intervals_ask_for_more_and_narrow_ones_are_enough() {
        let noisy =
            [measured("gosherve", &[90.0, 100.0, 115.0, 96.0]), measured("servy", &[170.0, 200.0, 240.0, 180.0])];
        let told = narrowing(&asked(), UNTIL, &noisy.concat());
        assert_eq!(
            (told.pairs.len(), told.pairs[0].state, told.next()),
            (1, Width::Wide, Step::Repeat { first: 5, last: 6 })
        );
        assert_eq!(told.told(), "0 of 1 interval narrower than 2%, after 4 of at most 6 repetitions");
        let quiet = |count| {
            let figures = [100.0, 100.1, 100.2, 100.15];
            let faster = figures.map(|figure| figure * 1.2);
            [measured("gosherve", &figures[..count]), measured("servy", &faster[..count])].concat()
        };
        let few = narrowing(&asked(), UNTIL, &quiet(3));
        assert_eq!(
            (few.pairs[0].state, few.next()),
            (Width::Wide, Step::Repeat { first: 4, last: 4 }),
            "three give no interval"
        );
        let told = narrowing(&asked(), UNTIL, &quiet(4));
        assert_eq!((told.pairs[0].state, told.next()), (Width::Narrow, Step::Enough));
        let ratio = told.pairs[0].ratio.expect("a ratio");
        assert!((ratio - 1.2).abs() < 0.01, "{ratio}");
        assert!(told.pairs[0].difference().starts_with("+20.0"), "{}", told.pairs[0].difference());
        assert_eq!((told.pairs[0].target.as_str(), told.pairs[0].against.as_str()), ("servy", "gosherve"));
    }

    #[test]
    fn under_a_given_rate_the_p99_is_what_has_to_be_known() {
        let open = Plan { loads: vec![rate(1_000, 10.0)], ..asked() };
        let at = |target: &str, figures: [f64; 4]| {
            let run = |(run, p99): (Run, f64)| Run {
                load: Some(rate(1_000, 10.0)),
                ..figured(run, |figures| (figures.rps, figures.p99_ms) = (Some(1_000.0), Some(p99)))
            };
            measured(target, &[0.0; 4]).into_iter().zip(figures).map(run).collect::<Vec<_>>()
        };
        let runs = [at("gosherve", [10.0, 14.0, 9.0, 12.0]), at("servy", [10.0, 8.0, 13.0, 11.0])].concat();
        let told = narrowing(&open, UNTIL, &runs);
        assert_eq!((told.pairs[0].metric, told.next()), (Metric::P99Ms, Step::Repeat { first: 5, last: 6 }));
    }

    #[test]
    fn it_ends_at_the_most_and_where_there_are_no_figures() {
        let noisy =
            [measured("gosherve", &[90.0, 100.0, 115.0, 80.0, 130.0, 99.0]), measured("servy", &[170.0, 200.0])];
        assert_eq!(narrowing(&asked(), UNTIL, &noisy.concat()).next(), Step::Enough);
        let alone = narrowing(&asked(), UNTIL, &measured("gosherve", &[90.0, 100.0, 115.0]));
        assert_eq!((alone.pairs[0].state, alone.next()), (Width::Unknown, Step::Enough));
        assert_eq!((alone.pairs[0].difference().as_str(), alone.pairs[0].width_text().as_str()), ("–", "–"));
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(UNTIL.fault(&plan()), None);
        let one = Plan { targets: vec!["servy".to_owned()], ..plan() };
        let many = Plan { repetitions: 9, ..plan() };
        for (until, plan, words) in [
            (Until { narrower_than: 0.0, ..UNTIL }, plan(), "more than 0%"),
            (Until { narrower_than: f64::NAN, ..UNTIL }, plan(), "more than 0%"),
            (UNTIL, one, "no second target"),
            (UNTIL, many, "at most between 9 and 100"),
            (Until { at_most: 3, ..UNTIL }, plan(), "at most between 4 and 100"),
            (Until { at_most: 101, ..UNTIL }, plan(), "and 100 repetitions"),
        ] {
            let fault = until.fault(&plan).expect(words);
            assert!(fault.contains(words), "{fault}");
        }
    }
}
