//! How the repetitions of a cell scatter, figure by figure, and how they did before. Pure.

use super::{
    cell::{Cell, Row},
    metric::Metric,
    past::METRICS,
    selection::Subject,
    statistics::{Noise, Spread},
};
use crate::web::format::Figure;

/// One figure of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Scatter<'a> {
    /// Whose it is.
    pub subject: &'a Subject,
    /// Which.
    pub metric: Metric,
    /// Over the repetitions that count.
    pub spread: &'a Spread,
    /// What earlier experiments say of it.
    pub noise: Option<Noise>,
}

impl<'a> Scatter<'a> {
    /// Those of a setting.
    pub fn of(subjects: &'a [Subject], row: &'a Row) -> Vec<Self> {
        let line = |(cell, metric): (&'a Cell, Metric)| {
            let spread = cell.stat(metric).spread.as_ref()?;
            Some(Self { subject: &subjects[cell.subject], metric, spread, noise: cell.noise.get(&metric).copied() })
        };
        row.rivals().flat_map(|cell| METRICS.map(|metric| (cell, metric))).filter_map(line).collect()
    }

    /// How it scattered within earlier experiments.
    pub fn scattered(&self) -> Option<f64> {
        self.noise?.scatter
    }

    /// How far their medians scattered.
    pub fn moved(&self) -> Option<f64> {
        self.noise?.between
    }

    /// The 95 % interval of the median, in words.
    pub fn interval(&self) -> String {
        let figure = |value| self.metric.figure(Some(value)).text().to_owned();
        let ends = self.spread.low.zip(self.spread.high);
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", figure(low), figure(high)))
    }

    /// The median of the repetitions.
    pub fn median(&self) -> Figure {
        self.metric.figure(Some(self.spread.median))
    }

    /// The mean of the repetitions; of a percentile it means nothing.
    pub fn mean(&self) -> Figure {
        self.metric.figure(self.metric.has_mean().then_some(self.spread.mean))
    }
}
