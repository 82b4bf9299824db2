//! Line-by-line differences between two revisions of a scenario. Pure.

use std::{collections::BTreeSet, time::Duration};

use brewbench_wire::{
    hex,
    scenario::{Content, Scenario},
};
use sha2::{Digest, Sha256};
use similar::{ChangeTag, TextDiff};

use super::upload::lines;

/// Unchanged lines shown around a difference.
const CONTEXT: usize = 3;
/// After this time the shown difference need not be the smallest one.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum number of lines shown of one part.
const MAX_LINES: usize = 2_000;

/// One part that differs: the script, a file, or the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffPart {
    /// Script, parameters or the name of the file.
    pub title: String,
    /// Changed lines with the lines around them.
    pub hunks: Vec<Vec<DiffLine>>,
    /// Number of lines that are not shown.
    pub more: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// `+`, `-` or a space.
    pub sign: char,
    /// Without the line ending.
    pub text: String,
}

impl DiffLine {
    /// The class in `app.css`.
    pub fn class(&self) -> &'static str {
        match self.sign {
            '+' => "came",
            '-' => "went",
            _ => "stayed",
        }
    }

    /// Prefix for screen readers.
    pub fn word(&self) -> &'static str {
        match self.sign {
            '+' => "added: ",
            '-' => "removed: ",
            _ => "",
        }
    }
}

/// Returns all parts that differ, the script first.
pub fn differences(from: &Scenario, to: &Scenario) -> Vec<DiffPart> {
    let script = |scenario: &Scenario| scenario.script().to_owned();
    let title =
        if from.entry == to.entry { "Script".to_owned() } else { format!("Script: {} → {}", from.entry, to.entry) };
    let mut parts = vec![part(title, &script(from), &script(to))];
    parts.push(part("Parameters".to_owned(), &lines(&from.defaults), &lines(&to.defaults)));
    let files: BTreeSet<&String> = from.others().chain(to.others()).map(|(path, _)| path).collect();
    for path in files.into_iter().filter(|path| ![&from.entry, &to.entry].contains(path)) {
        let (before, after) = (from.files.get(path), to.files.get(path));
        if before != after {
            parts.push(part(path.clone(), &shown(before), &shown(after)));
        }
    }
    parts.retain(|part| !part.hunks.is_empty());
    parts
}

/// The text of a file; of another one its size and hash.
fn shown(content: Option<&Content>) -> String {
    let Some(content) = content else { return String::new() };
    content.text().map_or_else(|| describe(content), str::to_owned)
}

/// Describes a file that is not a text.
pub fn describe(content: &Content) -> String {
    let bytes = content.bytes();
    format!("{} bytes, SHA-256 {}", bytes.len(), hex(&Sha256::digest(bytes)))
}

fn part(title: String, from: &str, to: &str) -> DiffPart {
    let diff = TextDiff::configure().timeout(TIMEOUT).diff_lines(from, to);
    let mut room = MAX_LINES;
    let mut more = 0;
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        let changes = group.iter().flat_map(|op| diff.iter_changes(op));
        let lines: Vec<DiffLine> = changes.map(|change| line(change.tag(), change.value())).collect();
        let shown = lines.len().min(room);
        more += lines.len() - shown;
        room -= shown;
        hunks.push(lines.into_iter().take(shown).collect());
    }
    DiffPart { title, hunks, more }
}

fn line(tag: ChangeTag, text: &str) -> DiffLine {
    let sign = match tag {
        ChangeTag::Insert => '+',
        ChangeTag::Delete => '-',
        ChangeTag::Equal => ' ',
    };
    DiffLine { sign, text: text.trim_end_matches(['\n', '\r']).to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(script: &str, file: Option<&str>) -> Scenario {
        let scenario = Scenario::of_script("mine", script);
        file.into_iter().fold(scenario, |all, text| all.with_file("a.json", text))
    }

    fn signs(part: &DiffPart) -> String {
        part.hunks.iter().flatten().map(|line| line.sign).collect()
    }

    #[test]
    fn changed_lines_are_shown_with_context() {
        let old: String = (0..20).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let parts = differences(&scenario(&old, None), &scenario(&old.replace("line 10\n", "line ten\n"), None));
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].title.as_str(), signs(&parts[0]).as_str()), ("Script", "   -+   "));
        assert_eq!(differences(&scenario(&old, None), &scenario(&old, None)), []);
    }

    #[test]
    fn added_and_removed_files_are_differences() {
        let parts = differences(&scenario("x", None), &scenario("x", Some("[]")));
        assert_eq!((parts[0].title.as_str(), signs(&parts[0]).as_str()), ("a.json", "+"));
        let parts = differences(&scenario("x", Some("[]")), &scenario("x", None));
        assert_eq!(signs(&parts[0]), "-");
        let picture = |byte| scenario("x", None).with_file("a.jpg", vec![0xff, byte]);
        let parts = differences(&picture(1), &picture(2));
        assert_eq!((parts[0].title.as_str(), signs(&parts[0]).as_str()), ("a.jpg", "-+"));
        assert!(parts[0].hunks[0][0].text.starts_with("2 bytes, SHA-256 "));
    }

    #[test]
    fn long_differences_are_truncated() {
        let old: String = (0..3_000).map(|n| format!("old {n}\n")).collect::<Vec<_>>().concat();
        let parts = differences(&scenario(&old, None), &scenario("", None));
        assert_eq!((signs(&parts[0]).len(), parts[0].more), (MAX_LINES, 1_000));
    }
}
