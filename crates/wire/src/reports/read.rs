//! Reads a file of any format in [`FORMATS`]: finds the reports in it, and has each of them read and checked. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::Read;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::reports::check;
use crate::reports::encoding::decoded;
use crate::reports::entry;
use crate::reports::formats::format::REPORTS_MAX;
use crate::reports::formats::{FORMATS, Format, Reader, Recognised};
use crate::reports::input::document::Document;
use crate::reports::input::unpack::{self, Records};
use crate::reports::report::Report;
use crate::reports::summary::Summary;
use crate::reports::texts::texts;
use crate::reports::validate::{Fault, Place, shown};

/// Maximum number of refused reports that are kept.
pub(super) const REFUSED_MAX: usize = 100;

/// What a file contains.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// At least one, in their order in the file.
    pub reports: Vec<Report>,
    /// What was removed before the reports were read.
    pub stripped: BTreeSet<&'static str>,
    /// Why other reports of a text were refused.
    pub refused: Vec<Fault>,
}

/// Reads all reports of a file of any format. Large files are read as a stream, in bounded memory.
///
/// Fails with the first error found, and if no format is recognised; then it names those that come near.
pub fn read(source: impl Read) -> Result<Contents, Fault> {
    let opened = unpack::open(source)?;
    let mut stripped: BTreeSet<&'static str> = opened.compression.into_iter().collect();
    let head = opened.head;
    let is_plain = std::str::from_utf8(&head).is_ok_and(|_| !head.contains(&0))
        || std::str::from_utf8(&head).is_err_and(|error| error.error_len().is_none());
    let mut near = None;
    if is_plain {
        let start = String::from_utf8_lossy(&head);
        let start = start.strip_prefix('\u{feff}').unwrap_or(&start);
        for (format, is, read) in record_formats() {
            match is(start) {
                Recognised::Yes => {
                    let mut all = opened.all;
                    skip_mark(&mut all, &head, &mut stripped)?;
                    let reports = checked(read(&mut Records::new(all))?, format)?;
                    return Ok(Contents { reports, stripped, refused: Vec::new() });
                }
                Recognised::Near(why) => near = near.or(Some((format, why))),
                Recognised::No => {}
            }
        }
    }
    let bytes = unpack::document(opened.all)?;
    let text = decoded(&bytes).map_err(|fault| Place::root("the document").fault(fault))?;
    if text.len() < bytes.len() || matches!(text, Cow::Owned(_)) {
        stripped.insert(if matches!(text, Cow::Owned(_)) { "UTF-16" } else { "a byte order mark" });
    }
    if let Cow::Owned(_) = text
        && let Some(reports) = records(&String::from_utf8_lossy(&text))
    {
        return Ok(Contents { reports: reports?, stripped, refused: Vec::new() });
    }
    if is_json(&text) {
        let (reports, refused) = documents(&text)?;
        return Ok(Contents { reports, stripped, refused });
    }
    let (reports, refused) = texts(&text, near, &mut stripped)?;
    Ok(Contents { reports, stripped, refused })
}

/// Reads the text of a format of records, if it is of one.
pub(super) fn records(text: &str) -> Option<Result<Vec<Report>, Fault>> {
    let (format, _, read) = record_formats().find(|(_, is, _)| is(text) == Recognised::Yes)?;
    Some(read(&mut Records::new(text.as_bytes())).and_then(|reports| checked(reports, format)))
}

type ReadRecords = fn(&mut dyn Read) -> Result<Vec<Report>, Fault>;

fn record_formats() -> impl Iterator<Item = (&'static Format, fn(&str) -> Recognised, ReadRecords)> {
    FORMATS.iter().filter_map(|format| match format.reader {
        Reader::Records { is, read } => Some((format, is, read)),
        _ => None,
    })
}

fn skip_mark(all: &mut impl Read, head: &[u8], stripped: &mut BTreeSet<&'static str>) -> Result<(), Fault> {
    if head.starts_with(b"\xef\xbb\xbf") {
        stripped.insert("a byte order mark");
        all.read_exact(&mut [0; 3]).map_err(|error| unpack::to_fault(&error))?;
    }
    Ok(())
}

pub(super) fn checked(mut reports: Vec<Report>, format: &'static Format) -> Result<Vec<Report>, Fault> {
    if reports.len() > REPORTS_MAX {
        return Err(Place::root("the file").fault(format_args!("has more than {REPORTS_MAX} reports")));
    }
    for report in &mut reports {
        check::finish(report, format).map_err(|fault| match &report.name {
            Some(name) => Fault { place: format!("{}: {}", shown(name), fault.place), ..fault },
            None => fault,
        })?;
    }
    if reports.is_empty() {
        return Err(Place::root("the file").fault(format_args!("is {}, but has no results", format.title)));
    }
    Ok(reports)
}

/// Reads a summary of any format with one report: k6's own, or the values of another tool. The caller must limit its
/// size.
///
/// Fails with the first error found. A summary that was read has HTTP requests and a duration, and all of its values
/// could have been measured. If it reports the load separately, it has only that: see [`load`](super::load).
pub fn parse(bytes: &[u8]) -> Result<Summary, Fault> {
    let summary = parse_own(bytes)?;
    crate::reports::values::judge_requests(&summary)?;
    Ok(summary)
}

/// Reads the summary of a run, of which more is known: it may have no HTTP requests, and then no duration.
pub fn parse_own(bytes: &[u8]) -> Result<Summary, Fault> {
    let Contents { mut reports, refused, .. } = read(bytes)?;
    let count = reports.len() + refused.len();
    match reports.pop() {
        Some(report) if count == 1 => report.into_summary(),
        _ => Err(Place::root("the file").fault(format_args!("has {count} reports: put each into a file of its own"))),
    }
}

/// Whether the input is read as JSON; text reports never start like JSON.
pub fn is_json(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    let word = [&b"null"[..], b"true", b"false"].into_iter().any(|word| start.starts_with(word));
    // A text may begin with the time of a log's line, with `[INFO]`, or with the quoted name of a column.
    let is_number = || start.trim_ascii_end().iter().all(|byte| b"-+.eE0123456789".contains(byte));
    let is_all_json = || serde_json::Deserializer::from_slice(start).into_iter::<IgnoredAny>().all(|one| one.is_ok());
    word || match start {
        [] | [b'{', ..] => true,
        [b'-' | b'0'..=b'9', ..] => is_number(),
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{' | b'[', ..]) || is_all_json(),
        [b'"', ..] => is_all_json(),
        _ => false,
    }
}

/// Reads a file of JSON documents. Fails if all of them are refused.
fn documents(bytes: &[u8]) -> Result<Found, Fault> {
    let unreadable = || match crate::reports::json::read(bytes) {
        Err(fault) => fault,
        Ok(_) => Place::root("the document").fault("is not valid UTF-8"),
    };
    let text = std::str::from_utf8(bytes).map_err(|_| unreadable())?;
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let (mut reports, mut refused, mut count) = (Vec::new(), Vec::new(), 0);
    let (mut line, mut counted) = (1, 0);
    while let Some(value) = values.next() {
        let Ok(value) = value else {
            // The result may be followed by lines of another program, or by zsh's mark.
            let rest = text.get(values.byte_offset()..).unwrap_or_default().trim_start_matches([' ', '\r']);
            let is_other = rest.starts_with('\n') && !rest.contains(['{', '[']) || rest.trim_end() == "%";
            if count == 0 || !is_other {
                return Err(unreadable());
            }
            break;
        };
        count += 1;
        if count > REPORTS_MAX {
            return Err(Place::root("the file").fault(format_args!("has more than {REPORTS_MAX} documents")));
        }
        let start = values.byte_offset() - value.get().len();
        // With what is before it, so that places in it are those of the file.
        let whole = if count == 1 { text.get(..values.byte_offset()).unwrap_or_default() } else { value.get() };
        // Counted from the document before.
        line += text.get(counted..start).map_or(0, |between| between.matches('\n').count());
        counted = start;
        let line = Some(line);
        match document(whole).and_then(|(format, found)| checked(found, format)) {
            Ok(found) => reports.extend(found.into_iter().map(|report| Report { line, ..report })),
            Err(fault) if refused.len() < REFUSED_MAX => refused.push((fault, line)),
            Err(_) => {}
        }
    }
    let is_one = count == 1;
    if is_one {
        for report in &mut reports {
            report.line = None;
        }
    }
    let refused: Vec<Fault> = refused.into_iter().map(|(fault, line)| at_line(fault, line, is_one)).collect();
    match refused.first() {
        _ if count == 0 => Err(unreadable()),
        Some(first) if reports.is_empty() => Err(first.clone()),
        _ => Ok((reports, refused)),
    }
}

/// Recognises and reads one document.
pub(super) fn document(text: &str) -> Result<(&'static Format, Vec<Report>), Fault> {
    let document = Document::new(text);
    if let Some(found) = entry::read(&document) {
        return found;
    }
    let mut near = None;
    for format in FORMATS {
        let Reader::Json { is, read } = format.reader else { continue };
        match is(&document) {
            Recognised::Yes => return Ok((format, read(&document)?)),
            Recognised::Near(why) => near = near.or(Some((format, why))),
            Recognised::No => {}
        }
    }
    // Says where it is damaged, if it is.
    crate::reports::json::read(text.as_bytes())?;
    let what = document.what();
    let place = Place::root("the document");
    if let Some((format, why)) = near {
        return Err(place.fault(format_args!("is {what} like {}, but {why}", format.title)));
    }
    let what = format!("is {what} of no known format: expected a result of {}", tools());
    Err(Fault { is_of_no_format: true, ..place.fault(what) })
}

/// The names of all tools, in the order of the table.
pub(super) fn tools() -> String {
    let mut tools: Vec<&str> = Vec::new();
    for format in FORMATS {
        if !tools.contains(&format.tool) && format.tool != "unknown" {
            tools.push(format.tool);
        }
    }
    tools.join(", ")
}

/// Reports, and why others were refused.
pub(super) type Found = (Vec<Report>, Vec<Fault>);

/// Adds the line of a report to a fault that does not have one.
pub(super) fn at_line(fault: Fault, line: Option<usize>, is_one: bool) -> Fault {
    match line {
        Some(line) if !is_one && !fault.place.starts_with("line ") => {
            Fault { place: format!("line {line}: {}", fault.place), ..fault }
        }
        _ => fault,
    }
}
