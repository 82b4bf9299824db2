//! What the kernel and the processor counted for a target during the measurement.

use serde::{Deserialize, Serialize};

/// Counts from the start to the end of the measurement. Unknown ones are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Context switches of its threads because they waited.
    pub voluntary_switches: Option<u64>,
    /// Context switches of its threads because others were given their processor.
    pub involuntary_switches: Option<u64>,
    /// Page faults, with and without reading from disk.
    pub page_faults: Option<u64>,
    /// Instructions retired, in user and kernel mode.
    pub instructions: Option<u64>,
    /// Processor cycles, in user and kernel mode.
    pub cycles: Option<u64>,
    /// Misses of the last-level cache.
    pub cache_misses: Option<u64>,
    /// Mispredicted branches.
    pub branch_misses: Option<u64>,
    /// Why counts are absent, as sentences.
    pub missing: Vec<String>,
}
