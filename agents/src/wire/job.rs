//! What an agent is asked to do: one run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{RunId, load::Load};

/// One run as the agent gets it. It names a target of the agent's own; it can't bring one along.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The run that this job fills.
    pub run: RunId,
    /// Name of a target in the agent's manifests.
    pub target: String,
    /// The machine size that the target gets.
    pub size: Size,
    /// The k6 script and its data files.
    pub scenario: Scenario,
    /// Given to the script as environment (`__ENV`), over the scenario's own defaults.
    pub parameters: BTreeMap<String, String>,
    /// How hard and how long.
    pub load: Load,
    /// How long the script runs before its figures count; 0 for no warm-up.
    pub warm_up_ms: u64,
}

/// What the target may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Size {
    /// As people call it, e.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores; 0.5 is half of one.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
}

/// A k6 script with everything it opens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// As people call it.
    pub name: String,
    /// The script's text.
    pub script: String,
    /// Files that the script opens, by plain name, next to the script.
    pub files: BTreeMap<String, String>,
    /// Parameters and the values they have unless a submission says otherwise.
    pub defaults: BTreeMap<String, String>,
}

impl Scenario {
    /// SHA-256 in hex over script, files and defaults: the name of this revision.
    pub fn sha256(&self) -> String {
        let mut hasher = Sha256::new();
        let mut feed = |text: &str| {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        };
        feed(&self.script);
        for part in [&self.files, &self.defaults] {
            feed(&part.len().to_string());
            for (name, text) in part {
                feed(name);
                feed(text);
            }
        }
        hex(&hasher.finalize())
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
