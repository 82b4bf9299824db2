//! Every question that a comparison asks, asked together and answered in the cells. Pure.
//!
//! A question is: do two cells of one row differ in a metric that is judged? All of them stand on one page, so all are
//! corrected for each other, those that only the bold figures answer too.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    Wishes,
    cell::{Cell, Row},
    least::Least,
    metric::Metric,
    noise,
    statistics::{self, ALPHA, Gap, Lead, Question, Ranks, Standing},
};

/// How many answers a page could be wrong in, and what that takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Asked {
    /// Pairs of cells × metrics.
    pub questions: usize,
    /// So many repetitions a side are needed for any answer.
    pub enough: usize,
}

/// Two cells of a row, by their places in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    row: usize,
    metric: Metric,
    one: usize,
    other: usize,
}

/// The answers of one row, by metric and the places of two cells, the smaller first.
#[derive(Default)]
struct Answers(BTreeMap<(Metric, usize, usize), (Question, Standing)>);

impl Answers {
    fn question(&self, metric: Metric, one: usize, other: usize) -> Option<Question> {
        self.0.get(&(metric, one.min(other), one.max(other))).map(|(question, _)| *question)
    }

    /// How a challenger stands against its baseline. One that lacks the figure can't be beaten in it.
    fn standing(&self, metric: Metric, base: usize, challenger: usize) -> Standing {
        let found = self.0.get(&(metric, base.min(challenger), base.max(challenger)));
        let standing = found.map_or(Standing::Unclear, |(_, standing)| *standing);
        if base < challenger { standing } else { standing.turned() }
    }
}

/// Asks, and writes the answers into the cells: differences to the baseline's subject, standings, who leads.
pub fn answer(rows: &mut [Row], base: usize, wishes: &Wishes) -> Asked {
    let is_asked = |row: &Row| row.unlike.is_empty() || wishes.despite_unlike;
    let (pairs, tests) = ask(rows, is_asked);
    // Where all figures are alike nothing is asked.
    let asked = tests.iter().filter(|test| !test.is_flat).count();
    let mut answers: Vec<Answers> = rows.iter().map(|_| Answers::default()).collect();
    for (pair, question) in pairs.iter().zip(statistics::holm(&tests)) {
        let standing = compare(rows, pair, &question, &wishes.least);
        answers[pair.row].0.insert((pair.metric, pair.one, pair.other), (question, standing));
    }
    for (row, answers) in rows.iter_mut().zip(&answers) {
        if is_asked(row) {
            lead(row, answers);
        } else {
            row.leads.extend(Metric::JUDGED.map(|metric| (metric, Lead::Unlike)));
        }
        relate(row, base, answers, asked);
    }
    Asked { questions: asked, enough: statistics::enough(asked) }
}

fn ask(rows: &[Row], is_asked: impl Fn(&Row) -> bool) -> (Vec<Pair>, Vec<Ranks>) {
    let (mut pairs, mut tests) = (Vec::new(), Vec::new());
    for (row, Row { cells, .. }) in rows.iter().enumerate().filter(|(_, row)| is_asked(row)) {
        for metric in Metric::JUDGED {
            let values: Vec<Vec<f64>> = cells.iter().map(|cell| cell.values(metric)).collect();
            for one in 0..cells.len() {
                for other in one + 1..cells.len() {
                    if let Some(test) = statistics::ranks(&values[one], &values[other]) {
                        pairs.push(Pair { row, metric, one, other });
                        tests.push(test);
                    }
                }
            }
        }
    }
    (pairs, tests)
}

/// How the second one of a pair stands against the first.
fn compare(rows: &[Row], pair: &Pair, question: &Question, least: &Least) -> Standing {
    let Some(better) = pair.metric.better() else { return Standing::Unclear };
    let cells = &rows[pair.row].cells;
    // Working out an interval takes longer than anything else here.
    let gap =
        if question.corrected <= ALPHA { gap(&cells[pair.one], &cells[pair.other], pair.metric, least) } else { None };
    statistics::stand(question, gap, better)
}

fn gap(base: &Cell, challenger: &Cell, metric: Metric, least: &Least) -> Option<Gap> {
    let drift = noise::between(base, challenger, metric).unwrap_or_default();
    let least = least.of(metric).max(drift);
    let (base, challenger) = (base.values(metric), challenger.values(metric));
    if metric.is_share() {
        return Gap::of_shares(&base, &challenger, least);
    }
    Some(Gap::of(&statistics::difference(&base, &challenger)?, least))
}

fn lead(row: &mut Row, answers: &Answers) {
    for metric in Metric::JUDGED {
        let rivals: Vec<usize> = (0..row.cells.len()).filter(|place| row.cells[*place].tally.counting() > 0).collect();
        let counts = rivals.iter().map(|place| row.cells[*place].stat(metric).spread.as_ref().map_or(0, |s| s.count));
        let fewest = counts.min().unwrap_or(0);
        let stands = |one: usize, other: usize| answers.standing(metric, rivals[other], rivals[one]);
        let lead = match statistics::lead(rivals.len(), stands, fewest) {
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
fn relate(row: &mut Row, base: usize, answers: &Answers, asked: usize) {
    let Some(base) = row.cells.iter().position(|cell| cell.subject == base) else { return };
    let baseline = row.cells[base].clone();
    for (place, cell) in row.cells.iter_mut().enumerate().filter(|(place, _)| *place != base) {
        for metric in Metric::ALL {
            let (below, values) = (baseline.values(metric), cell.values(metric));
            if below.is_empty() || values.is_empty() {
                continue;
            }
            let past = [&baseline, &*cell].map(|cell| cell.noise.get(&metric).copied());
            let drift = noise::between(&baseline, cell, metric);
            let stat = &mut cell.stats[metric as usize];
            if metric.is_share() {
                stat.points = statistics::points(&below, &values);
            } else {
                stat.difference = statistics::difference(&below, &values);
            }
            if metric.is_judged() {
                stat.standing = Some(Standing::Unlike);
            }
            if let Some(question) = answers.question(metric, base, place) {
                stat.p = Some(question.corrected);
                stat.detectable = statistics::detectable(&below, &values, past, asked);
                stat.drift = drift;
                stat.standing = Some(answers.standing(metric, base, place));
            }
        }
    }
}
