//! What is known beside the figures of runs, as far as it was looked up. Pure.

use crate::{
    compare::{comparability::Environments, past::History},
    differences::AcceptedDifference,
};

/// As far as it was looked up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Of the runs that count.
    pub environments: Environments,
    /// Of the cells that have runs that count, without the experiments that are compared.
    pub history: History,
    /// How often these experiments were extended and compared again, and 1.
    pub looks: usize,
    /// Differences in the work of their targets.
    pub accepted: Vec<AcceptedDifference>,
}
