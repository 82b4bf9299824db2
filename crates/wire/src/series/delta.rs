//! Points of a run in progress, for live views.

use serde::{Deserialize, Serialize};

use super::{Packed, Second, Series, Usage, Window};
use crate::RunId;

/// Points of one series. They replace all points after the two times: so a second that has grown is sent again, a
/// downsampled past is sent again completely, and duplicates change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delta {
    /// The run.
    pub run: RunId,
    /// Seconds that end after this are replaced, milliseconds since the start; 0 for all.
    pub seconds_after_ms: u32,
    /// Samples taken after this are replaced, milliseconds since the start; [`i32::MIN`] for all.
    pub usage_after_ms: i32,
    /// The points, in the part they belong to.
    pub points: Packed,
}

/// A part of a run's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// The warm-up.
    WarmUp,
    /// The measured phase.
    Measured,
}

impl Series {
    /// Returns the parts that are present.
    pub fn parts(&self) -> impl Iterator<Item = (WindowKind, &Window)> {
        let warm_up = self.warm_up.as_ref().map(|window| (WindowKind::WarmUp, window));
        let measured = self.measured.as_ref().map(|window| (WindowKind::Measured, window));
        warm_up.into_iter().chain(measured)
    }

    /// Returns a part for modification.
    pub fn part_mut(&mut self, part: WindowKind) -> &mut Option<Window> {
        match part {
            WindowKind::WarmUp => &mut self.warm_up,
            WindowKind::Measured => &mut self.measured,
        }
    }
}

impl Window {
    /// Returns the seconds that end after this, milliseconds since the start.
    pub fn seconds_after(&self, until_ms: u32) -> &[Second] {
        &self.seconds[self.seconds.partition_point(|second| second.until_ms <= until_ms)..]
    }

    /// Returns the samples taken after this, milliseconds since the start.
    pub fn usage_after(&self, at_ms: i32) -> &[Usage] {
        &self.usage[self.usage.partition_point(|usage| usage.at_ms <= at_ms)..]
    }
}
