//! Metadata of an imported summary. Pure.

use std::collections::BTreeMap;

use crate::runs::model::RunSize;

/// What is known about an imported summary besides its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Name of the target.
    pub target: String,
    /// Its version.
    pub version: Option<String>,
    /// Its machine size.
    pub size: Option<RunSize>,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Load parameters that no other field holds.
    pub parameters: BTreeMap<String, String>,
    /// Virtual users, if the summary does not have them.
    pub vus: Option<u64>,
    /// Planned duration of the load, seconds.
    pub duration_s: Option<f64>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Whether it was measured in turn with the other runs of its import.
    pub interleaved: bool,
    /// Labels of the run.
    pub labels: Vec<String>,
    /// Its note, as Markdown.
    pub note: Option<String>,
}
