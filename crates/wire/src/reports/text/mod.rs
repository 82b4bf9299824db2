//! Text output at the end of a test: k6's text report and wrk's output.
//!
//! Text has fewer values than a summary, and rounds them. Missing values stay absent, and existing ones are not
//! corrected: neither is derived from others. A truncated text is rejected or has fewer values, never wrong ones.

mod code_page;
mod k6;
mod line;
mod prefix;
mod units;
mod wrk;

use std::collections::BTreeMap;

use self::line::ReportLine;
use crate::reports::summary::{Contains, Kind, Metric, Summary};
use crate::reports::validate::{Fault, Place, shown};

/// Reads a text. The caller has checked that it is not JSON.
pub(super) fn read(bytes: &[u8]) -> Result<Summary, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let lines: Vec<ReportLine> = text
        .lines()
        .enumerate()
        .map(|(place, text)| ReportLine { number: place + 1, text: uncoloured(text).trim().to_owned() })
        .filter(|line| !line.text.is_empty())
        .collect();
    let is_known = |lines: &[ReportLine]| wrk::recognises(lines) || k6::recognises(lines);
    let lines =
        if is_known(&lines) { lines } else { Some(prefix::without(&lines)).filter(|it| is_known(it)).unwrap_or(lines) };
    if wrk::recognises(&lines) {
        wrk::read(&lines)
    } else if k6::recognises(&lines) {
        code_page::check(&lines)?;
        k6::read(&lines)
    } else {
        let start = lines.first().map_or("nothing", |line| line.text.as_str());
        Err(Place::root("line 1")
            .fault(format_args!("\"{}\" is neither JSON nor k6's text report nor wrk's output", shown(start))))
    }
}

fn not_utf8(bytes: &[u8], valid: usize) -> Fault {
    let line = bytes.iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
    Place::root(&format!("line {line}")).fault("is not valid UTF-8")
}

/// Removes the escape sequences of terminal colours.
fn uncoloured(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        // A sequence ends with its first letter, or else at the end of the line.
        rest = after.find(|letter: char| letter.is_ascii_alphabetic()).map_or("", |end| &after[end + 1..]);
    }
    text + rest
}

fn metric(kind: Kind, contains: Contains, values: impl IntoIterator<Item = (&'static str, f64)>) -> Metric {
    let values: BTreeMap<String, f64> = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Metric { kind, contains, values, thresholds: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_colours_are_removed() {
        assert_eq!(uncoloured("\u{1b}[32m✓\u{1b}[0m status\u{1b}[1;2"), "✓ status");
        assert_eq!(uncoloured("plain [x]"), "plain [x]");
    }

    #[test]
    fn an_unknown_format_is_reported_with_its_start() {
        let fault = read(b"\n  ab - ApacheBench\n").expect_err("unknown");
        assert!(fault.to_string().starts_with("line 1: \"ab - ApacheBench\" is neither"), "{fault}");
        assert_eq!(read(b"ok\n\xff").expect_err("not UTF-8").to_string(), "line 2: is not valid UTF-8");
    }
}
