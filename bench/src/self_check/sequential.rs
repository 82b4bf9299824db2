//! Gates that look, add repetitions and look again: how often they fail wrongly, how soon they decide, and whether a
//! plain gate and the page agree with them afterwards.

use brewbench::{
    compare::{
        comparison_context::ComparisonContext,
        metric::Metric,
        statistics::{Decision, spending::LOOKS},
    },
    gate::{
        model::{Gate, Outcome},
        rule::Rule,
    },
    runs::model::Run,
};
use rand::rngs::StdRng;

use super::{
    compare::{challenger, compare},
    gate::{Gates, Sides, decide_on, rules, sides},
    tally::{Share, rounds},
    world::{BASE, Plan},
};

/// Results of gates that add repetitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looked {
    /// The last look of each.
    pub gates: Gates,
    /// Total repetitions.
    pub repetitions: usize,
    /// Regressions that a plain gate on the same runs does not report.
    pub unconfirmed: Share,
    /// Regressions that the page does not call worse.
    pub unlike_page: Share,
}

impl Looked {
    /// Returns the mean number of repetitions.
    pub fn mean(self) -> f64 {
        self.repetitions as f64 / self.gates.fine.total.max(1) as f64
    }

    fn add(self, other: Self) -> Self {
        Self {
            gates: self.gates.add(other.gates),
            repetitions: self.repetitions + other.repetitions,
            unconfirmed: self.unconfirmed.plus(other.unconfirmed),
            unlike_page: self.unlike_page.plus(other.unlike_page),
        }
    }

    fn at_last_look(gate: &Gate, rules: &[Rule], seen: Sides, known: &ComparisonContext, repetitions: usize) -> Self {
        let mut looked = Self { gates: Gates::from_gate(gate, rules), repetitions, ..Self::default() };
        if gate.outcome == Outcome::Regression {
            let page = compare([seen.0.clone(), seen.1.clone()].concat(), Some(BASE), known);
            let decision = challenger(&page).and_then(|cell| cell.stat(Metric::Rps).decision);
            looked.unlike_page.count(decision != Some(Decision::Worse));
            looked.unconfirmed.count(decide_on(rules, seen, known, None).outcome != Outcome::Regression);
        }
        looked
    }
}

/// Returns the runs of the first repetitions.
fn first((baseline, candidate): &Sides, repetitions: usize) -> Sides {
    let of = |runs: &[Run]| -> Vec<Run> {
        let is_measured = |run: &&Run| run.repetition as usize <= repetitions;
        runs.iter().filter(is_measured).cloned().collect()
    };
    (of(baseline), of(candidate))
}

fn remember(known: &mut ComparisonContext, look: usize) {
    known.looks.before.push(look);
    known.looks.additions += 1;
}

/// Simulates gates that get more repetitions until they decide; plans with a greater maximum continue undecided ones.
pub fn until_decided(texts: &[&str], plan: Plan, maxima: &[usize], count: usize, seed: u64) -> Looked {
    let rules = rules(texts);
    let round = |random: &mut StdRng| {
        let Decided { gate, all, known, repetitions } = decided(&rules, plan, maxima, random);
        Looked::at_last_look(&gate, &rules, first(&all, repetitions), &known, repetitions)
    };
    rounds(count, seed, round).into_iter().fold(Looked::default(), Looked::add)
}

/// The last look of a gate.
pub struct Decided {
    /// The gate.
    pub gate: Gate,
    all: Sides,
    known: ComparisonContext,
    /// Repetitions so far.
    pub repetitions: usize,
}

/// Simulates one such gate.
pub fn decided(rules: &[Rule], plan: Plan, maxima: &[usize], random: &mut StdRng) -> Decided {
    let most = maxima.iter().copied().max().unwrap_or(0);
    let all = sides(Plan { repetitions: most, ..plan }, random);
    let (mut repetitions, mut known) = (LOOKS[0].min(maxima[0]), ComparisonContext::default());
    let mut plans = maxima.iter();
    let mut max = plans.next().copied();
    loop {
        let gate = decide_on(rules, first(&all, repetitions), &known, max);
        if let Some(more) = &gate.more {
            remember(&mut known, repetitions);
            repetitions += more.repetitions;
            continue;
        }
        match plans.next().filter(|_| gate.outcome == Outcome::CannotSay) {
            Some(longer) => max = Some(*longer),
            None => return Decided { gate, all, known, repetitions },
        }
    }
}

/// Simulates gates after each of these numbers of repetitions until one decides, whatever they advise.
pub fn regardless(
    texts: &[&str],
    plan: Plan,
    looks: &[usize],
    max_repeat: Option<usize>,
    count: usize,
    seed: u64,
) -> Looked {
    let rules = rules(texts);
    let round = |random: &mut StdRng| {
        let all = sides(Plan { repetitions: looks.iter().copied().max().unwrap_or(0), ..plan }, random);
        let (mut known, mut now) = (ComparisonContext::default(), looks[0]);
        let mut gate = decide_on(&rules, first(&all, now), &known, max_repeat);
        for look in &looks[1..] {
            if gate.outcome == Outcome::CannotSay {
                remember(&mut known, now);
                now = *look;
                gate = decide_on(&rules, first(&all, now), &known, max_repeat);
            }
        }
        Looked::at_last_look(&gate, &rules, first(&all, now), &known, now)
    };
    rounds(count, seed, round).into_iter().fold(Looked::default(), Looked::add)
}
