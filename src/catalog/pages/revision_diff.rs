//! Line-by-line differences between two revisions of a scenario. Pure.

use std::{collections::BTreeSet, time::Duration};

use brewbench_wire::job::Scenario;
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
    let mut parts = vec![part("Script".to_owned(), &from.script, &to.script)];
    parts.push(part("Parameters".to_owned(), &lines(&from.defaults), &lines(&to.defaults)));
    let files: BTreeSet<&String> = from.files.keys().chain(to.files.keys()).collect();
    for name in files {
        let text = |scenario: &Scenario| scenario.files.get(name).cloned().unwrap_or_default();
        parts.push(part(name.clone(), &text(from), &text(to)));
    }
    parts.retain(|part| !part.hunks.is_empty());
    parts
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
    use std::collections::BTreeMap;

    use brewbench_wire::job::ScenarioKind;

    use super::*;

    fn scenario(script: &str, file: Option<&str>) -> Scenario {
        Scenario {
            name: "mine".to_owned(),
            kind: ScenarioKind::K6,
            script: script.to_owned(),
            files: file.map(|text| ("a.json".to_owned(), text.to_owned())).into_iter().collect(),
            defaults: BTreeMap::new(),
        }
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
    }

    #[test]
    fn long_differences_are_truncated() {
        let old: String = (0..3_000).map(|n| format!("old {n}\n")).collect::<Vec<_>>().concat();
        let parts = differences(&scenario(&old, None), &scenario("", None));
        assert_eq!((signs(&parts[0]).len(), parts[0].more), (MAX_LINES, 1_000));
    }
}
