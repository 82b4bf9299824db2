//! A matrix of one metric: settings as lines, subjects as columns, with the best of each line. Pure.

use super::{cell::Row, metric::Metric, selection::Subject, statistics::Leader};
use crate::compare::{notes::listed, stat::Stat};

/// One metric of all cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The shown metric.
    pub metric: Metric,
    /// One line per setting.
    pub lines: Vec<MatrixRow>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixRow {
    /// Label that distinguishes the setting.
    pub label: String,
    /// One figure per subject; none if it has no runs in this setting.
    pub stats: Vec<Option<Stat>>,
    /// The label of the best, or why there is none.
    pub best: String,
}

impl Matrix {
    /// Builds the matrix of a metric.
    pub fn new(subjects: &[Subject], rows: &[Row], metric: Metric) -> Self {
        let line = |row: &Row| {
            let stat =
                |place| row.cells.iter().find(|cell| cell.subject == place).map(|cell| cell.stat(metric).clone());
            MatrixRow {
                label: row.setting.label.clone(),
                stats: (0..subjects.len()).map(stat).collect(),
                best: best(subjects, row, metric),
            }
        };
        Self { metric, lines: rows.iter().map(line).collect() }
    }
}

/// Returns the labels of several cells of a row.
pub(super) fn labels(subjects: &[Subject], row: &Row, places: &[usize]) -> String {
    listed(places.iter().map(|place| subjects[row.cells[*place].subject].label.clone()))
}

fn best(subjects: &[Subject], row: &Row, metric: Metric) -> String {
    if row.cells.iter().all(|cell| cell.stat(metric).spread.is_none()) {
        return "no figures".to_owned();
    }
    let why = match row.leaders.get(&metric) {
        Some(Leader::Of(place)) => return subjects[row.cells[*place].subject].label.clone(),
        Some(Leader::Unclear) => match row.tied_leaders(metric) {
            Some((ahead, _)) => return labels(subjects, row, &ahead),
            None => "no difference found",
        },
        Some(Leader::TooFew(_) | Leader::NotInTurn | Leader::Missing) => "too little data",
        Some(Leader::TooCoarse) => "too coarse",
        Some(Leader::BaselineOnly) => "–",
        Some(Leader::Alone) => "alone",
        Some(Leader::NotComparable) | None => "not comparable",
    };
    why.to_owned()
}
