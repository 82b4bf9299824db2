//! Reads a report, whatever load generator and version wrote it. Pure.

use crate::reports::encoding::without_mark;
use crate::reports::json::Node;
use crate::reports::summary::Summary;
use crate::reports::validate::{Fault, Place};
use crate::reports::{handle_summary, machine_readable};

/// Reads a summary, whichever shape it has. The caller has looked at its size.
///
/// Fails with the first fault found; a summary that is read has HTTP requests in it and a time in which they were made,
/// and none of its figures contradicts what k6 can measure.
pub fn parse(bytes: &[u8]) -> Result<Summary, Fault> {
    let bytes = without_mark(bytes).map_err(|fault| Place::root("the document").fault(fault))?;
    let summary = if is_json(bytes) { read_json(bytes)? } else { crate::reports::text::read(bytes)? };
    crate::reports::values::judge(&summary)?;
    Ok(summary)
}

/// Whether it is read as JSON, and not as what is printed for people, which never begins like JSON.
pub fn is_json(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let word = [&b"null"[..], b"true", b"false"].into_iter().any(|word| start.starts_with(word));
    word || start.first().is_none_or(|first| b"{[\"-0123456789".contains(first))
}

pub(crate) fn read_json(bytes: &[u8]) -> Result<Summary, Fault> {
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
        _ => Err(foreign(&document)),
    }
}

pub(super) fn foreign(document: &Node<'_>) -> Fault {
    let what = document.what();
    Place::root("the document").fault(format_args!(
        "is {what}, but not k6's: expected an object with \"metrics\" (handleSummary, --summary-export) or with a list \
         \"results.metrics\" (--new-machine-readable-summary)"
    ))
}
