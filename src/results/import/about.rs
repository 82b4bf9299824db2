//! Metadata of an imported summary. Pure.

use crate::runs::model::RunSpec;

/// What is known about an imported summary besides its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// What is known of what was measured. Virtual users only if the summary does not have them.
    pub spec: RunSpec,
    /// Version of the target.
    pub version: Option<String>,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// Whether it was measured in turn with the other runs of its import.
    pub interleaved: bool,
    /// Labels of the run.
    pub labels: Vec<String>,
    /// Its note, as Markdown.
    pub note: Option<String>,
}
