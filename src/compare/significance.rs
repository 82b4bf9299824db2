//! Tests all questions of a comparison together and writes the answers into the cells. Pure.
//!
//! A question is whether two cells of one row differ in a judged metric. All questions of a page are corrected for each
//! other, including those that only decide the winner.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    basis::{Basis, basis},
    cell::{Cell, Lead, Row},
    metric::Metric,
    pair::PairAnswer,
    stat::Stat,
    statistics::{self, Decision, Leader, power},
};
use crate::{
    compare::{chosen::Options, comparison_context::ComparisonContext, more::MoreRepetitions},
    metrics,
};

/// The number of questions on a page, and what answering them requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Questions {
    /// Number of compared pairs of cells.
    pub pairs: usize,
    /// Number of questions: pairs of cells × metrics. They share the error rate.
    pub questions: usize,
    /// The metric that is tested first.
    pub primary: Metric,
    /// Repetitions on each side with which every question can be decided, whatever the others show.
    pub enough: usize,
    /// Number of looks: 1 plus how often repetitions were added. Looks share the error rate, too.
    pub looks: usize,
}

/// The subject that differences are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// Index of the subject.
    pub subject: usize,
    /// Whether a user chose it.
    pub is_chosen: bool,
}

/// Two cells of a row by index: the baseline or the first of the two, and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    row: usize,
    metric: Metric,
    base: usize,
    other: usize,
}

/// The answers of one row.
#[derive(Default)]
struct Answers {
    /// By metric and the indexes of both cells.
    pairs: BTreeMap<(Metric, usize, usize), PairAnswer>,
    /// Figures of baselines, by metric and index.
    levels: BTreeMap<(Metric, usize), f64>,
}

impl Answers {
    /// Decision on one cell compared with another; none if one lacks the metric.
    fn decision(&self, metric: Metric, one: usize, than: usize) -> Option<Decision> {
        let found = |base, other| self.pairs.get(&(metric, base, other)).and_then(|answer| answer.decision);
        found(than, one).or_else(|| found(one, than).map(Decision::reversed))
    }

    /// The fewest repetitions of a pair of these cells that has too few.
    fn fewest(&self, metric: Metric, rivals: &[usize]) -> usize {
        let is_its =
            |(of, one, other): &(Metric, usize, usize)| *of == metric && rivals.contains(one) && rivals.contains(other);
        let few =
            self.pairs.iter().filter(|(place, answer)| is_its(place) && answer.decision == Some(Decision::TooFew));
        few.map(|(_, answer)| answer.compared[0].min(answer.compared[1])).min().unwrap_or(0)
    }

    /// Difference of one cell from another, as a share or in points; none if unknown.
    fn by(&self, metric: Metric, one: usize, than: usize) -> Option<f64> {
        let found = |base, other, is_reversed| self.pairs.get(&(metric, base, other)).and_then(|it| it.by(is_reversed));
        found(than, one, false).or_else(|| found(one, than, true))
    }

    /// The lead of a cell over the rival that is closest to it.
    fn lead(&self, metric: Metric, leader: usize, rivals: &[usize]) -> Option<Lead> {
        let others = rivals.iter().filter(|rival| **rival != leader);
        let leads = others.filter_map(|rival| Some(Lead { over: *rival, by: self.by(metric, leader, *rival)? }));
        leads.min_by(|one, other| one.by.abs().total_cmp(&other.by.abs()))
    }
}

/// Tests all questions and writes effects, decisions and leaders into the cells.
///
/// With a chosen baseline only comparisons with it are asked.
pub fn answer(rows: &mut [Row], base: Base, options: &Options, known: &ComparisonContext) -> Questions {
    let mut all: Vec<(Pair, Option<Basis>)> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        all.extend(pairs(place, row, base).map(|pair| (pair, basis_of(row, &pair, known))));
    }
    let is_compared = |pair: &Pair| rows[pair.row].are_comparable([pair.base, pair.other], options.allow_confounders);
    let is_question = |pair: &Pair| pair.metric.is_judged() && is_compared(pair);
    let mut tests = Vec::new();
    let mut places = Vec::new();
    for (number, (pair, basis)) in all.iter().enumerate().filter(|(_, (pair, _))| is_question(pair)) {
        let is_primary = pair.metric == primary(&rows[pair.row], options);
        if let Some(test) = basis.as_ref().and_then(|basis| basis.test(pair_number(pair), is_primary)) {
            tests.push(test);
            places.push(number);
        }
    }
    let repetitions = rows.iter().flat_map(|row| &row.cells).flat_map(Cell::counting).map(|run| run.repetition).max();
    let alpha = known.looks.alpha(repetitions.unwrap_or(0) as usize, false);
    let mut questions: Vec<_> = all.iter().map(|_| None).collect();
    for (number, question) in places.iter().zip(statistics::correct(&tests, alpha)) {
        questions[*number] = Some(question);
    }
    let mut answers: Vec<Answers> = rows.iter().map(|_| Answers::default()).collect();
    let mut compared: BTreeMap<_, Vec<(&Basis, PairAnswer)>> = BTreeMap::new();
    for ((pair, basis), question) in all.iter().zip(questions) {
        let Some(basis) = basis else { continue };
        let cells = [pair.base, pair.other].map(|place| &rows[pair.row].cells[place]);
        let answer = if is_compared(pair) {
            PairAnswer::new(basis, question, cells, pair.metric, options)
        } else {
            PairAnswer::not_compared(basis)
        };
        answers[pair.row].pairs.insert((pair.metric, pair.base, pair.other), answer);
        compared.entry((pair.row, pair.metric, pair.base)).or_default().push((basis, answer));
    }
    for ((row, metric, base), compared) in &compared {
        answers[*row].levels.extend(level(*metric, compared).map(|level| ((*metric, *base), level)));
    }
    let count = statistics::count(&tests);
    let is_at_once = |basis: &Basis| basis.order() == power::Order::AtOnce;
    let is_at_once = all.iter().filter_map(|(_, basis)| basis.as_ref()).any(is_at_once);
    let order = if is_at_once { power::Order::AtOnce } else { power::Order::InTurn };
    let enough = power::fewest(count.deciding_level(alpha), order).unwrap_or(power::MAX_REPETITIONS);
    for (row, answers) in rows.iter_mut().zip(&answers) {
        lead(row, base, answers, options);
        relate(row, base.subject, answers, options, enough);
    }
    let primary = rows.first().map_or(Metric::Rps, |row| primary(row, options));
    Questions { pairs: count.pairs, questions: count.questions, primary, enough, looks: known.looks.count() }
}

/// Returns the metric that is tested first: throughput, or p99 if the load fixes the throughput.
pub fn primary(row: &Row, options: &Options) -> Metric {
    options.primary.unwrap_or_else(|| Metric::primary(row.cells.iter().flat_map(|cell| &cell.runs)))
}

/// Returns a number for a pair of cells that does not depend on the metric.
fn pair_number(pair: &Pair) -> usize {
    const MAX_CELLS: usize = 1 << 16;
    (pair.row * MAX_CELLS + pair.base) * MAX_CELLS + pair.other
}

/// Returns the asked pairs of cells of a row with all metrics; the baseline comes first in its pairs.
fn pairs(row: usize, Row { cells, .. }: &Row, chosen: Base) -> impl Iterator<Item = Pair> {
    let (count, base) = (cells.len(), cells.iter().position(|cell| cell.subject == chosen.subject));
    let is_asked = move |pair: &(usize, usize)| !chosen.is_chosen || base == Some(pair.0) || base == Some(pair.1);
    let all = (0..count).flat_map(move |one| (one + 1..count).map(move |other| (one, other))).filter(is_asked);
    all.flat_map(move |(one, other)| {
        let (first, second) = if base == Some(other) { (other, one) } else { (one, other) };
        let of = move |metric| Pair { row, metric, base: first, other: second };
        let is_needed = move |metric: &Metric| metric.is_judged() || base == Some(first);
        metrics::compared().filter(is_needed).map(of)
    })
}

fn basis_of(row: &Row, pair: &Pair, known: &ComparisonContext) -> Option<Basis> {
    let runs = |place: usize| row.cells[place].counting().collect::<Vec<_>>();
    basis(&runs(pair.base), &runs(pair.other), pair.metric, &known.history)
}

/// Finds the leader of each metric among the cells that may be compared with each other.
fn lead(row: &mut Row, base: Base, answers: &Answers, options: &Options) {
    let rivals = row.comparable_rivals(base.subject, options.allow_confounders);
    let has_base = rivals.iter().any(|place| row.cells[*place].subject == base.subject);
    let is_any_left_out = rivals.len() < row.compared_cells().count();
    for metric in metrics::judged() {
        let decision = |one: usize, than: usize| answers.decision(metric, rivals[one], rivals[than]);
        let lead = match statistics::lead(rivals.len(), decision, answers.fewest(metric, &rivals)) {
            Leader::Alone if is_any_left_out => Leader::NotComparable,
            Leader::Of(place) => Leader::Of(rivals[place]),
            _ if base.is_chosen && !has_base => Leader::NotComparable,
            _ if base.is_chosen && rivals.len() > 2 => Leader::BaselineOnly,
            lead => lead,
        };
        if let Leader::Of(place) = lead {
            row.cells[place].stats[metric as usize].best = true;
            row.leads.extend(answers.lead(metric, place, &rivals).map(|lead| (metric, lead)));
        }
        if lead == Leader::Unclear {
            let is_worse =
                |place: usize, other: usize| answers.decision(metric, other, place) == Some(Decision::Better);
            let is_ahead = |place: &usize| !rivals.iter().any(|other| is_worse(*place, *other));
            row.ahead.insert(metric, rivals.iter().copied().filter(is_ahead).collect());
        }
        row.leaders.insert(metric, lead);
    }
}

/// Writes the answers relative to the baseline into the cells of a row.
fn relate(row: &mut Row, base: usize, answers: &Answers, options: &Options, enough: usize) {
    let Some(base) = row.cells.iter().position(|cell| cell.subject == base) else { return };
    for metric in metrics::compared() {
        let stat = &mut row.cells[base].stats[metric as usize];
        stat.value = answers.levels.get(&(metric, base)).copied().or(stat.value);
        let shown = stat.value;
        for (place, cell) in row.cells.iter_mut().enumerate().filter(|(place, _)| *place != base) {
            let Some(answer) = answers.pairs.get(&(metric, base, place)) else { continue };
            let stat = &mut cell.stats[metric as usize];
            stat.value = shown.and_then(|base| answer.beside(base)).or(stat.value);
            stat.effect = answer.effect;
            stat.points = answer.points;
            if metric.is_judged() {
                judge(stat, answer, options.min_effect.for_metric(metric), enough);
            }
        }
    }
}

/// Returns the figure that a cell shows as a baseline: the median of the compared runs of all cells, each without its
/// ratio to this one. So no cell shows a figure that it never had, whatever the scatter of the others.
fn level(metric: Metric, compared: &[(&Basis, PairAnswer)]) -> Option<f64> {
    let ratio = |answer: &PairAnswer| answer.effect.map(|effect| effect.ratio);
    let values =
        compared.iter().enumerate().flat_map(|(place, (basis, answer))| basis.aligned(ratio(answer), place == 0));
    metric.middle_of(values.collect())
}

/// Writes the answer to a question; `enough` repetitions would decide every question.
fn judge(stat: &mut Stat, answer: &PairAnswer, min_effect: f64, enough: usize) {
    let fewest = answer.compared[0].min(answer.compared[1]);
    stat.p = answer.p;
    stat.detectable = answer.detectable;
    stat.rounding = answer.rounding;
    stat.min_effect = Some(min_effect);
    stat.compared = Some(answer.compared);
    stat.needed = (answer.decision == Some(Decision::TooFew)).then(|| enough.max(fewest + 1));
    stat.more = match (answer.decision, stat.needed) {
        (Some(Decision::TooFew), Some(needed)) => Some(MoreRepetitions { repetitions: needed - fewest, shows: None }),
        _ => answer.more,
    };
    stat.apart = answer.apart;
    stat.decision = answer.decision;
}
