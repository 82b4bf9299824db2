//! Finds the reports of every format in a text, among other text, and has each of them read. Pure.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::de::IgnoredAny;
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

/// Lines of JSON that breaks off from which on it is no accident, though nothing is recognised in it.
const BROKEN_MIN: usize = 5;

/// A report found in a text.
struct Block {
    start: usize,
    kind: Kind,
}

enum Kind {
    Text(&'static Format, fn(&[ReportLine]) -> Result<Report, Fault>),
    /// Already read, up to this line.
    Json(usize, Result<Vec<Report>, Fault>),
}

/// Reads the reports in a text.
pub(super) fn texts(
    bytes: &[u8],
    near: Option<(&'static Format, Cow<'static, str>)>,
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
                found
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
    blocks.extend(json_blocks(lines));
    let is_other = |block: &Block| matches!(&block.kind, Kind::Json(_, Err(fault)) if fault.is_of_no_format);
    if blocks.iter().all(is_other) {
        return Ok(Vec::new());
    }
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
fn json_blocks(lines: &[ReportLine]) -> Vec<Block> {
    let all: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    let all = all.join("\n");
    let (mut blocks, mut tries, mut other_bytes) = (Vec::new(), 0, 0);
    let (mut at, mut offset, mut first_keys) = (0, 0, BTreeSet::new());
    while let Some(line) = lines.get(at) {
        let rest = all.get(offset..).unwrap_or_default();
        let mut length = 1;
        if may_begin_json(&line.text) && tries < JSON_TRIES && other_bytes <= OTHER_JSON_MAX {
            match serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>().next() {
                Some(Ok(value)) if is_known(&Document::new(value.get())) => {
                    length = value.get().matches('\n').count() + 1;
                    first_keys.extend(first_key(value.get()));
                    let found = document(value.get()).and_then(|(format, found)| checked(found, format));
                    blocks.push(Block { start: at, kind: Kind::Json(at + length, found) });
                }
                Some(Ok(value)) => other_bytes += value.get().len(),
                _ => {
                    let text = until_fence(rest);
                    let json = valid(text);
                    (tries, other_bytes) = (tries + 1, other_bytes + json.len());
                    if let Some((broken, fault)) = broken(text, json, line, &first_keys) {
                        length = broken;
                        blocks.push(Block { start: at, kind: Kind::Json(at + length, Err(fault)) });
                    }
                }
            }
        }
        offset += lines.iter().skip(at).take(length).map(|line| line.text.len() + 1).sum::<usize>();
        at += length;
    }
    blocks
}

/// Whether a line may begin a JSON document with objects, unlike `[INFO] …` and `{{ … }}`.
fn may_begin_json(line: &str) -> bool {
    let begins = |rest: &str, with: &[char]| rest.trim_start().is_empty() || rest.trim_start().starts_with(with);
    line.strip_prefix('{').is_some_and(|rest| begins(rest, &['"', '}']))
        || line.strip_prefix('[').is_some_and(|rest| begins(rest, &['{', '[']))
}

fn is_known(document: &Document<'_>) -> bool {
    FORMATS.iter().any(|format| matches!(format.reader, Reader::Json { is, .. } if is(document) == Recognised::Yes))
}

/// Returns the first key of an object.
fn first_key(json: &str) -> Option<&str> {
    let (key, _) = json.strip_prefix('{')?.split_once(':')?;
    Some(key.trim())
}

/// Returns a text until the fence of Markdown that ends it.
fn until_fence(text: &str) -> &str {
    let until = |fence: &str| text.find(fence).unwrap_or(text.len());
    text.get(..until("\n```").min(until("\n~~~"))).unwrap_or(text)
}

/// Returns the start of a text up to which it is JSON.
fn valid(text: &str) -> &str {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(error) if !error.is_eof() => {
            let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
            let end = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
            text.get(..end).unwrap_or_default()
        }
        _ => text,
    }
}

/// Returns why a result that is `json` up to a fault is not read, and how many lines of it there are. `None` if it is no
/// result, such as a single `{`. `first_keys` are those of the results above.
fn broken(text: &str, json: &str, line: &ReportLine, first_keys: &BTreeSet<&str>) -> Option<(usize, Fault)> {
    let after = text.get(json.len()..)?;
    let lines = json.matches('\n').count();
    let is_like_others = first_key(json).is_some_and(|key| first_keys.contains(key));
    let is_result = is_like_others || is_known(&Document::new(&completed(json)?));
    // What has an end is an example with comments or omissions.
    let mut others = after.lines().take_while(|line| !may_begin_json(line));
    let is_cut = lines >= BROKEN_MIN && others.all(|line| !line.starts_with(['}', ']']));
    if !is_result && !is_cut {
        return None;
    }
    let what = "JSON begins here that breaks off or is damaged: replace it by the complete result, or remove it";
    let fault = Fault { is_of_no_format: !is_result, ..line.fault(what) };
    Some((if after.is_empty() { lines + 1 } else { lines.max(1) }, fault))
}

/// Completes JSON that breaks off: after its last complete value all lists and objects are closed.
fn completed(json: &str) -> Option<String> {
    let (mut open, mut is_string, mut is_escaped, mut last) = (Vec::new(), false, false, None);
    for (at, byte) in json.bytes().enumerate() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            _ if is_string => {}
            b'{' => open.push('}'),
            b'[' => open.push(']'),
            b',' => last = Some((at, open.len())),
            b'}' | b']' => {
                open.pop();
                last = Some((at + 1, open.len()));
            }
            _ => {}
        }
    }
    let (end, depth) = last?;
    Some(json.get(..end)?.chars().chain(open.into_iter().take(depth).rev()).collect())
}

/// Says that no format is recognised, and which ones come near.
fn unknown(lines: &[ReportLine], near: Option<(&'static Format, Cow<'static, str>)>) -> Fault {
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
