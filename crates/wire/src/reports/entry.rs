//! An entry of a collection as a document of its own, so that a run keeps everything in the collection about it. Pure.

use serde::{Deserialize, Serialize};

use crate::reports::formats::{self, Format};
use crate::reports::input::document::Document;
use crate::reports::report::Report;
use crate::reports::validate::{Fault, Place, shown};

/// The document.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<R> {
    /// The format of the collection.
    brewbench_entry_of: String,
    report: R,
}

/// Writes an entry; `None` if it has k6's own summary or a time series, which only a file of its own can hold.
pub(super) fn write(report: &Report) -> Option<String> {
    if report.summary.is_some() || report.series.is_some() {
        return None;
    }
    serde_json::to_string(&Entry { brewbench_entry_of: report.format.to_owned(), report }).ok()
}

/// Reads an entry; `None` if the document is none.
pub(super) fn read(document: &Document<'_>) -> Option<Result<(&'static Format, Vec<Report>), Fault>> {
    document.has(&["brewbench_entry_of", "report"]).then(|| {
        let Entry { brewbench_entry_of: name, report } = document.read::<Entry<Report>>()?;
        let unknown =
            || Place::root("brewbench_entry_of").fault(format_args!("there is no format \"{}\"", shown(&name)));
        Ok((formats::find(&name).ok_or_else(unknown)?, vec![report]))
    })
}
