//! Names and labels of a round. Pure.

use serde_json::{Value, json};

/// Returns the name of the Job of a generator.
pub fn job_name(round: &str, index: u32) -> String {
    format!("{round}-{}", index + 1)
}

/// The name and the labels of everything in a round.
#[derive(Clone, Debug)]
pub struct Names {
    /// The name of the round.
    pub name: String,
    /// Metadata of its objects, with labels and owner.
    pub metadata: Value,
}

impl Names {
    /// Returns the name of the Job of a generator.
    pub fn job(&self, index: u32) -> String {
        job_name(&self.name, index)
    }

    /// Returns the name of the Job with which k6-operator starts all generators.
    pub fn starter(&self) -> String {
        format!("{}-starter", self.name)
    }

    /// Returns the metadata of an object with this name.
    pub fn metadata_for(&self, name: &str) -> Value {
        let mut metadata = self.metadata.clone();
        metadata["name"] = json!(name);
        metadata
    }
}
