//! Every question that a comparison asks, asked together and answered in the cells. Pure.
//!
//! A question is: do two cells of one row differ in a metric that is judged? All of them stand on one page, so all are
//! corrected for each other, those that only the bold figures answer too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    metric::Metric,
    pair::{Answer, Basis, basis},
    statistics::{self, ALPHA, Count, Decision, Lead, Test, power},
};
use crate::{
    compare::{chosen::Options, known::Known},
    metrics,
};

/// How many answers a page could be wrong in, and what that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asked {
    /// Pairs of cells that are compared; they share the error rate.
    pub pairs: usize,
    /// Pairs of cells × metrics.
    pub questions: usize,
    /// The metric that is tested first.
    pub primary: Metric,
    /// Repetitions a side that it takes to answer about the primary metric.
    pub enough: usize,
    /// How often these experiments were extended and compared again, and 1: each look shares the error rate, too.
    pub looks: usize,
}

/// Two cells of a row, by their places in it: the baseline, or the one that comes first, and the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    row: usize,
    metric: Metric,
    base: usize,
    other: usize,
}

/// The answers of one row, by metric, the baseline's place and the other's.
#[derive(Default)]
struct Answers(BTreeMap<(Metric, usize, usize), Answer>);

impl Answers {
    /// How one cell compares with another. One that lacks the metric can't be beaten in it.
    fn decision(&self, metric: Metric, one: usize, than: usize) -> Decision {
        let found = |base, other| self.0.get(&(metric, base, other)).map(|answer| answer.decision);
        found(than, one).or_else(|| found(one, than).map(Decision::reversed)).unwrap_or(Decision::NoDifference)
    }
}

/// Asks, and writes the answers into the cells: effects relative to the baseline's subject, decisions, who leads.
pub fn answer(rows: &mut [Row], base: usize, options: &Options, known: &Known) -> Asked {
    let mut all: Vec<(Pair, Option<Basis>)> = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        all.extend(pairs(place, row, base).map(|pair| (pair, basis_of(row, &pair, known))));
    }
    let is_compared = |pair: &Pair| rows[pair.row].is_comparable(options.allow_confounders);
    let is_question = |pair: &Pair| pair.metric.is_judged() && is_compared(pair);
    let mut tests = Vec::new();
    let mut places = Vec::new();
    for (number, (pair, basis)) in all.iter().enumerate().filter(|(_, (pair, _))| is_question(pair)) {
        if let Some(result) = basis.as_ref().and_then(Basis::test) {
            let is_primary = pair.metric == primary(&rows[pair.row], options);
            tests.push(Test { pair: cells_of(pair), is_primary, result });
            places.push(number);
        }
    }
    let looks = known.looks.max(1);
    let alpha = ALPHA / looks as f64;
    let mut questions: Vec<_> = all.iter().map(|_| None).collect();
    for (number, question) in places.iter().zip(statistics::correct(&tests, alpha)) {
        questions[*number] = Some(question);
    }
    let mut answers: Vec<Answers> = rows.iter().map(|_| Answers::default()).collect();
    for ((pair, basis), question) in all.iter().zip(questions) {
        let Some(basis) = basis else { continue };
        let cells = [pair.base, pair.other].map(|place| &rows[pair.row].cells[place]);
        let answer = if is_compared(pair) {
            basis.answer(question, cells, pair.metric, options)
        } else {
            basis.not_compared(pair.metric)
        };
        answers[pair.row].0.insert((pair.metric, pair.base, pair.other), answer);
    }
    for (row, answers) in rows.iter_mut().zip(&answers) {
        lead(row, answers, options);
        relate(row, base, answers);
    }
    let count = statistics::count(&tests);
    let primary = rows.first().map_or(Metric::Rps, |row| primary(row, options));
    Asked { pairs: count.pairs, questions: count.questions, primary, enough: enough(count, alpha), looks }
}

fn enough(count: Count, alpha: f64) -> usize {
    power::fewest(statistics::primary_level(count) * alpha / ALPHA).unwrap_or(power::MOST_REPETITIONS)
}

/// The metric that is tested first: throughput; where the load fixes that, p99.
pub fn primary(row: &Row, options: &Options) -> Metric {
    options.primary.unwrap_or_else(|| Metric::primary(row.cells.iter().flat_map(|cell| &cell.runs)))
}

/// Numbers pairs of cells, whatever metric they are asked about.
fn cells_of(pair: &Pair) -> usize {
    const MOST_CELLS: usize = 1 << 16;
    (pair.row * MOST_CELLS + pair.base) * MOST_CELLS + pair.other
}

/// All pairs of cells of a row with all metrics; the baseline comes first in its pairs.
fn pairs(row: usize, Row { cells, .. }: &Row, base: usize) -> impl Iterator<Item = Pair> {
    let (count, base) = (cells.len(), cells.iter().position(|cell| cell.subject == base));
    let all = (0..count).flat_map(move |one| (one + 1..count).map(move |other| (one, other)));
    all.flat_map(move |(one, other)| {
        let (first, second) = if base == Some(other) { (other, one) } else { (one, other) };
        let of = move |metric| Pair { row, metric, base: first, other: second };
        let asked = move |metric: &Metric| metric.is_judged() || base == Some(first);
        metrics::compared().filter(asked).map(of)
    })
}

fn basis_of(row: &Row, pair: &Pair, known: &Known) -> Option<Basis> {
    let runs = |place: usize| row.cells[place].counting().collect::<Vec<_>>();
    basis(&runs(pair.base), &runs(pair.other), pair.metric, &known.history)
}

fn lead(row: &mut Row, answers: &Answers, options: &Options) {
    let is_compared = row.is_comparable(options.allow_confounders);
    for metric in metrics::judged() {
        let rivals: Vec<usize> = (0..row.cells.len()).filter(|place| row.cells[*place].tally.counting() > 0).collect();
        let counts = rivals.iter().map(|place| row.cells[*place].judged_values(metric).len());
        let fewest = counts.min().unwrap_or(0);
        let decision = |one: usize, than: usize| answers.decision(metric, rivals[one], rivals[than]);
        let lead = match statistics::lead(rivals.len(), decision, fewest) {
            _ if !is_compared => Lead::NotComparable,
            Lead::Of(place) => Lead::Of(rivals[place]),
            Lead::Unclear | Lead::TooFew(_) if fewest == 0 => Lead::Missing,
            lead => lead,
        };
        if let Lead::Of(place) = lead {
            row.cells[place].stats[metric as usize].best = true;
        }
        row.leads.insert(metric, lead);
    }
}

/// Relates every cell of a row to the baseline's.
fn relate(row: &mut Row, base: usize, answers: &Answers) {
    let Some(base) = row.cells.iter().position(|cell: &Cell| cell.subject == base) else { return };
    for (place, cell) in row.cells.iter_mut().enumerate().filter(|(place, _)| *place != base) {
        for metric in metrics::compared() {
            let Some(answer) = answers.0.get(&(metric, base, place)) else { continue };
            let stat = &mut cell.stats[metric as usize];
            stat.effect = answer.effect;
            stat.points = answer.points;
            if metric.is_judged() {
                stat.p = answer.p;
                stat.detectable = answer.detectable;
                stat.apart = answer.apart;
                stat.decision = Some(answer.decision);
            }
        }
    }
}
