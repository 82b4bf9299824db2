//! The gate on simulated runs: how often it passes or fails wrongly, and how often it cannot decide.

use brewbench::{
    compare::{known::Known, statistics::spending::LOOKS},
    gate::{
        cells::Cell,
        decide::{Question, decide},
        model::{Check, Gate, Outcome},
        obstacle::Suspect,
        rule::Rule,
    },
    runs::model::Run,
};
use rand::rngs::StdRng;

use super::{
    compare::{Nights, two_nights},
    noise::Within,
    tally::{Share, rounds},
    world::{BASE, Metrics, OTHER, Plan, experiment, of_size, only},
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
    /// Total repetitions of gates that add repetitions until they are decided.
    pub repetitions: usize,
}

impl Gates {
    fn from_gate(gate: &Gate, rules: &[Rule]) -> Self {
        let mut gates = Self::default();
        gates.fine.count(gate.outcome == Outcome::Fine);
        gates.regression.count(gate.outcome == Outcome::Regression);
        gates.cannot_say.count(gate.outcome == Outcome::CannotSay);
        let is_open = |check: &Check| {
            let rule = rules.iter().find(|rule| rule.to_string() == check.rule);
            let ends = check.interval.unwrap_or([f64::NEG_INFINITY, f64::INFINITY]);
            rule.is_some_and(|rule| ends.into_iter().any(|end| rule.is_crossed_by(end)))
        };
        gates.open.count(gate.outcome == Outcome::Fine && gate.checks.iter().any(is_open));
        gates
    }

    fn add(mut self, other: Self) -> Self {
        let Self { fine, regression, cannot_say, open, repetitions } = other;
        self.fine = self.fine.plus(fine);
        self.regression = self.regression.plus(regression);
        self.cannot_say = self.cannot_say.plus(cannot_say);
        self.open = self.open.plus(open);
        self.repetitions += repetitions;
        self
    }
}

fn rules(texts: &[&str]) -> Vec<Rule> {
    texts.iter().map(|text| text.parse().expect("a rule of the product's own form")).collect()
}

fn cells(baseline: Vec<Run>, candidate: Vec<Run>) -> Vec<Cell> {
    vec![Cell { name: "cell".to_owned(), baseline, candidate }]
}

fn question<'a>(rules: &'a [Rule], cells: &'a [Cell], known: &'a Known, max_repeat: Option<usize>) -> Question<'a> {
    Question { rules, accept: &[], suspect: Suspect::Excluded, primary: None, max_repeat, cells, known }
}

/// A simulated experiment.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    /// Repetitions, or their maximum.
    pub repetitions: usize,
    /// Factor on the noise of [`Within::LogNormal`].
    pub noisier: f64,
    /// The true factor of the candidate.
    pub factor: f64,
}

fn both(simulated: Simulated, metrics: Metrics, random: &mut StdRng) -> (Vec<Run>, Vec<Run>) {
    let Simulated { repetitions, noisier, factor } = simulated;
    // Scaling the noise of a factor means raising it to a power.
    let plan = Plan { sizes: 1, repetitions, within: Within::LogNormal, metrics, factor: factor.powf(1.0 / noisier) };
    let scaled = |mut run: Run| {
        run.figures.rps = run.figures.rps.map(|value| 10_000.0 * (value / 10_000.0).powf(noisier));
        run.figures.p99_ms = run.figures.p99_ms.map(|value| 16.0 * (value / 16.0).powf(noisier));
        run
    };
    let runs: Vec<Run> = experiment("tonight", plan, 0, 0.0, random).into_iter().map(scaled).collect();
    (only(runs.clone(), BASE), only(runs, OTHER))
}

/// Simulates gates on one experiment.
pub fn interleaved(texts: &[&str], simulated: Simulated, count: usize, seed: u64) -> Gates {
    let rules = rules(texts);
    let metrics = if texts.len() > 1 { Metrics::Five } else { Metrics::One };
    let gate = |random: &mut StdRng| {
        let (baseline, candidate) = both(simulated, metrics, random);
        let cells = cells(baseline, candidate);
        Gates::from_gate(&decide(&question(&rules, &cells, &Known::default(), None)), &rules)
    };
    rounds(count, seed, gate).into_iter().fold(Gates::default(), Gates::add)
}

/// Simulates gates that get more repetitions until they are decided.
pub fn until_decided(texts: &[&str], simulated: Simulated, count: usize, seed: u64) -> Gates {
    let rules = rules(texts);
    let max = simulated.repetitions;
    let gate = |random: &mut StdRng| {
        let (baseline, candidate) = both(simulated, Metrics::One, random);
        let (mut now, mut known) = (LOOKS[0].min(max), Known::default());
        loop {
            let first = |runs: &[Run]| -> Vec<Run> {
                runs.iter().filter(|run| run.repetition as usize <= now).cloned().collect()
            };
            let cells = cells(first(&baseline), first(&candidate));
            let gate = decide(&question(&rules, &cells, &known, Some(max)));
            match &gate.more {
                Some(more) => {
                    known.looks.before.push(now);
                    known.looks.additions += 1;
                    now += more.repetitions;
                }
                None => return Gates { repetitions: now, ..Gates::from_gate(&gate, &rules) },
            }
        }
    };
    rounds(count, seed, gate).into_iter().fold(Gates::default(), Gates::add)
}

/// Simulates gates on experiments of two nights; each machine size is a cell.
pub fn across(texts: &[&str], nights: Nights, count: usize, seed: u64) -> Gates {
    let rules = rules(texts);
    let gate = |random: &mut StdRng| {
        let (baseline, candidate, known) = two_nights(nights, random);
        let cells: Vec<Cell> = (1..=nights.sizes)
            .map(|size| Cell {
                name: size.to_string(),
                baseline: of_size(&baseline, size),
                candidate: of_size(&candidate, size),
            })
            .collect();
        Gates::from_gate(&decide(&question(&rules, &cells, &known, None)), &rules)
    };
    rounds(count, seed, gate).into_iter().fold(Gates::default(), Gates::add)
}
