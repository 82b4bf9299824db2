//! The gate on simulated runs: how often it passes or fails wrongly, and how often it cannot decide.

use brewbench::{
    compare::comparison_context::ComparisonContext,
    gate::{
        cells::GateCell,
        decide::{Question, decide},
        model::{Gate, Outcome, RuleCheck},
        obstacle::Suspect,
        rule::Rule,
    },
    runs::model::Run,
};
use rand::rngs::StdRng;

use super::{
    compare::{Nights, two_nights},
    tally::{Share, rounds},
    world::{BASE, OTHER, Plan, at_ms, experiment, of_size, only},
};

/// Results of simulated gates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gates {
    /// Passed.
    pub fine: Share,
    /// Failed.
    pub regression: Share,
    /// Undecided.
    pub cannot_say: Share,
    /// Passed although an interval extends beyond its rule's limit. Must be zero.
    pub open: Share,
}

impl Gates {
    /// Counts one gate.
    pub fn from_gate(gate: &Gate, rules: &[Rule]) -> Self {
        let mut gates = Self::default();
        gates.fine.count(gate.outcome == Outcome::Fine);
        gates.regression.count(gate.outcome == Outcome::Regression);
        gates.cannot_say.count(gate.outcome == Outcome::CannotSay);
        let is_open = |check: &RuleCheck| {
            let rule = rules.iter().find(|rule| rule.to_string() == check.rule);
            let ends = check.interval.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            rule.is_some_and(|rule| ends.into_iter().any(|end| rule.is_crossed_by(end)))
        };
        gates.open.count(gate.outcome == Outcome::Fine && gate.checks.iter().any(is_open));
        gates
    }

    /// Adds the gates of another round.
    #[must_use]
    pub fn add(mut self, other: Self) -> Self {
        let Self { fine, regression, cannot_say, open } = other;
        self.fine = self.fine.plus(fine);
        self.regression = self.regression.plus(regression);
        self.cannot_say = self.cannot_say.plus(cannot_say);
        self.open = self.open.plus(open);
        self
    }
}

/// Parses rules.
pub fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().expect("a rule of the product's own form")).collect()
}

fn question<'a>(
    rules: &'a [Rule],
    cells: &'a [GateCell],
    known: &'a ComparisonContext,
    max_repeat: Option<usize>,
) -> Question<'a> {
    Question { rules, accept: &[], suspect: Suspect::Excluded, primary: None, max_repeat, cells, known }
}

/// The runs of the baseline and of the candidate.
pub type Sides = (Vec<Run>, Vec<Run>);

/// Simulates the runs of both sides, measured in turn.
pub fn sides(plan: Plan, random: &mut StdRng) -> Sides {
    let runs = experiment("tonight", plan, at_ms(0, 0), 0.0, random);
    (only(runs.clone(), BASE), only(runs, OTHER))
}

/// Returns the gate on one cell; with `max_repeat` one that adds repetitions until it decides.
pub fn decide_on(
    rules: &[Rule],
    (baseline, candidate): Sides,
    known: &ComparisonContext,
    max_repeat: Option<usize>,
) -> Gate {
    let cells = [GateCell { name: "cell".to_owned(), baseline, candidate }];
    decide(&question(rules, &cells, known, max_repeat))
}

/// Simulates gates on one experiment.
pub fn interleaved(texts: &[&str], plan: Plan, count: usize, seed: u64) -> Gates {
    let rules = rules(texts);
    let gate = |random: &mut StdRng| {
        Gates::from_gate(&decide_on(&rules, sides(plan, random), &ComparisonContext::default(), None), &rules)
    };
    rounds(count, seed, gate).into_iter().fold(Gates::default(), Gates::add)
}

/// Simulates gates on experiments of two nights; each machine size is a cell.
pub fn across(texts: &[&str], nights: Nights, count: usize, seed: u64) -> Gates {
    let rules = rules(texts);
    let gate = |random: &mut StdRng| {
        let (baseline, candidate, known) = two_nights(nights, random);
        let cells: Vec<GateCell> = (1..=nights.sizes)
            .map(|size| GateCell {
                name: size.to_string(),
                baseline: of_size(&baseline, size),
                candidate: of_size(&candidate, size),
            })
            .collect();
        Gates::from_gate(&decide(&question(&rules, &cells, &known, None)), &rules)
    };
    rounds(count, seed, gate).into_iter().fold(Gates::default(), Gates::add)
}
