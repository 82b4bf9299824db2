//! Which target of a setting leads, of three or more, or why none does. Pure.

use super::{Headline, InRow, not_comparable};
use crate::{
    compare::{
        cell::{Cell, Row},
        matrix::labels,
        metric::Metric,
        sentence::{Sentence, difference, summary},
        statistics::{Better, Leader},
    },
    web::{card::Tone, format},
};

impl InRow<'_> {
    /// The leader of a setting, or why there is none.
    pub(super) fn leader(&self) -> Headline {
        let (row, metric) = (self.row, self.primary);
        let figure = |cell: &Cell| summary(cell.stat(metric));
        let Some(foremost) = foremost(row, metric) else {
            return Headline::undecided(
                Sentence::default().strong("Too little data"),
                "No run has the metric.",
                Tone::Doubtful,
            );
        };
        let best = if metric.better() == Some(Better::Higher) { "Highest" } else { "Lowest" };
        let highest = format!("{best}: {}, {}.", self.subjects[foremost.subject].label, figure(foremost));
        let undecided = |what: &str, why: &str, tone| {
            let details = if why.is_empty() { highest.clone() } else { format!("{why} {highest}") };
            Headline::undecided(Sentence::default().strong(what), details, tone)
        };
        match row.leader(metric) {
            Leader::Of(place) => {
                let cell = &row.cells[place];
                let sentence = match row.leads.get(&metric) {
                    Some(lead) => {
                        let rival = self.subject(&row.cells[lead.over]);
                        let (by, than) = difference(metric, lead.by);
                        self.subject(cell).text(" is first, ").strong(&by).text(&format!(" {than} ")).then(rival)
                    }
                    None => self.subject(cell).text(" is ").strong("first"),
                };
                let details = format!("{}.", figure(cell));
                Headline { is_decided: true, ..Headline::undecided(sentence, details, Tone::Good) }
            }
            Leader::Unclear => match row.tied_leaders(metric) {
                Some(tied) => self.tied(&tied),
                None => undecided("No difference found", "", Tone::Plain),
            },
            Leader::Alone | Leader::BaselineOnly => undecided("Compared with the baseline only", "", Tone::Plain),
            Leader::TooCoarse => undecided("Too coarse", "Rounded values can hide the differences.", Tone::Doubtful),
            Leader::Missing => undecided("Too little data", "Not every summary has the metric.", Tone::Doubtful),
            Leader::NotInTurn => undecided("Too little data", "Not all were measured in turn.", Tone::Doubtful),
            Leader::NotComparable => {
                undecided("Not comparable", not_comparable(!row.confounders.is_empty()), Tone::Doubtful)
            }
            Leader::TooFew(fewest) => {
                let few = format!("Two targets have only {} in common.", format::plural(fewest, "repetition"));
                undecided("Too little data", &few, Tone::Doubtful)
            }
        }
    }

    /// Several targets lead: none was found to be better than another of them, and each other one is behind one of them.
    fn tied(&self, (ahead, behind): &(Vec<usize>, Vec<usize>)) -> Headline {
        let labels = |places: &[usize]| labels(self.subjects, self.row, places);
        let word = match self.primary.better() {
            Some(Better::Higher) => self.primary.word(-1.0),
            _ => self.primary.word(1.0),
        };
        let (sentence, same) = match ahead.as_slice() {
            [one] => (Sentence::default().text("No target is better than ").strong(&labels(&[*one])), ""),
            several => {
                (Sentence::default().strong(&labels(several)).text(" lead"), "No difference found between them. ")
            }
        };
        let details = format!("{same}Behind at least one other ({word}): {}.", labels(behind));
        Headline { is_decided: true, ..Headline::undecided(sentence, details, Tone::Plain) }
    }
}

/// Returns the cell with the best figure, whether or not that is a difference.
fn foremost(row: &Row, metric: Metric) -> Option<&Cell> {
    let value = |cell: &&Cell| cell.stat(metric).value.unwrap_or(f64::NAN);
    let known = row.compared_cells().filter(|cell| cell.stat(metric).value.is_some());
    match metric.better() {
        Some(Better::Higher) => known.max_by(|one, other| value(one).total_cmp(&value(other))),
        _ => known.min_by(|one, other| value(one).total_cmp(&value(other))),
    }
}
