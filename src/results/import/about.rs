//! The metadata that comes with an imported summary. Pure.

use std::collections::BTreeMap;

use crate::runs::model::RunSize;

/// Everything that is known about an imported summary besides its own content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Name of the target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// The machine size that it had.
    pub size: Option<RunSize>,
    /// What was run.
    pub scenario: Option<String>,
    /// Load parameters that no other field holds.
    pub parameters: BTreeMap<String, String>,
    /// Virtual users, where the summary does not say.
    pub vus: Option<u64>,
    /// How long the load was to last, seconds.
    pub duration_s: Option<f64>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Whether it was measured in turn with the other runs that come with it.
    pub in_turn: bool,
    /// Labels of the run.
    pub labels: Vec<String>,
    /// Its note, as Markdown.
    pub note: Option<String>,
}
