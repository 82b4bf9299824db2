//! The context of compared runs besides their figures. Pure.

use crate::{
    compare::{
        comparability::Environments,
        past::History,
        statistics::{ALPHA, spending},
    },
    differences::AcceptedDifference,
};

/// Looks at an experiment before repetitions were added: each was a chance of a false result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Number of repetitions at each look.
    pub before: Vec<usize>,
    /// Number of additions, which is greater if old ones left no look.
    pub additions: usize,
}

impl Looks {
    /// Number of looks, with the present one.
    pub fn count(&self) -> usize {
        1 + self.additions
    }

    /// Returns the error rate of a look with this many repetitions.
    ///
    /// `is_sequential` says that repetitions will be added until it is decided, so that the first look may not use all.
    pub fn alpha(&self, repetitions: usize, is_sequential: bool) -> f64 {
        if self.before.len() < self.additions {
            ALPHA / self.count() as f64
        } else if self.before.is_empty() && !is_sequential {
            ALPHA
        } else {
            spending::level(&self.before, repetitions)
        }
    }
}

/// The context of compared runs, as far as it was loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ComparisonContext {
    /// Environments of the runs that count.
    pub environments: Environments,
    /// Earlier runs of the compared cells, without the compared experiments.
    pub history: History,
    /// How often these experiments were looked at before repetitions were added.
    pub looks: Looks,
    /// Accepted differences in the work of their targets.
    pub accepted: Vec<AcceptedDifference>,
    /// Whether any run belongs to a knee search, which alone says where the knee is.
    pub is_knee_search: bool,
}
