//! Statistics of repetitions. Pure: no clock, no I/O, and all random numbers are seeded.
//!
//! The unit is the run: each repetition contributes one value, and percentiles are never averaged. [`fn@spread`]
//! describes one cell. [`fn@design`] determines how two cells were measured, which decides how they are compared:
//!
//! - In turn, within one experiment: [`fn@rank_test`] tests whether they differ, [`fn@effect`] estimates their ratio
//!   with the interval of the same test.
//! - In different experiments: [`fn@between`] estimates the prediction interval from past experiments, if there are
//!   enough. The rank test has to reject as well.
//!
//! [`correct`] corrects for all questions of one page, [`spending`] for all looks at one experiment. One side is better
//! if the corrected p-value is at most [`ALPHA`], the interval excludes 1, and the difference is at least the minimum
//! effect, by default one percent. [`power`] computes which difference could have been found. [`logistic`] finds the
//! load at which an objective holds in half of the runs.
//!
//! Ranks and medians, also used by Go's benchstat, are robust against disturbed runs for any distribution. The test is
//! exact as asymptotic formulas do not hold for five repetitions. A consequence: 2 of 20 random orders separate three
//! repetitions per side, so three can never show a difference at 5 %.

pub mod between;
pub mod change_points;
mod correction;
mod decision;
mod describe;
mod design;
pub mod drift;
mod effect;
mod joint;
pub mod logistic;
mod noise;
pub mod power;
pub mod ramp;
mod rank_sum;
mod rank_test;
mod scatter;
pub mod spending;
pub mod steadiness;

pub use between::{Between, ExperimentMedian, TooLittlePast, between};
pub use change_points::change_points;
pub use correction::{Count, Evidence, Question, Test, correct, count};
pub use decision::{Change, Clarity, Estimate, decide, lead, points, welch_margin, welch_p};
pub use describe::{Spread, spread};
pub use design::{Design, MIN_FOR_STRATA, Observation, Places, design};
pub use effect::{Effect, effect};
pub use noise::{Noise, noise};
pub use rank_test::{RankTest, Stratum, rank_test};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Family-wise error rate: the share of pages and gates that show a difference although there is none.
pub const ALPHA: f64 = 0.05;

/// Share of cases in which an interval contains the true value.
pub const CONFIDENCE: f64 = 0.95;

/// Default minimum effect, as a share of the baseline's value.
pub const MIN_EFFECT: f64 = 0.01;

/// The direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher values are better.
    Higher,
    /// Lower values are better.
    Lower,
}

/// Result of comparing one side with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Significantly better.
    Better,
    /// Significantly worse.
    Worse,
    /// A difference was found, but it is smaller than the minimum effect.
    BelowMinEffect,
    /// No difference found.
    NoDifference,
    /// Too few repetitions to decide.
    TooFew,
    /// The values differ, but by less than their rounding can hide.
    TooCoarse,
    /// Cannot say: not measured in turn, and too few past experiments.
    NotInTurn,
    /// Not compared, because the runs differ in more than what is compared.
    NotComparable,
}

impl Decision {
    /// Returns the decision with the sides exchanged.
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

/// The side that is better than all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Leader {
    /// The side with this index, from 0.
    Of(usize),
    /// No side.
    Unclear,
    /// A pair has too few repetitions; the value is the fewest that were compared.
    TooFew(usize),
    /// Values differ by less than their rounding can hide.
    TooCoarse,
    /// Cannot say: not all were measured in turn.
    NotInTurn,
    /// There are fewer than two sides.
    Alone,
    /// A side lacks the metric.
    Missing,
    /// Only comparisons with the baseline were asked, and it is not better than all others.
    BaselineOnly,
    /// Not compared, because the runs differ in more than what is compared.
    NotComparable,
}
