//! A metric of the repetitions of a cell. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compare::{
    metric::Metric,
    statistics::{Decision, Effect, Spread, TooLittlePast},
};

/// One metric of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stat {
    /// The metric.
    pub metric: Metric,
    /// Spread of the repetitions that count; null if none has the metric.
    pub spread: Option<Spread>,
    /// Ratio to the baseline's cell of the row, with the interval of the corrected test; null for shares.
    pub effect: Option<Effect>,
    /// Difference of a share from the baseline's cell, 0 to 1; null for other metrics.
    #[serde(default)]
    pub points: Option<f64>,
    /// The p-value of the difference, corrected for all questions of the page; null if not judged.
    pub p: Option<f64>,
    /// Minimum detectable effect, found in 80 % of such comparisons; null if the scatter is unknown.
    pub detectable: Option<f64>,
    /// Variation between experiments, if not measured in turn with the baseline.
    #[serde(default)]
    pub apart: Option<ApartStat>,
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
pub struct ApartStat {
    /// Why no decision is possible; null if the past suffices.
    pub because: Option<TooLittlePast>,
    /// Number of past experiments that show the variation, including the baseline's own.
    pub experiments: Option<usize>,
    /// Differences up to this share are within the variation between experiments.
    pub margin: Option<f64>,
    /// Minimum detectable effect if both were measured in turn; null if the scatter is unknown.
    pub interleaved: Option<f64>,
}
