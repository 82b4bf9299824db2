//! What repetitions say about each other. Pure: no clock, no I/O, and every random number seeded.
//!
//! The unit is the run: each repetition gives one value, and percentiles are never averaged. [`fn@spread`] describes one
//! cell. Of two cells [`fn@design`] says how they were measured, which decides how they are compared:
//!
//! - In turn, within one experiment: [`fn@rank_test`] says how often random order separates them as far, and
//!   [`fn@effect`] by what factor they differ, with the interval of the same test.
//! - In different experiments: [`fn@between`] gives the prediction interval that follows from past experiments, if there
//!   are enough. The rank test has to reject as well.
//!
//! [`correct`] holds together all questions of one page, [`spending`] all looks at one experiment. One side is called
//! better if the corrected p-value is at most [`ALPHA`], the interval excludes 1, and the difference is at least the
//! minimum effect, one percent unless the reader says otherwise. [`power`] says what could have been found.
//!
//! Why ranks and medians, which Go's benchstat has too: a run that a neighbour disturbed moves neither far, whatever the
//! shape of the noise. Why exact: with five repetitions no formula for large numbers is true. What follows: three
//! repetitions a side are separated by chance in 2 of 20 orders, so three can never say anything at 5 %.

pub mod between;
pub mod change_points;
mod correction;
mod decision;
mod describe;
mod design;
mod effect;
mod noise;
pub mod power;
mod rank_test;
pub mod spending;

pub use between::{Between, ExperimentMedian, TooLittlePast, between};
pub use change_points::change_points;
pub use correction::{Count, Question, Test, correct, count, primary_level};
pub use decision::{Change, decide, lead, points, welch_margin};
pub use describe::{Spread, spread};
pub use design::{Design, FEWEST_FOR_STRATA, Observation, design};
pub use effect::{Effect, effect};
pub use noise::{Noise, noise};
pub use rank_test::{RankTest, Stratum, rank_test};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Family-wise error rate of a page or gate: this share of those without any true difference show one.
pub const ALPHA: f64 = 0.05;

/// Intervals are to hold the true value in this share of cases.
pub const CONFIDENCE: f64 = 0.95;

/// The minimum effect where nobody says otherwise, as a share of the baseline's value.
pub const MIN_EFFECT: f64 = 0.01;

pub use crate::metrics::definition::Better;

/// How one side compares with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Better, and not by chance.
    Better,
    /// Worse, and not by chance.
    Worse,
    /// No difference found.
    NoDifference,
    /// Too few repetitions to say anything.
    TooFew,
    /// Cannot say: not measured in turn, and too little is known of how much the cell moves between experiments.
    NotInTurn,
    /// Not compared, because the runs differ in more than what is compared.
    NotComparable,
}

impl Decision {
    /// How the other side compares with this one.
    #[must_use]
    pub fn reversed(self) -> Self {
        match self {
            Self::Better => Self::Worse,
            Self::Worse => Self::Better,
            same => same,
        }
    }

    /// Whether a difference was found.
    pub fn is_difference(self) -> bool {
        matches!(self, Self::Better | Self::Worse)
    }
}

/// Who is better than everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lead {
    /// This one, by its place among those compared, from 0.
    Of(usize),
    /// Nobody.
    Unclear,
    /// Somebody has too few repetitions; this many has who has fewest.
    TooFew(usize),
    /// Cannot say: not all were measured in turn.
    NotInTurn,
    /// There are not two to compare.
    Alone,
    /// Somebody lacks the metric.
    Missing,
    /// Not compared, because the runs differ in more than what is compared.
    NotComparable,
}
