//! What the kernel and the processor counted for a target during the measurement.

use serde::{Deserialize, Serialize};

/// Counts from the start to the end of the measurement. Unknown ones are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Context switches of its threads because they waited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voluntary_switches: Option<u64>,
    /// Context switches of its threads because others were given their processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// Page faults, with and without reading from disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page_faults: Option<u64>,
    /// Instructions retired, in user and kernel mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Processor cycles, in user and kernel mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Misses of the last-level cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
    /// Mispredicted branches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_misses: Option<u64>,
    /// Why counts are absent, as sentences.
    pub missing: Vec<String>,
}

/// The most reasons for absent counts; there is one per counter.
const MAX_REASONS: usize = 10;

impl Counters {
    /// Bounds what an unmodified agent does not exceed: the number of sentences, and the characters of each.
    #[must_use]
    pub fn checked(self, chars: usize) -> Self {
        let missing = self.missing.into_iter().take(MAX_REASONS);
        Self { missing: missing.map(|text| text.chars().take(chars).collect()).collect(), ..self }
    }
}
