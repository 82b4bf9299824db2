//! Errors in a summary: what is wrong, and where.

use std::fmt::{self, Write};

use serde::Serialize;

/// Maximum characters of a name quoted in a message.
const QUOTED_MAX: usize = 80;

/// Maximum steps of a place in a message; the middle of longer ones is omitted.
const STEPS_MAX: usize = 8;

/// Why a summary is rejected: a place and a sentence. Both are short and without control characters, but they contain
/// foreign text that a page has to escape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{place}: {what}")]
pub struct Fault {
    /// E.g. `metrics.http_req_duration.avg`, `line 3, column 7`.
    pub place: String,
    /// E.g. `-1 is negative`.
    pub what: String,
    /// Whether the file is of no known format: it may be no result at all.
    pub is_of_no_format: bool,
}

/// The path to a value in the document, kept on the stack while reading and formatted only for an error.
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) fn root(key: &'a str) -> Self {
        Self { parent: None, step: Step::Key(key) }
    }

    pub(super) fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    pub(super) fn fault(&self, what: impl fmt::Display) -> Fault {
        Fault { place: self.to_string(), what: what.to_string(), is_of_no_format: false }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps: Vec<_> = std::iter::successors(Some(self), |place| place.parent).collect();
        steps.reverse();
        let omitted = if steps.len() > STEPS_MAX { 2..steps.len() - 4 } else { 0..0 };
        for (number, place) in steps.iter().enumerate() {
            if omitted.contains(&number) {
                if number == omitted.start {
                    f.write_str(".…")?;
                }
                continue;
            }
            match place.step {
                Step::Key(key) if number == 0 => f.write_str(&shown(key))?,
                Step::Key(key) => write!(f, ".{}", shown(key))?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// Formats a foreign name for a message: shortened, with special characters escaped.
pub(super) fn shown(name: &str) -> String {
    let mut text = String::new();
    for (count, c) in name.chars().enumerate() {
        if count == QUOTED_MAX {
            text.push('…');
            break;
        }
        match c {
            '"' | '\'' => text.push(c),
            _ => text.extend(c.escape_debug()),
        }
    }
    text
}

/// Formats a number for a message.
pub(super) struct ShortNumber(pub(super) f64);

impl fmt::Display for ShortNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        write!(text, "{}", self.0)?;
        if text.len() > 24 { write!(f, "{:e}", self.0) } else { f.write_str(&text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_shortened_and_escaped() {
        assert_eq!(shown("a{b:\"c\"}"), "a{b:\"c\"}");
        assert_eq!(shown("a\n\u{202e}b"), "a\\n\\u{202e}b");
        assert_eq!(shown(&"ä".repeat(90)), format!("{}…", "ä".repeat(80)));
    }

    #[test]
    fn a_long_path_omits_its_middle() {
        fn deeper(place: &Place<'_>, levels: usize) -> String {
            if levels == 0 { place.to_string() } else { deeper(&place.index(levels), levels - 1) }
        }
        assert_eq!(deeper(&Place::root("groups"), 3), "groups[3][2][1]");
        assert_eq!(deeper(&Place::root("groups"), 20), "groups[20].…[4][3][2][1]");
    }

    #[test]
    fn numbers_of_any_size_are_short() {
        assert_eq!(ShortNumber(-1.0).to_string(), "-1");
        assert_eq!(ShortNumber(1.5).to_string(), "1.5");
        assert_eq!(ShortNumber(1e300).to_string(), "1e300");
        assert_eq!(ShortNumber(-5e-324).to_string(), "-5e-324");
    }
}
