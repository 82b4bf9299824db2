//! How long the load of a run lasted, as its generator's agent observed it.

use serde::{Deserialize, Serialize};

/// The time of the load: from the start of its executors to their planned end, or to the end of the last request if
/// that is later, but at most to k6's next report after the planned end. `setup()`, `teardown()` and iterations that
/// only wait are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadTime {
    /// Its length, milliseconds.
    pub ms: u64,
    /// Requests of the load that ended later. They count, but not for the rate.
    #[serde(default)]
    pub late_requests: u64,
}

impl LoadTime {
    /// Returns the end of a load that started at this time, unix milliseconds.
    pub fn end_ms(self, start_ms: i64) -> i64 {
        start_ms.saturating_add_unsigned(self.ms)
    }
}
