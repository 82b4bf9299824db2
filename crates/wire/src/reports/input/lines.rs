//! The lines of a text, cleaned. Pure.

use std::collections::BTreeSet;

use crate::reports::validate::{Fault, Place};

/// A trimmed line without colours, numbered from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportLine {
    /// From 1.
    pub number: usize,
    /// Without what surrounds it.
    pub text: String,
}

impl ReportLine {
    /// Returns a fault of this line.
    pub fn fault(&self, what: impl std::fmt::Display) -> Fault {
        Place::root(&format!("line {}", self.number)).fault(what)
    }

    /// Whether it is the fence of a block of code in Markdown.
    pub fn is_fence(&self) -> bool {
        self.text.starts_with("```") || self.text.starts_with("~~~")
    }
}

/// Splits a text into its lines without colours and progress bars; empty ones are dropped. `stripped` notes what was
/// removed.
pub fn cleaned(text: &str, stripped: &mut BTreeSet<&'static str>) -> Vec<ReportLine> {
    let mut lines: Vec<ReportLine> = Vec::new();
    for (place, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let plain = uncoloured(line);
        if plain.len() < line.len() {
            stripped.insert("terminal colours");
        }
        // A terminal shows what was written last.
        let mut parts = plain.rsplit('\r').map(str::trim).filter(|part| !part.is_empty());
        let Some(last) = parts.next() else { continue };
        if parts.next().is_some() {
            stripped.insert("progress bars");
        }
        lines.push(ReportLine { number: place + 1, text: last.to_owned() });
    }
    if let Some(last) = lines.last_mut()
        && let Some(plain) = without_prompt(&last.text)
    {
        last.text = plain.to_owned();
        stripped.insert("the % by which zsh marks a missing end of line");
    }
    lines.retain(|line| !line.text.is_empty());
    lines
}

/// Removes zsh's mark from the last line: a `%` that is not of a percentage.
fn without_prompt(line: &str) -> Option<&str> {
    let rest = line.strip_suffix('%')?;
    let word = rest.rsplit(' ').next().unwrap_or_default();
    let is_percentage = crate::reports::time::number(word).is_some();
    (!is_percentage).then(|| rest.trim_end())
}

/// Removes the escape sequences of terminals.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> (Vec<String>, Vec<&'static str>) {
        let mut stripped = BTreeSet::new();
        let lines = cleaned(text, &mut stripped);
        (lines.into_iter().map(|line| line.text).collect(), stripped.into_iter().collect())
    }

    #[test]
    fn terminal_colours_are_removed() {
        assert_eq!(uncoloured("\u{1b}[32m✓\u{1b}[0m status\u{1b}[1;2"), "✓ status");
        assert_eq!(uncoloured("plain [x]"), "plain [x]");
    }

    #[test]
    fn a_progress_bar_shows_its_last_state() {
        let (lines, stripped) = texts("\r 0 / 4\r 2 / 4\r 4 / 4 100.00%\r\nDone!\r\n\n");
        assert_eq!(lines, ["4 / 4 100.00%", "Done!"]);
        assert_eq!(stripped, ["progress bars"]);
    }

    #[test]
    fn the_mark_of_zsh_is_no_percentage() {
        let cases = [
            ("Transfer/sec: 1.7MB%", "Transfer/sec: 1.7MB"),
            ("vus: 1 min=1 max=1 %", "vus: 1 min=1 max=1"),
            ("vus: 1 min=1 max=1%", "vus: 1 min=1 max=1"),
            ("Success 95.00%", "Success 95.00%"),
            ("a\n%", "a"),
        ];
        for (text, plain) in cases {
            assert_eq!(texts(text).0, [plain], "{text}");
        }
    }
}
