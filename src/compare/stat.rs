//! A figure of a cell's repetitions. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::compare::{
    metric::Metric,
    statistics::{Decision, Effect, Spread, TooLittlePast},
};

/// One figure of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stat {
    /// Which.
    pub metric: Metric,
    /// Over the repetitions that count; null when none has it.
    pub spread: Option<Spread>,
    /// By what factor it differs from the baseline's cell of its row; null for shares. The interval is that of the corrected
    /// test.
    pub effect: Option<Effect>,
    /// By how much a share differs from that of the baseline's cell, 0 to 1; null for all else.
    #[serde(default)]
    pub points: Option<f64>,
    /// The p-value of the difference, corrected for all questions of this page; null where nothing is judged.
    pub p: Option<f64>,
    /// Minimum detectable effect: the smallest difference to the baseline that is found in 80 % of such comparisons, as a
    /// share; null where no scatter is known.
    pub detectable: Option<f64>,
    /// Where it was not measured in turn with the baseline: what the past says of such differences.
    #[serde(default)]
    pub apart: Option<ApartStat>,
    /// How it compares with the baseline; null for metrics that are shown and not judged.
    pub decision: Option<Decision>,
    /// Whether it is better than every other cell of its row.
    pub best: bool,
    /// Whether figures of suspect runs are among those that it comes of.
    #[serde(default)]
    pub suspect: bool,
}

/// How two cells of different experiments compare with their past.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApartStat {
    /// Why nothing can be said; null where the past says enough.
    pub because: Option<TooLittlePast>,
    /// Experiments of the past, the baseline's own included, that show how far the cell moves between experiments.
    pub experiments: Option<usize>,
    /// Differences up to this share are not told from such moves.
    pub margin: Option<f64>,
    /// The smallest difference that would be found in 80 % of cases if both were measured in turn with as many repetitions;
    /// null where no scatter is known.
    pub in_turn: Option<f64>,
}
