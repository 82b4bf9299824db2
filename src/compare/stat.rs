//! One metric of a cell: its figure, and how it compares with the baseline. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::finding::Finding;
use crate::{
    compare::{
        metric::Metric,
        more::MoreRepetitions,
        statistics::{Better, Decision, Effect, Spread, TooLittlePast},
    },
    metrics::definition::Unit,
    web::{
        card::Tone,
        format::{self, Figure},
        interval_plot::IntervalPlot,
    },
};

/// One metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stat {
    /// The metric.
    pub metric: Metric,
    /// The figure to show. Differs from the baseline's exactly as the difference says; null if no run has the metric.
    ///
    /// The baseline's is the median of the compared repetitions of all cells, each without its ratio to the baseline
    /// (for shares the mean of its own); the others' is that times their ratio.
    #[serde(default)]
    pub value: Option<f64>,
    /// Spread of the repetitions that count; null if none has the metric.
    pub spread: Option<Spread>,
    /// Ratio to the baseline's cell of the row, with the interval of the corrected test, which contains what rounding can
    /// hide; null for shares, and if a value is 0, which has no ratio.
    pub effect: Option<Effect>,
    /// Difference of a share from the baseline's cell, 0 to 1; null for other metrics.
    #[serde(default)]
    pub points: Option<f64>,
    /// The p-value of the difference, corrected for all questions of the page; null if not judged.
    pub p: Option<f64>,
    /// Minimum detectable effect, found in 80 % of such comparisons; null if the scatter is unknown.
    pub detectable: Option<f64>,
    /// The most by which a compared value may differ from the one that was read, as it was rounded or counted in a bucket;
    /// null if values are exact or not compared.
    #[serde(default)]
    pub rounding: Option<f64>,
    /// The minimum effect: a smaller difference does not matter. Null if not judged.
    #[serde(default)]
    pub min_effect: Option<f64>,
    /// Number of repetitions of the baseline and of this cell that were compared; null for the baseline.
    #[serde(default)]
    pub compared: Option<[usize; 2]>,
    /// Repetitions needed on each side to find a difference; null unless there are too few.
    #[serde(default)]
    pub needed: Option<usize>,
    /// Repetitions to add to each side to find a smaller difference; null if that takes far more, or is found already.
    #[serde(default)]
    pub more: Option<MoreRepetitions>,
    /// Variation between experiments, if not measured in turn with the baseline.
    #[serde(default)]
    pub apart: Option<CrossExperimentStat>,
    /// Decision compared with the baseline; null for metrics that are not judged.
    pub decision: Option<Decision>,
    /// Whether it is better than all other cells of its row.
    pub best: bool,
    /// Whether it includes suspect runs.
    #[serde(default)]
    pub suspect: bool,
}

/// Comparison of two cells of different experiments with their past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CrossExperimentStat {
    /// Why no decision is possible; null if the past suffices.
    pub because: Option<TooLittlePast>,
    /// Number of past experiments that show the variation, including the baseline's own.
    pub experiments: Option<usize>,
    /// Differences up to this share are within the variation between experiments.
    pub margin: Option<f64>,
    /// Minimum detectable effect if both were measured in turn; null if the scatter is unknown.
    pub interleaved: Option<f64>,
}

impl Stat {
    /// Creates the figure of a cell that is not compared yet.
    pub fn alone(metric: Metric, spread: Option<Spread>, suspect: bool) -> Self {
        Self {
            metric,
            value: spread.as_ref().map(|spread| metric.middle(spread)),
            spread,
            effect: None,
            points: None,
            p: None,
            detectable: None,
            rounding: None,
            min_effect: None,
            compared: None,
            needed: None,
            more: None,
            apart: None,
            decision: None,
            best: false,
            suspect,
        }
    }

    /// The figure for the table.
    pub fn figure(&self) -> Figure {
        self.metric.figure(self.value)
    }

    /// Difference from the baseline, as a share or, for shares, in points. None if unknown.
    pub fn by(&self) -> Option<f64> {
        let points = self.points.filter(|points| *points != 0.0 || self.value != Some(0.0));
        self.effect.map(|effect| effect.change()).or(points)
    }

    /// Whether it differs from the baseline's by no ratio, as a value is 0.
    pub fn has_no_ratio(&self) -> bool {
        self.by().is_none() && self.decision.is_some_and(Decision::is_difference)
    }

    /// The word for the difference: faster or slower, for amounts more or less.
    pub fn word(&self) -> &'static str {
        let is_greater = (self.decision == Some(Decision::Better)) == (self.metric.better() == Some(Better::Higher));
        let direction = if is_greater { 1.0 } else { -1.0 };
        self.metric.word(self.by().unwrap_or(if self.has_no_ratio() { direction } else { 0.0 }))
    }

    /// The difference from the baseline: `+28.3 %`, `+0.30 points`; without a ratio the word for it.
    pub fn change(&self) -> Figure {
        if self.has_no_ratio() { Figure::word(self.word()) } else { self.metric.difference(self.by()) }
    }

    /// How exactly its values are known: `± 0.5 ms`; empty if exact.
    pub fn rounding(&self) -> String {
        let write = |error: Option<f64>| match self.metric.def().unit {
            Unit::Ms => format::latency(error),
            _ => self.metric.figure(error),
        };
        format::plus_minus(Some(0.0), self.rounding, write).trim_start().to_owned()
    }

    /// The confidence interval of the difference: `+26.1 % to +30.2 %`; empty if unknown.
    pub fn interval(&self) -> String {
        let interval = self.effect.and_then(|effect| effect.interval());
        interval.map_or_else(String::new, |(low, high)| format::interval(low, high))
    }

    /// Explains the difference for a tooltip.
    pub fn meaning(&self) -> String {
        match Finding::new(self, "the baseline") {
            None => "not judged".to_owned(),
            Some(finding) if finding.short == self.change().text() => finding.detail,
            Some(finding) => format!("{}: {}", finding.short, finding.detail),
        }
    }

    /// The difference with its interval, as a picture.
    pub fn plot(&self, tone: Tone) -> Option<IntervalPlot> {
        let effect = self.effect?;
        Some(IntervalPlot { change: effect.change(), interval: effect.interval(), tone, wanted: None })
    }

    /// The tone of the difference; neutral unless it is significant.
    pub fn tone(&self) -> Tone {
        match self.decision {
            Some(Decision::Better) => Tone::Good,
            Some(Decision::Worse) => Tone::Bad,
            _ => Tone::Plain,
        }
    }

    /// The variation between experiments, if that hides the difference.
    pub fn hidden(&self) -> Option<String> {
        let margin = self.apart?.margin?;
        let is_within = self.effect.map_or(self.points, |effect| Some(effect.change()))?.abs() <= margin;
        (self.decision == Some(Decision::NoDifference) && is_within).then(|| self.metric.amount(margin))
    }

    /// Minimum and maximum: `12,010 to 12,100`; empty for a single run.
    pub fn range(&self) -> String {
        match &self.spread {
            Some(spread) if spread.count > 1 => {
                let figure = |value| self.metric.figure(Some(value));
                format!("{} to {}", figure(spread.min).text(), figure(spread.max).text())
            }
            _ => String::new(),
        }
    }
}
