//! The decision: every rule in every cell, by the statistics of the compare page. Pure.
//!
//! A gate runs one test for each cell and rule: is the difference worse than the limit? Regressions are corrected for
//! all tests, as on the compare page, so a gate with many rules does not fail at random more often than one with few.
//! Passing needs no correction: the gate passes only if every check does, and such a conjunction keeps the error rate
//! of a single check (Berger 1982, "Multiparameter hypothesis testing and acceptance sampling").

use std::collections::BTreeMap;

use super::{
    cells::GateCell,
    obstacle::{self, Suspect, obstacle},
    rule::Rule,
    ruling::{Ruling, rule_on},
};
use crate::{
    compare::{
        basis::{Basis, basis},
        comparability::Circumstance,
        comparison_context::ComparisonContext,
        metric::Metric,
        provenance,
        statistics::{self, Estimate, Question as Answer, spending},
    },
    gate::{
        confounders::{confounders, different_work},
        model::{Gate, MissingRepetitions, Outcome, RuleCheck},
    },
    runs::{code::describe_code, model::Run},
    web::format::plural,
};

/// The input of a decision.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// On what the gate fails.
    pub rules: &'a [Rule],
    /// Accepted confounders.
    pub accept: &'a [Circumstance],
    /// Whether suspect runs are used.
    pub suspect: Suspect,
    /// The metric to test first, if it is not the default.
    pub primary: Option<Metric>,
    /// The maximum number of repetitions, if they are added until the gate decides.
    pub max_repeat: Option<usize>,
    /// The runs to compare.
    pub cells: &'a [GateCell],
    /// Context besides the runs.
    pub known: &'a ComparisonContext,
}

/// A cell that the candidate was measured in.
struct Judged<'a> {
    cell: &'a GateCell,
    /// Why it can't be judged.
    obstacle: Option<String>,
    /// The basis of the comparison for each metric; none without values.
    bases: Vec<(Metric, Option<Basis>)>,
}

impl Judged<'_> {
    fn basis(&self, metric: Metric) -> Option<&Basis> {
        self.bases.iter().find(|(of, _)| *of == metric).and_then(|(_, basis)| basis.as_ref())
    }
}

/// The results of the tests, by cell and place of the rule.
type Answers = BTreeMap<(usize, usize), Answer>;

/// Decides. The caller fills in names and URL.
pub fn decide(question: &Question) -> Gate {
    let mut notes = Vec::new();
    let mut judged = Vec::new();
    for cell in question.cells {
        if cell.candidate.is_empty() {
            notes.push(format!("{}: measured for the baseline only, not judged", cell.name));
            continue;
        }
        let work = different_work(cell, question.known);
        let (known_work, work): (Vec<_>, Vec<_>) = work.into_iter().partition(|one| one.accepted.is_some());
        notes.extend(known_work.into_iter().filter_map(|one| {
            let accepted = one.accepted?;
            Some(format!("{}: {}; accepted by {}: {}", cell.name, one.text, accepted.accepted_by, accepted.note))
        }));
        let work = work.into_iter().map(|one| (Circumstance::Work, one.text));
        let (accepted, refused): (Vec<_>, Vec<_>) = confounders(cell, &question.known.environments)
            .into_iter()
            .chain(work)
            .partition(|(one, _)| question.accept.contains(one));
        notes.extend(accepted.into_iter().map(|(_, text)| format!("{}: {text}; accepted", cell.name)));
        if let Some(code) = cell.same_code() {
            let code = describe_code(Some(&code));
            notes.push(format!("{}: same binary: baseline and candidate are {code}", cell.name));
        }
        notes.extend(obstacle::notes(cell, question.suspect));
        let refused: Vec<String> = refused.into_iter().map(|(_, text)| text).collect();
        let confounded = (!refused.is_empty()).then(|| refused.join("; "));
        let obstacle = obstacle(cell, question.suspect).or(confounded);
        judged.push(Judged { cell, obstacle, bases: bases(question, cell) });
    }
    let alpha = alpha(question);
    let answers = answers(question, &judged, alpha);
    let mut checks = Vec::new();
    for (place, judged) in judged.iter().enumerate() {
        for (number, rule) in question.rules.iter().enumerate() {
            checks.push(check(question, rule, judged, answers.get(&(place, number)).copied(), alpha));
        }
    }
    if checks.is_empty() {
        checks = question.rules.iter().map(check_without_runs).collect();
    }
    let outcome = worst(&checks);
    Gate {
        outcome,
        headline: headline(outcome, &checks),
        title: String::new(),
        baseline: String::new(),
        candidate: String::new(),
        more: if outcome == Outcome::CannotSay { more(question, &judged, &checks) } else { None },
        checks,
        alpha,
        imported: provenance::sentence(all_runs(question).filter(|run| run.counts())),
        notes,
        url: String::new(),
    }
}

fn bases(question: &Question, cell: &GateCell) -> Vec<(Metric, Option<Basis>)> {
    let [base, new] = [&cell.baseline, &cell.candidate].map(|runs| question.suspect.usable(runs));
    let mut all: Vec<(Metric, Option<Basis>)> = Vec::new();
    for rule in question.rules {
        if !all.iter().any(|(metric, _)| *metric == rule.metric) {
            all.push((rule.metric, basis(&base, &new, rule.metric, &question.known.history)));
        }
    }
    all
}

/// Returns the error rate that this look at the figures may spend.
fn alpha(question: &Question) -> f64 {
    question.known.looks.alpha(repetitions(question).unwrap_or(0), question.max_repeat.is_some())
}

fn all_runs<'a>(question: &'a Question) -> impl Iterator<Item = &'a Run> {
    question.cells.iter().flat_map(|cell| cell.baseline.iter().chain(&cell.candidate))
}

/// Returns the number of the last repetition.
fn repetitions(question: &Question) -> Option<usize> {
    all_runs(question).filter(|run| run.counts()).map(|run| run.repetition as usize).max()
}

/// Tests every rule in every cell, and corrects all tests together.
fn answers(question: &Question, judged: &[Judged], alpha: f64) -> Answers {
    let (mut places, mut tests) = (Vec::new(), Vec::new());
    for (place, judged) in judged.iter().enumerate().filter(|(_, judged)| judged.obstacle.is_none()) {
        let primary = primary(question, judged);
        for (number, rule) in question.rules.iter().enumerate() {
            let metric = rule.metric;
            let test = |basis: &Basis| basis.test_of_limit(place, metric == primary, metric, rule.share());
            if let Some(test) = judged.basis(metric).and_then(test) {
                places.push((place, number));
                tests.push(test);
            }
        }
    }
    places.into_iter().zip(statistics::correct(&tests, alpha)).collect()
}

/// Returns the metric to test first among those with rules: the default of the load, else the first.
fn primary(question: &Question, judged: &Judged) -> Metric {
    let has = |metric: &Metric| question.rules.iter().any(|rule| rule.metric == *metric);
    let usual = Metric::primary(judged.cell.candidate.iter().chain(&judged.cell.baseline));
    let cost = (usual == Metric::P99Ms).then_some(Metric::CpuMs);
    [question.primary, Some(usual), cost].into_iter().flatten().find(has).unwrap_or(question.rules[0].metric)
}

fn check_without_runs(rule: &Rule) -> RuleCheck {
    RuleCheck {
        rule: rule.to_string(),
        metric: rule.metric,
        setting: "all".to_owned(),
        outcome: Outcome::CannotSay,
        baseline: None,
        candidate: None,
        repetitions: [0, 0],
        needed: None,
        change: None,
        interval: None,
        p: None,
        reason: "baseline and candidate have no runs to compare".to_owned(),
        measured_s: 0.0,
    }
}

fn check(question: &Question, rule: &Rule, judged: &Judged, answer: Option<Answer>, alpha: f64) -> RuleCheck {
    let Judged { cell, obstacle, .. } = judged;
    let [base, new] = [&cell.baseline, &cell.candidate].map(|runs| values(question, rule.metric, runs));
    let middle = |values: &[f64]| rule.metric.middle_of(values.to_vec());
    let basis = judged.basis(rule.metric);
    let ruling = match (obstacle, basis) {
        (Some(obstacle), _) => Ruling::cannot_say(obstacle.clone()),
        (None, Some(basis)) => rule_on(rule, basis, answer, alpha),
        (None, None) => {
            let side = if base.is_empty() { "baseline" } else { "candidate" };
            let runs = [&cell.baseline, &cell.candidate].into_iter().flat_map(|runs| question.suspect.usable(runs));
            let few = rule.metric.too_few_requests(runs);
            Ruling::cannot_say(few.unwrap_or_else(|| format!("no summary of the {side} has this metric")))
        }
    };
    let (outcome, reason) = match (ruling.outcome, obstacle::failed(cell)) {
        (Outcome::Fine, Some(failed)) => (Outcome::CannotSay, format!("{failed}; the other runs: {}", ruling.reason)),
        (outcome, _) => (outcome, ruling.reason),
    };
    let change = basis.and_then(|basis| match basis.estimate(rule.metric, alpha, 0.0) {
        Estimate::Change(change) => Some(change.by),
        Estimate::NoRatio { .. } => None,
    });
    let ratio = change.filter(|_| !rule.metric.is_share()).map(|by| 1.0 + by);
    let baseline = basis.and_then(|basis| basis.base(rule.metric, ratio)).or_else(|| middle(&base));
    let beside = |by: f64| baseline.map(|base| if rule.metric.is_share() { base + by } else { base * (1.0 + by) });
    RuleCheck {
        rule: rule.to_string(),
        metric: rule.metric,
        setting: cell.name.clone(),
        outcome,
        baseline,
        candidate: change.and_then(beside).or_else(|| middle(&new)),
        repetitions: basis.map_or([base.len(), new.len()], Basis::counts),
        needed: ruling.needed,
        change,
        interval: ruling.interval,
        p: answer.filter(|_| obstacle.is_none()).map(|answer| answer.corrected),
        reason,
        measured_s: cell.measured_s() / question.rules.len() as f64,
    }
}

fn values(question: &Question, metric: Metric, runs: &[Run]) -> Vec<f64> {
    question.suspect.usable(runs).into_iter().filter_map(|run| metric.judged_value(run)).collect()
}

/// Returns the repetitions that would help if the plan allows more and one experiment has all cells.
fn more(question: &Question, judged: &[Judged], checks: &[RuleCheck]) -> Option<MissingRepetitions> {
    let max = question.max_repeat?;
    // Without an interval something else than the number of repetitions is in the way. An estimate of more than any
    // plan allows may be wrong: later looks see better.
    let is_hopeless = |check: &&RuleCheck| check.needed.is_none() && check.interval.is_none();
    if checks.iter().filter(|check| check.outcome == Outcome::CannotSay).any(|check| is_hopeless(&check)) {
        return None;
    }
    let runs = || judged.iter().flat_map(|judged| judged.cell.baseline.iter().chain(&judged.cell.candidate));
    let experiment = runs().next()?.experiment.clone()?;
    let is_one = runs().all(|run| run.experiment.as_ref() == Some(&experiment));
    let done = runs().map(|run| run.repetition as usize).max()?;
    let next = spending::next_look(done, max).filter(|_| is_one)?;
    Some(MissingRepetitions { experiment, repetitions: next - done })
}

fn worst(checks: &[RuleCheck]) -> Outcome {
    [Outcome::Regression, Outcome::CannotSay]
        .into_iter()
        .find(|outcome| checks.iter().any(|check| check.outcome == *outcome))
        .unwrap_or(Outcome::Fine)
}

fn headline(outcome: Outcome, checks: &[RuleCheck]) -> String {
    let words = outcome.label();
    let deciding: Vec<&RuleCheck> = checks.iter().filter(|check| check.outcome == outcome).collect();
    let Some(first) = deciding.first() else { return words.to_owned() };
    let more = match deciding.len() {
        1 => String::new(),
        count => format!(" (and {} more)", plural(count - 1, "check")),
    };
    match outcome {
        Outcome::Fine => match checks {
            [one] => format!("{words}: {} is ruled out", one.rule),
            all => format!("{words}: {} passed, each rules its limit out", plural(all.len(), "check")),
        },
        Outcome::Regression => {
            format!("{words}: {} {} at {}{more}", first.metric.name(), first.difference(), first.setting)
        }
        Outcome::CannotSay => format!("{words}: {} at {}{more}", first.reason, first.setting),
    }
}

#[cfg(test)]
mod tests;
