//! What tools print for people at the end of a test: k6's text report and wrk's output.
//!
//! Such a text has less than a summary and rounds what it has. What it doesn't have stays absent, what it says is taken
//! as it says it: neither is made up from the rest. A text that was cut off somewhere is refused, or has fewer figures;
//! it never has other ones.

mod k6;
mod units;
mod wrk;

use std::collections::BTreeMap;

use crate::reports::summary::{Contains, Kind, Metric, Summary};
use crate::reports::validate::{Fault, Place, shown};

/// A line, counted from 1, without what colours it and without the space around it.
#[derive(Clone, Debug)]
struct Line {
    number: usize,
    text: String,
}

impl Line {
    fn fault(&self, what: impl std::fmt::Display) -> Fault {
        Place::root(&format!("line {}", self.number)).fault(what)
    }
}

/// Reads a text. The caller has seen that it is no JSON.
pub(super) fn read(bytes: &[u8]) -> Result<Summary, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let lines: Vec<Line> = text
        .lines()
        .enumerate()
        .map(|(place, text)| Line { number: place + 1, text: uncoloured(text).trim().to_owned() })
        .filter(|line| !line.text.is_empty())
        .collect();
    if wrk::recognises(&lines) {
        wrk::read(&lines)
    } else if k6::recognises(&lines) {
        k6::read(&lines)
    } else {
        let start = lines.first().map_or("nothing", |line| line.text.as_str());
        Err(Place::root("line 1")
            .fault(format_args!("\"{}\" begins neither JSON nor k6's text report nor wrk's output", shown(start))))
    }
}

fn not_utf8(bytes: &[u8], valid: usize) -> Fault {
    let line = bytes.iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
    Place::root(&format!("line {line}")).fault("is no text in UTF-8")
}

/// Without the escape sequences by which a terminal colours it.
fn uncoloured(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        // A sequence ends with its first letter; one that has none goes on to the end.
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
    fn colours_of_a_terminal_go() {
        assert_eq!(uncoloured("\u{1b}[32m✓\u{1b}[0m status\u{1b}[1;2"), "✓ status");
        assert_eq!(uncoloured("plain [x]"), "plain [x]");
    }

    #[test]
    fn what_is_nothing_that_is_known_says_what_it_begins_with() {
        let fault = read(b"\n  ab - ApacheBench\n").expect_err("nobody's");
        assert!(fault.to_string().starts_with("line 1: \"ab - ApacheBench\" begins neither"), "{fault}");
        assert_eq!(read(b"ok\n\xff").expect_err("no text").to_string(), "line 2: is no text in UTF-8");
    }
}
