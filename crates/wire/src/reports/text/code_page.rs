//! Finds a report of k6 whose marks were lost when its UTF-8 was read as another encoding. Without them its thresholds
//! would be missing without a word.

use super::super::builtin;
use super::line::ReportLine;
use crate::reports::validate::Fault;

/// The first two characters that `✓`, `✗` and `█` become in the code pages 437, 850 and 1252, and in Latin-1.
const GARBLED: [&str; 8] = ["Γ£", "Γû", "Ô£", "Ôû", "âœ", "â–", "â\u{9c}", "â\u{96}"];

/// Titles of sections, after a mark.
const TITLES: [&str; 2] = ["TOTAL RESULTS", "THRESHOLDS"];

const ADVICE: &str = "k6's marks are not readable, so its thresholds would be missing: save its output as UTF-8 (in PowerShell \
                      first: `[Console]::OutputEncoding = [Text.Encoding]::UTF8`)";

/// Fails if a line was read in another encoding.
pub(super) fn check(lines: &[ReportLine]) -> Result<(), Fault> {
    let is_garbled = |line: &&ReportLine| {
        let text = line.text.as_str();
        GARBLED.iter().any(|start| text.starts_with(start)) || has_lost_mark(text)
    };
    lines.iter().find(is_garbled).map_or(Ok(()), |line| Err(line.fault(ADVICE)))
}

/// Whether a title or a metric stands after something else than its mark.
fn has_lost_mark(text: &str) -> bool {
    let plain = text.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let is_title = TITLES.contains(&plain.trim_end()) && !text.starts_with('█');
    let is_marked = ['✓', '✗', '{'].iter().any(|mark| text.starts_with(*mark));
    let name = plain.split_once('.').map_or("", |(name, _)| name.trim_end());
    is_title || plain.len() < text.len() && !is_marked && builtin::lookup(name).is_some()
}
