//! Points of a run that is under way, for whoever watches it.

use serde::{Deserialize, Serialize};

use super::{Packed, Second, Series, Stretch, Usage};
use crate::wire::RunId;

/// Points of one stretch. They take the place of all that are later than the two times: so a second that has grown is
/// told once more, a past that is told in less detail is told anew, and whatever comes twice changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portion {
    /// The run.
    pub run: RunId,
    /// Seconds that end later than this are replaced, milliseconds after the start of the stretch; 0 for all.
    pub seconds_after_ms: u32,
    /// Samples that were taken later than this are replaced, milliseconds after the start; [`i32::MIN`] for all.
    pub usage_after_ms: i32,
    /// The points, in the one stretch that they belong to.
    pub points: Packed,
}

/// Which stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The warm-up.
    WarmUp,
    /// The measured phase.
    Measured,
}

impl Series {
    /// The two parts of a run, as far as they are there.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &Stretch)> {
        let warm_up = self.warm_up.as_ref().map(|stretch| (Part::WarmUp, stretch));
        let measured = self.measured.as_ref().map(|stretch| (Part::Measured, stretch));
        warm_up.into_iter().chain(measured)
    }

    /// The place of a part.
    pub fn part_mut(&mut self, part: Part) -> &mut Option<Stretch> {
        match part {
            Part::WarmUp => &mut self.warm_up,
            Part::Measured => &mut self.measured,
        }
    }
}

impl Stretch {
    /// The seconds that end later than this, milliseconds after the start.
    pub fn seconds_after(&self, until_ms: u32) -> &[Second] {
        &self.seconds[self.seconds.partition_point(|second| second.until_ms <= until_ms)..]
    }

    /// The samples that were taken later than this, milliseconds after the start.
    pub fn usage_after(&self, at_ms: i32) -> &[Usage] {
        &self.usage[self.usage.partition_point(|usage| usage.at_ms <= at_ms)..]
    }
}
