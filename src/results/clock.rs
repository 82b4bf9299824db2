//! Series of several machines by one clock: the server's. Pure.

use brewbench_agent::wire::series::{Consumption, Part, Series, Stretch, Usage};
use serde::{Deserialize, Serialize};

/// What an agent's clock says, held against the server's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// By how much it is ahead, ms.
    pub offset_ms: f64,
    /// How far that may be wrong, ms.
    pub error_ms: f64,
}

/// A series and how the clock that it was taken by differs from the server's.
#[derive(Clone, Copy, Debug)]
pub struct Clocked<'a> {
    /// By its agent's clock.
    pub series: &'a Series,
    /// Where it is not known, the series is taken to have begun with the others.
    pub clock: Option<Clock>,
}

impl<'a> Clocked<'a> {
    /// When a part began, by the server's clock, unix ms.
    pub fn start_ms(&self, part: Part) -> Option<i64> {
        let clock = self.clock?;
        self.stretch(part).map(|stretch| by_server(stretch.start_ms, clock))
    }

    /// How much later than a time by the server's clock a part began, ms.
    pub fn after_ms(&self, part: Part, start_ms: i64) -> i64 {
        self.start_ms(part).unwrap_or(start_ms).saturating_sub(start_ms)
    }

    pub(crate) fn stretch(&self, part: Part) -> Option<&'a Stretch> {
        self.series.parts().find_map(|(other, stretch)| (other == part).then_some(stretch))
    }

    /// The samples of a machine without k6, whatever its agent says, that were taken later than a time, ms after a start.
    pub(crate) fn usage_after(&self, part: Part, start_ms: i64, at_ms: i32) -> Vec<Usage> {
        let after = self.after_ms(part, start_ms);
        let moved =
            |usage: &Usage| Usage { at_ms: clamped(usage.at_ms, after), generator: Consumption::default(), ..*usage };
        let usage = self.stretch(part).map_or(&[][..], |stretch| &stretch.usage);
        usage.iter().map(moved).filter(|usage| at_ms == i32::MIN || usage.at_ms > at_ms).collect()
    }
}

/// A time by an agent's clock as the server's has it, unix ms.
pub fn by_server(at_ms: i64, clock: Clock) -> i64 {
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
