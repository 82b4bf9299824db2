//! The figures of one setting with a line per metric and a column per subject. Pure.

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::Subject,
    stat::Stat,
    view::Comparison,
};
use crate::web::{card::Tone, interval_plot::IntervalPlot};

/// One metric of all subjects.
#[derive(Debug)]
pub struct MetricLine<'a> {
    /// The metric.
    pub metric: Metric,
    /// The figures in the order of [`Comparison::in_order`]; none for a subject without runs in the setting.
    pub stats: Vec<Option<&'a Stat>>,
    /// The difference of the challenger from the baseline, if it is known.
    pub difference: Option<ShownDifference<'a>>,
}

/// A difference as a table shows it.
#[derive(Debug)]
pub struct ShownDifference<'a> {
    /// The figure of the challenger.
    pub stat: &'a Stat,
    /// The difference with its interval.
    pub plot: Option<IntervalPlot>,
    /// The colour.
    pub tone: Tone,
}

impl Comparison {
    /// The subjects in the order of columns: the challenger of a pair first, as in the sentence.
    pub fn in_order(&self) -> Vec<&Subject> {
        self.order().into_iter().map(|place| &self.subjects[place]).collect()
    }

    /// The cells of a row in the order of columns.
    pub fn cells_of<'a>(&self, row: &'a Row) -> Vec<Option<&'a Cell>> {
        let cell = |subject| row.cells.iter().find(|cell| cell.subject == subject);
        self.order().into_iter().map(cell).collect()
    }

    /// The judged metrics of a row that a run has.
    pub fn judged_lines<'a>(&self, row: &'a Row) -> Vec<MetricLine<'a>> {
        self.lines(row, Metric::is_judged)
    }

    /// All metrics of a row.
    pub fn all_lines<'a>(&self, row: &'a Row) -> Vec<MetricLine<'a>> {
        self.lines(row, |_| true)
    }

    fn lines<'a>(&self, row: &'a Row, is_shown: fn(Metric) -> bool) -> Vec<MetricLine<'a>> {
        let cells = self.cells_of(row);
        let is_pair = self.pair().is_some();
        let line = |metric: Metric| {
            let stats: Vec<_> = cells.iter().map(|cell| cell.map(|cell| cell.stat(metric))).collect();
            let challenger = stats.first().copied().flatten().filter(|stat| is_pair && stat.by().is_some());
            let difference = challenger.map(|stat| {
                let tone = self.answer.trust.tone(stat.tone());
                ShownDifference { stat, plot: stat.plot(tone), tone }
            });
            MetricLine { metric, stats, difference }
        };
        self.columns().into_iter().filter(|metric| is_shown(*metric)).map(line).collect()
    }

    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.subjects.len()).collect();
        order.sort_by_key(|place| self.subjects.len() == 2 && self.is_baseline(&self.subjects[*place]));
        order
    }
}
