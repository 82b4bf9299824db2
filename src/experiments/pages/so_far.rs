//! The differences between targets so far, with the width of their intervals. Template: `experiments/_so_far.html`.
//! Pure.
//!
//! It estimates and never names a winner: that is up to the comparison, whose tests are corrected for all questions.

use crate::{
    compare::metric::Metric,
    experiments::{
        plan::{Plan, share_text},
        power::PlanPower,
        stopping_rule::{MIN_REPETITIONS, Narrowing, Pair, Width, pairs},
    },
    runs::model::Run,
    web::{
        card::Tone,
        interval_plot::IntervalPlot,
        series_style::{Mark, Marks},
    },
};

/// Maximum number of pairs that are listed.
const MAX_LISTED: usize = 30;

/// The differences between targets so far.
#[derive(Clone, Debug)]
pub struct SoFar {
    /// The target that the others are compared with.
    pub base: String,
    /// Its colour.
    pub mark: Mark,
    /// The metric, if it is the same for all pairs.
    pub metric: Option<Metric>,
    /// The state of the stopping rule, if there is one.
    pub rule: Option<String>,
    /// The pairs that are listed.
    pub rows: Vec<PairRow>,
    /// Number of further pairs.
    pub unlisted: usize,
    /// Whether the machine sizes differ.
    pub sizes_differ: bool,
    /// Whether the loads differ.
    pub loads_differ: bool,
}

/// Another target compared with the base, in one size under one load.
#[derive(Clone, Debug)]
pub struct PairRow {
    /// The pair.
    pub pair: Pair,
    /// The target's colour.
    pub mark: Mark,
    /// The estimate with its interval; never in the colour of a winner.
    pub plot: Option<IntervalPlot>,
    /// The width that the interval should have.
    pub wanted: Option<String>,
    /// What is missing, or the state of the interval.
    pub state: String,
}

impl SoFar {
    /// Collects the pairs of an experiment. None if it compares nothing, and without a stopping rule once it is over.
    ///
    /// `baseline` is the key of the subject that the page compares with.
    pub fn new(
        plan: &Plan,
        runs: &[Run],
        narrowing: Option<&Narrowing>,
        power: Option<&PlanPower>,
        baseline: Option<&str>,
        marks: &Marks,
        is_over: bool,
    ) -> Option<Self> {
        let (base, all) = match narrowing {
            Some(narrowing) => (plan.targets.first()?.as_str(), narrowing.pairs.clone()),
            None if is_over || plan.scenario.is_empty() => return None,
            None => {
                let base = base(plan, runs, baseline)?;
                (base, pairs(plan, base, runs, None))
            }
        };
        let wanted = narrowing.map(|narrowing| narrowing.narrower_than);
        let needed = power.map_or(0, |power| power.needed).max(least());
        let first = all.first()?;
        let (metric, size, load) = (first.metric, first.size.clone(), first.load.clone());
        let unlisted = all.len().saturating_sub(MAX_LISTED);
        Some(Self {
            base: base.to_owned(),
            mark: marks.of(base),
            metric: all.iter().all(|pair| pair.metric == metric).then_some(metric),
            rule: narrowing.map(Narrowing::describe),
            sizes_differ: all.iter().any(|pair| pair.size != size),
            loads_differ: all.iter().any(|pair| pair.load != load),
            rows: all.into_iter().take(MAX_LISTED).map(|pair| PairRow::new(pair, wanted, needed, marks)).collect(),
            unlisted,
        })
    }
}

impl PairRow {
    fn new(pair: Pair, wanted: Option<f64>, needed: usize, marks: &Marks) -> Self {
        let interval = pair.low.zip(pair.high).map(|(low, high)| (low - 1.0, high - 1.0));
        let plot = pair.ratio.map(|ratio| IntervalPlot { change: ratio - 1.0, interval, tone: Tone::Plain, wanted });
        Self {
            mark: marks.of(&pair.target),
            state: state(&pair, wanted.is_some(), needed),
            wanted: wanted.map(share_text),
            plot,
            pair,
        }
    }
}

fn least() -> usize {
    usize::try_from(MIN_REPETITIONS).unwrap_or(usize::MAX)
}

fn state(pair: &Pair, has_rule: bool, needed: usize) -> String {
    let (count, least) = (pair.repetitions, least());
    match pair.state {
        _ if count < least => {
            let needed = if has_rule { least } else { needed };
            format!("{count} of at least {needed} repetitions; an interval needs {least}")
        }
        _ if pair.width().is_none() => "no interval".to_owned(),
        Width::Narrow => format!("narrow enough after {count} repetitions"),
        _ if has_rule => format!("still wide after {count} repetitions"),
        _ if count < needed => format!("{count} of at least {needed} repetitions"),
        _ => format!("{count} repetitions"),
    }
}

/// Returns the target that the comparison is relative to: the chosen one, or the first by name with a run that counts.
fn base<'a>(plan: &'a Plan, runs: &[Run], baseline: Option<&str>) -> Option<&'a str> {
    let is_chosen =
        |target: &str, key: &str| key.strip_prefix(target).is_some_and(|rest| rest.is_empty() || rest.starts_with('@'));
    let chosen = baseline.and_then(|key| plan.targets.iter().find(|target| is_chosen(target, key)));
    let counts = |target: &&String| runs.iter().any(|run| run.spec.target == **target && run.counts());
    let first = || plan.targets.iter().filter(counts).min().or_else(|| plan.targets.iter().min());
    chosen.or_else(first).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::{
            describe::tests::{plan, queued},
            power::plan_power,
            stopping_rule::{StoppingRule, narrowing},
        },
        runs::testing::{figured, finished},
    };

    fn measured(target: &str, figures: &[f64]) -> Vec<Run> {
        let run = |(place, rps): (usize, &f64)| {
            let repetition = u32::try_from(place + 1).expect("few");
            figured(finished(target, repetition), |figures| figures.rps = Some(*rps))
        };
        figures.iter().enumerate().map(run).collect()
    }

    fn so_far(plan: &Plan, runs: &[Run], is_over: bool) -> Option<SoFar> {
        let narrowing = plan.stopping_rule.map(|until| narrowing(plan, until, runs));
        let power = plan_power(plan, None);
        SoFar::new(plan, runs, narrowing.as_ref(), power.as_ref(), None, &Marks::default(), is_over)
    }

    const FIGURES: [f64; 6] = [100.0, 100.1, 100.2, 100.15, 100.05, 100.12];

    fn runs(repetitions: usize) -> Vec<Run> {
        let faster = FIGURES.map(|figure| figure * 1.2);
        [measured("gosherve", &FIGURES[..repetitions]), measured("servy", &faster[..repetitions])].concat()
    }

    #[test]
    fn every_pair_is_listed_before_the_first_result() {
        let so_far = so_far(&plan(), &[queued("servy"), queued("gosherve")], false).expect("a pair");
        assert_eq!((so_far.base.as_str(), so_far.rows.len(), so_far.rows[0].plot), ("gosherve", 1, None));
        assert!(so_far.rows[0].state.starts_with("0 of at least "), "{}", so_far.rows[0].state);
    }

    #[test]
    fn intervals_narrow_and_never_have_the_colour_of_a_winner() {
        let row = |repetitions| so_far(&plan(), &runs(repetitions), false).expect("a pair").rows.remove(0);
        let few = row(2);
        assert!(few.state.starts_with("2 of at least") && few.state.ends_with("an interval needs 4"), "{}", few.state);
        assert_eq!(few.plot.map(|plot| plot.interval), Some(None));
        let (four, six) = (row(4), row(6));
        assert!(six.pair.width().expect("an interval") < four.pair.width().expect("an interval"));
        assert!([few, four, six].iter().all(|row| row.plot.is_some_and(|plot| plot.tone == Tone::Plain)));
    }

    #[test]
    fn a_stopping_rule_adds_the_wanted_width_and_is_shown_to_the_end() {
        let until = Some(StoppingRule { narrower_than: 0.02, at_most: 6 });
        let adaptive = Plan { stopping_rule: until, ..plan() };
        let over = so_far(&adaptive, &runs(4), true).expect("a pair");
        assert_eq!(over.rows[0].wanted.as_deref(), Some("2%"));
        assert_eq!(over.rows[0].state, "narrow enough after 4 repetitions");
        assert!(over.rule.is_some() && over.rows[0].plot.is_some_and(|plot| plot.wanted == Some(0.02)));
        assert!(so_far(&plan(), &runs(4), true).is_none(), "the comparison says it all");
    }

    #[test]
    fn differences_are_relative_to_the_baseline_of_the_comparison() {
        let chosen = |key| base(&plan(), &runs(1), key).map(str::to_owned);
        assert_eq!(chosen(Some("servy@1.0")).as_deref(), Some("servy"));
        assert_eq!(chosen(Some("serv")).as_deref(), Some("gosherve"));
        assert_eq!(base(&plan(), &measured("servy", &[1.0]), None), Some("servy"));
    }
}
