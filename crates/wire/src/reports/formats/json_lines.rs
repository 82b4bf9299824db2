//! Files with one JSON object a line.

use std::io::{BufRead, BufReader, Read};

use crate::reports::input::unpack;
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

/// Why a line is refused.
pub enum Refused {
    /// It is not the JSON that was expected.
    Json(serde_json::Error),
    /// What it says can't be.
    Fault(Fault),
}

impl From<serde_json::Error> for Refused {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Hands each line that is not empty to `add`. `title` is what a page calls the file.
///
/// Returns a warning if the last line is truncated: the tool was killed while it wrote.
pub fn each_line(
    source: &mut dyn Read,
    title: &str,
    mut add: impl FnMut(&[u8]) -> Result<(), Refused>,
) -> Result<Option<Warning>, Fault> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(|error| unpack::to_fault(&error))? == 0 {
            return Ok(None);
        }
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("line {number}");
        match add(&line) {
            Ok(()) => {}
            Err(Refused::Json(error)) if error.is_eof() && !line.ends_with(b"\n") => {
                let what = format!("{place}, the last one, is truncated: the test was interrupted");
                return Ok(Some(Warning::Incomplete(what)));
            }
            Err(Refused::Json(error)) => {
                return Err(Place::root(&place).fault(format_args!("is not of {title}: {error}")));
            }
            Err(Refused::Fault(fault)) => return Err(Fault { place, ..fault }),
        }
    }
}
