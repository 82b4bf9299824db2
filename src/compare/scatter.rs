//! The scatter of the repetitions of a cell, by metric, now and in earlier experiments. Pure.

use super::{
    cell::{Cell, Row},
    metric::Metric,
    past::METRICS,
    selection::Subject,
    statistics::{Noise, Spread},
};
use crate::web::format::Figure;

/// Scatter of one metric of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter<'a> {
    /// Subject of the cell.
    pub subject: &'a Subject,
    /// The metric.
    pub metric: Metric,
    /// Spread of the repetitions that count.
    pub spread: &'a Spread,
    /// Noise in earlier experiments, if known.
    pub noise: Option<Noise>,
}

impl<'a> Scatter<'a> {
    /// Returns the scatters of all cells of a setting.
    pub fn of_cells(subjects: &'a [Subject], row: &'a Row) -> Vec<Self> {
        let line = |(cell, metric): (&'a Cell, Metric)| {
            let spread = cell.stat(metric).spread.as_ref()?;
            Some(Self { subject: &subjects[cell.subject], metric, spread, noise: cell.noise.get(&metric).copied() })
        };
        row.compared_cells().flat_map(|cell| METRICS.map(|metric| (cell, metric))).filter_map(line).collect()
    }

    /// Scatter within earlier experiments.
    pub fn scattered(&self) -> Option<f64> {
        self.noise?.scatter
    }

    /// Variation between the medians of earlier experiments.
    pub fn moved(&self) -> Option<f64> {
        self.noise?.between
    }

    /// The 95 % interval of the median, as text.
    pub fn interval(&self) -> String {
        let figure = |value| self.metric.figure(Some(value)).text().to_owned();
        let ends = self.spread.low.zip(self.spread.high);
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", figure(low), figure(high)))
    }

    /// The median of the repetitions.
    pub fn median(&self) -> Figure {
        self.metric.figure(Some(self.spread.median))
    }

    /// The mean of the repetitions; empty for percentiles, where it is meaningless.
    pub fn mean(&self) -> Figure {
        self.metric.figure(self.metric.has_mean().then_some(self.spread.mean))
    }
}
