//! Converts series of several machines to the server's clock. Pure.

use brewbench_wire::series::{Consumption, Series, Usage, Window, WindowKind};
use serde::{Deserialize, Serialize};

/// An agent's clock compared with the server's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// How far it is ahead, ms.
    pub offset_ms: f64,
    /// Maximum error of the offset, ms.
    pub error_ms: f64,
}

/// A series and the clock that it was recorded with.
#[derive(Clone, Copy, Debug)]
pub struct Clocked<'a> {
    /// Times are by its agent's clock.
    pub series: &'a Series,
    /// None if unknown; the series is then assumed to start together with the others.
    pub clock: Option<Clock>,
}

impl<'a> Clocked<'a> {
    /// Returns when a part started by the server's clock, unix ms.
    pub fn start_ms(&self, part: WindowKind) -> Option<i64> {
        let clock = self.clock?;
        self.window(part).map(|window| to_server_time(window.start_ms, clock))
    }

    /// Returns how long after `start_ms` (by the server's clock) a part started, ms.
    pub fn after_ms(&self, part: WindowKind, start_ms: i64) -> i64 {
        self.start_ms(part).unwrap_or(start_ms).saturating_sub(start_ms)
    }

    pub(crate) fn window(&self, part: WindowKind) -> Option<&'a Window> {
        self.series.parts().find_map(|(other, window)| (other == part).then_some(window))
    }

    /// Returns the samples after `at_ms`, relative to `start_ms`, with the load generator's usage cleared.
    pub(crate) fn usage_after(&self, part: WindowKind, start_ms: i64, at_ms: i32) -> Vec<Usage> {
        let after = self.after_ms(part, start_ms);
        let moved =
            |usage: &Usage| Usage { at_ms: clamped(usage.at_ms, after), generator: Consumption::default(), ..*usage };
        let usage = self.window(part).map_or(&[][..], |window| &window.usage);
        usage.iter().map(moved).filter(|usage| at_ms == i32::MIN || usage.at_ms > at_ms).collect()
    }
}

/// Converts a time by an agent's clock to the server's clock, unix ms.
pub fn to_server_time(at_ms: i64, clock: Clock) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "casting saturates")]
    at_ms.saturating_sub(clock.offset_ms.round() as i64)
}

pub(crate) fn clamped(at_ms: i32, after_ms: i64) -> i32 {
    if at_ms == i32::MIN {
        return at_ms;
    }
    let at_ms = i64::from(at_ms).saturating_add(after_ms);
    i32::try_from(at_ms).unwrap_or(if at_ms < 0 { i32::MIN } else { i32::MAX })
}
