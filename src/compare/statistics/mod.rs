//! What repetitions say about each other. Pure: no clock, no chance, no I/O.
//!
//! The unit is the run: each repetition gives one figure, and percentiles are never averaged. Of each cell [`fn@spread`]
//! tells the median and how sure it is; of two cells [`fn@difference`] tells by what factor they differ and its interval,
//! and [`fn@ranks`] how often chance alone would separate them so far. [`holm`] holds together all questions of one page.
//!
//! One side is called better if all of this holds:
//! - the exact permutation test of the rank sums, corrected after Holm for every question that the page asks, gives at
//!   most [`ALPHA`];
//! - the interval of the ratio leaves 1 out;
//! - the difference is at least what matters, one percent unless the reader says otherwise.
//!
//! Why ranks and medians, which Go's benchstat has too: a run that a neighbour disturbed moves neither far, whatever the
//! shape of the noise. Why exact: with five repetitions no formula for large numbers is true. What follows: three
//! repetitions a side separate by chance in 2 of 20 orders, so three can never say anything at 5 %, and the more a page
//! asks, the more repetitions it takes: [`enough`].
//!
//! What the past of a cell tells stands in [`fn@noise`]: how its runs scatter, which says what could have been seen, and
//! how far it moves between experiments, which a difference between two experiments has to exceed.

pub mod change_points;
mod difference;
mod family;
mod noise;
mod power;
mod ranks;
#[cfg(test)]
mod simulation;
mod spread;
mod standing;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use change_points::change_points;
pub use difference::{Difference, difference};
pub use family::{Question, holm};
pub use noise::{Noise, noise};
pub use power::detectable;
pub use ranks::{Ranks, enough, ranks};
pub use spread::{Spread, spread};
pub use standing::{Gap, lead, points, stand};

/// So often may a page without any true difference show one.
pub const ALPHA: f64 = 0.05;

/// Intervals are to hold the true value in this share of cases.
pub const CONFIDENCE: f64 = 0.95;

/// The difference that matters where nobody says otherwise, as a share of the baseline's.
pub const LEAST_DIFFERENCE: f64 = 0.01;

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Latency, failures, cost.
    Lower,
}

/// How one side stands against another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Better, and not by chance.
    Better,
    /// Worse, and not by chance.
    Worse,
    /// No difference seen.
    Unclear,
    /// Too few repetitions to say anything.
    TooFew,
    /// Not judged, because the runs were made under unlike conditions.
    Unlike,
}

impl Standing {
    /// How the other side stands against this one.
    #[must_use]
    pub fn turned(self) -> Self {
        match self {
            Self::Better => Self::Worse,
            Self::Worse => Self::Better,
            same => same,
        }
    }
}

/// Who is better than everybody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lead {
    /// This one, by its place among those asked about, from 0.
    Of(usize),
    /// Nobody.
    Unclear,
    /// Somebody has too few repetitions; so many has who has fewest.
    TooFew(usize),
    /// There are not two to compare.
    Alone,
    /// Somebody lacks the figure.
    Missing,
    /// Not judged, because the runs were made under unlike conditions.
    Unlike,
}
