//! The context of compared runs besides their figures. Pure.

use crate::{
    compare::{comparability::Environments, past::History},
    differences::AcceptedDifference,
};

/// The context of compared runs, as far as it was loaded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    /// Environments of the runs that count.
    pub environments: Environments,
    /// Earlier runs of the compared cells, without the compared experiments.
    pub history: History,
    /// Number of looks: 1 plus how often these experiments were extended.
    pub looks: usize,
    /// Accepted differences in the work of their targets.
    pub accepted: Vec<AcceptedDifference>,
}
