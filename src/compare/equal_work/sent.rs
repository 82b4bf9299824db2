//! Whether two cells were sent the same: a target that answers before it has read the request, and closes the
//! connection, looks faster than one that reads it. Pure.

use super::{Tolerance, numbers};
use crate::runs::model::Run;

/// Tolerance as a share of the larger value.
const RELATIVE: f64 = 0.02;
/// Bytes of headers that the targets themselves may decide on: the name of the host, and cookies.
const HEADERS: f64 = 512.0;

/// Returns the medians of both sides if they differ.
pub(super) fn differ(sides: [&[&Run]; 2]) -> Option<[f64; 2]> {
    let values = numbers(sides, Tolerance::Relative(RELATIVE), |run| run.figures.work.sent_bytes_per_request)?;
    ((values[0] - values[1]).abs() > HEADERS).then_some(values)
}
