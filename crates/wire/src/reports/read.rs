//! Reads a report of any supported load generator and version. Pure.

use crate::reports::encoding::decoded;
use crate::reports::json::Node;
use crate::reports::summary::Summary;
use crate::reports::validate::{Fault, Place};
use crate::reports::{handle_summary, load, machine_readable};

/// Reads a summary of any shape. The caller must limit its size.
///
/// Fails with the first error found. A summary that was read has HTTP requests and a duration, and all of its values
/// could have been measured by k6. If it reports the load separately, it has only that: see [`load`].
pub fn parse(bytes: &[u8]) -> Result<Summary, Fault> {
    let summary = parse_own(bytes)?;
    crate::reports::values::judge_requests(&summary)?;
    Ok(summary)
}

/// Reads the summary of a run, of which more is known: it may have no HTTP requests, and then no duration.
pub fn parse_own(bytes: &[u8]) -> Result<Summary, Fault> {
    let bytes = decoded(bytes).map_err(|fault| Place::root("the document").fault(fault))?;
    let mut summary = if is_json(&bytes) { read_json(&bytes)? } else { crate::reports::text::read(&bytes)? };
    summary.remove_negative_minima();
    load::keep(&mut summary);
    crate::reports::values::judge(&summary)?;
    summary.forget_unevaluated_thresholds();
    Ok(summary)
}

/// Whether the input is read as JSON; text reports never start like JSON.
pub fn is_json(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let word = [&b"null"[..], b"true", b"false"].into_iter().any(|word| start.starts_with(word));
    // A text may begin with the time of a log's line.
    let is_number = || start.trim_ascii_end().iter().all(|byte| b"-+.eE0123456789".contains(byte));
    word || start.first().is_none_or(|first| match first {
        b'-' | b'0'..=b'9' => is_number(),
        first => b"{[\"".contains(first),
    })
}

fn read_json(bytes: &[u8]) -> Result<Summary, Fault> {
    let document = crate::reports::json::read(bytes)?;
    match (document.get("results"), document.get("metrics")) {
        (Some(results), _) if matches!(results.get("metrics"), Some(Node::List(_))) => {
            machine_readable::read(&document, results)
        }
        (_, Some(metrics)) => {
            let entries = metrics.entries(&Place::root("metrics"))?;
            if handle_summary::recognises(entries) {
                handle_summary::read(&document, entries)
            } else {
                crate::reports::export::read(&document, entries)
            }
        }
        _ => Err(unrecognized(&document)),
    }
}

pub(super) fn unrecognized(document: &Node<'_>) -> Fault {
    let what = document.what();
    Place::root("the document").fault(format_args!(
        "is {what}, but not from k6: expected an object with \"metrics\" (handleSummary, --summary-export) or a list \
         \"results.metrics\" (--new-machine-readable-summary)"
    ))
}
