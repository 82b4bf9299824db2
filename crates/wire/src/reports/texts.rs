//! Finds the reports of every format in a text, among other text, and has each of them read. Pure.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::reports::formats::format::REPORTS_MAX;
use crate::reports::formats::{FORMATS, Format, Reader, Recognised};
use crate::reports::input::document::Document;
use crate::reports::input::lines::{self, ReportLine};
use crate::reports::input::{code_page, prefix};
use crate::reports::read::{Found, REFUSED_MAX, at_line, checked, document, records, tools};
use crate::reports::report::Report;
use crate::reports::validate::{Fault, Place, shown};

/// Maximum bytes of JSON of other programs that are read.
const OTHER_JSON_MAX: usize = 64 << 20;

/// How far above a report its heading may be, lines.
const HEADING_ABOVE: usize = 6;

/// Maximum number of places in a text that are tried as JSON and are none.
const JSON_TRIES: usize = 50;

/// A report found in a text.
struct Block {
    start: usize,
    kind: Kind,
}

enum Kind {
    Text(&'static Format, fn(&[ReportLine]) -> Result<Report, Fault>),
    /// Already read, up to this line.
    Json(usize, Vec<Report>),
}

/// Reads the reports in a text.
pub(super) fn texts(
    bytes: &[u8],
    near: Option<(&'static Format, &'static str)>,
    stripped: &mut BTreeSet<&'static str>,
) -> Result<Found, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let restored = code_page::restored(text);
    if restored.is_some() {
        stripped.insert("characters that were read in another encoding");
    }
    let mut lines = lines::cleaned(restored.as_deref().unwrap_or(text), stripped);
    let mut blocks = blocks(&lines)?;
    let mut prefixes = BTreeSet::new();
    let plain = prefix::without(&lines, &mut prefixes);
    if !prefixes.is_empty() {
        let found = self::blocks(&plain)?;
        if !found.is_empty() && found.len() >= blocks.len() {
            stripped.append(&mut prefixes);
            (lines, blocks) = (plain.clone(), found);
        }
    }
    if blocks.is_empty() {
        // Records behind prefixes, or in a block of code.
        let rows: Vec<&str> = plain.iter().filter(|line| !line.is_fence()).map(|line| line.text.as_str()).collect();
        return match records(&rows.join("\n")) {
            Some(reports) => {
                stripped.extend(prefixes);
                Ok((reports?, Vec::new()))
            }
            None => Err(unknown(&lines, near)),
        };
    }
    if lines.iter().any(ReportLine::is_fence) {
        stripped.insert("the fences of Markdown");
    }
    read_blocks(&lines, blocks)
}

/// Fails if all reports are refused.
fn read_blocks(lines: &[ReportLine], blocks: Vec<Block>) -> Result<Found, Fault> {
    let (mut reports, mut refused) = (Vec::new(), Vec::new());
    let (mut previous, mut end) = (0, 0);
    let next: Vec<usize> = blocks.iter().skip(1).map(|block| block.start).chain([lines.len()]).collect();
    let is_one = blocks.len() == 1;
    for (Block { start, kind }, next) in blocks.into_iter().zip(next) {
        let between = lines.get(previous..start).unwrap_or_default();
        let heading = heading(between, between.len().min(start - end.min(start)));
        previous = start;
        let line = lines.get(start).map(|line| line.number);
        let found = match kind {
            Kind::Json(after, found) => {
                end = after;
                Ok(found)
            }
            Kind::Text(format, read) => {
                let block = lines.get(start..next).unwrap_or_default();
                let fence = block.iter().position(ReportLine::is_fence).unwrap_or(block.len());
                end = start + fence;
                read(block.get(..fence).unwrap_or_default()).and_then(|report| checked(vec![report], format))
            }
        };
        let placed = |report: Report| Report { heading: heading.clone(), line: line.filter(|_| !is_one), ..report };
        match found {
            Ok(found) => reports.extend(found.into_iter().map(placed)),
            Err(fault) if refused.len() < REFUSED_MAX => refused.push(at_line(fault, line, is_one)),
            Err(_) => {}
        }
    }
    match refused.first() {
        Some(first) if reports.is_empty() => Err(first.clone()),
        _ => Ok((reports, refused)),
    }
}

/// Returns the last heading of Markdown before a report, or else the text right above it, among the lines that are `free`
/// of other reports.
fn heading(above: &[ReportLine], free: usize) -> Option<String> {
    let is_heading = |line: &&ReportLine| {
        let is_sharp = line.text.starts_with('#') && line.text.trim_start_matches('#').starts_with(' ');
        // autocannon prints it.
        is_sharp && !line.text.starts_with("# of samples:")
    };
    let is_text = |line: &&ReportLine| !line.is_fence() && line.text.contains(|letter: char| letter.is_alphanumeric());
    let found = above
        .iter()
        .rev()
        .find(is_heading)
        .or_else(|| above.iter().rev().take(free.min(HEADING_ABOVE)).find(is_text))?;
    let text =
        found.text.trim_start_matches(['#', ' ', '$', '=', '-', '*', '>']).trim_end_matches(['*', '=', '-', ':', ' ']);
    (!text.is_empty()).then(|| text.chars().take(200).collect())
}

/// Finds all reports in a text, ascending.
fn blocks(lines: &[ReportLine]) -> Result<Vec<Block>, Fault> {
    let (mut blocks, mut taken): (Vec<Block>, BTreeSet<usize>) = (Vec::new(), BTreeSet::new());
    for format in FORMATS {
        let Reader::Text { starts, read, .. } = format.reader else { continue };
        let found = starts(lines);
        if found.len() > REPORTS_MAX {
            return Err(Place::root("the file").fault(format_args!("has more than {REPORTS_MAX} reports")));
        }
        for start in found {
            if taken.insert(start) {
                blocks.push(Block { start, kind: Kind::Text(format, read) });
            }
        }
    }
    blocks.extend(json_blocks(lines)?);
    blocks.sort_by_key(|block| block.start);
    // Lines of a document begin no report.
    let ends: Vec<(usize, usize)> = blocks
        .iter()
        .filter_map(|block| match block.kind {
            Kind::Json(end, _) => Some((block.start, end)),
            Kind::Text(..) => None,
        })
        .collect();
    blocks.retain(|block| !ends.iter().any(|(start, end)| *start < block.start && block.start < *end));
    Ok(blocks)
}

/// Finds and reads JSON documents among the lines of a text.
fn json_blocks(lines: &[ReportLine]) -> Result<Vec<Block>, Fault> {
    let all: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let all = all.join("\n");
    let (mut blocks, mut tries, mut other_bytes) = (Vec::new(), 0, 0);
    let (mut at, mut offset) = (0, 0);
    while let Some(line) = lines.get(at) {
        let rest = all.get(offset..).unwrap_or_default();
        let next = offset + line.text.len() + 1;
        if !line.text.starts_with(['{', '[']) || tries == JSON_TRIES || other_bytes > OTHER_JSON_MAX {
            (at, offset) = (at + 1, next);
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else {
            tries += 1;
            (at, offset) = (at + 1, next);
            continue;
        };
        let length = value.get().matches('\n').count() + 1;
        let document_of = Document::new(value.get());
        let is_known = FORMATS.iter().any(|format| match format.reader {
            Reader::Json { is, .. } => is(&document_of) == Recognised::Yes,
            _ => false,
        });
        if is_known {
            let (format, found) = document(value.get())?;
            blocks.push(Block { start: at, kind: Kind::Json(at + length, checked(found, format)?) });
            let after: usize = lines.iter().skip(at).take(length).map(|line| line.text.len() + 1).sum();
            (at, offset) = (at + length, offset + after);
        } else {
            other_bytes += value.get().len();
            (at, offset) = (at + 1, next);
        }
    }
    Ok(blocks)
}

/// Says that no format is recognised, and which ones come near.
fn unknown(lines: &[ReportLine], near: Option<(&'static Format, &'static str)>) -> Fault {
    let near_text = FORMATS.iter().find_map(|format| {
        let Reader::Text { near, .. } = format.reader else { return None };
        let (line, why) = near
            .iter()
            .find_map(|(words, why)| lines.iter().find(|line| line.text.contains(words)).map(|line| (line, *why)))?;
        Some(line.fault(format_args!("\"{}\" is like {}, but {why}", shown(&line.text), format.title)))
    });
    if let Some(fault) = near_text {
        return fault;
    }
    if let Some((format, why)) = near {
        return Place::root("line 1").fault(format_args!("is like {}, but {why}", format.title));
    }
    let start = lines.first().map_or("nothing", |line| line.text.as_str());
    let what = format!("\"{}\" is neither JSON nor of a known format: expected a result of {}", shown(start), tools());
    Fault { is_of_no_format: true, ..Place::root("line 1").fault(what) }
}

fn not_utf8(bytes: &[u8], valid: usize) -> Fault {
    let line = bytes.iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
    Fault { is_of_no_format: true, ..Place::root(&format!("line {line}")).fault("is not valid UTF-8") }
}
