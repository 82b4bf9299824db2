//! What differs between two revisions of a scenario, line by line. Pure.

use std::{collections::BTreeSet, time::Duration};

use brewbench_agent::wire::job::Scenario;
use similar::{ChangeTag, TextDiff};

use super::upload::lines;

/// Lines around a difference that are shown with it.
const AROUND: usize = 3;
/// After so long the difference need not be the smallest any more.
const PATIENCE: Duration = Duration::from_millis(200);
/// More lines of one part than this are not read by anybody.
const MOST_LINES: usize = 2_000;

/// One part that differs: the script, a file, or the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub title: String,
    /// Stretches that differ, each with the lines around.
    pub stretches: Vec<Vec<Line>>,
    /// Lines beyond those that are shown.
    pub more: usize,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// `+`, `-` or a space.
    pub sign: char,
    /// Without its end.
    pub text: String,
}

impl Line {
    /// The class in `app.css`.
    pub fn class(&self) -> &'static str {
        match self.sign {
            '+' => "came",
            '-' => "went",
            _ => "stayed",
        }
    }

    /// For who does not see the colour.
    pub fn word(&self) -> &'static str {
        match self.sign {
            '+' => "came: ",
            '-' => "went: ",
            _ => "",
        }
    }
}

/// Everything that differs, the script first.
pub fn differences(from: &Scenario, to: &Scenario) -> Vec<Part> {
    let mut parts = vec![part("Script".to_owned(), &from.script, &to.script)];
    parts.push(part("Parameters".to_owned(), &lines(&from.defaults), &lines(&to.defaults)));
    let files: BTreeSet<&String> = from.files.keys().chain(to.files.keys()).collect();
    for name in files {
        let text = |scenario: &Scenario| scenario.files.get(name).cloned().unwrap_or_default();
        parts.push(part(name.clone(), &text(from), &text(to)));
    }
    parts.retain(|part| !part.stretches.is_empty());
    parts
}

fn part(title: String, from: &str, to: &str) -> Part {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(from, to);
    let mut room = MOST_LINES;
    let mut more = 0;
    let mut stretches = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        let changes = group.iter().flat_map(|op| diff.iter_changes(op));
        let lines: Vec<Line> = changes.map(|change| line(change.tag(), change.value())).collect();
        let shown = lines.len().min(room);
        more += lines.len() - shown;
        room -= shown;
        stretches.push(lines.into_iter().take(shown).collect());
    }
    Part { title, stretches, more }
}

fn line(tag: ChangeTag, text: &str) -> Line {
    let sign = match tag {
        ChangeTag::Insert => '+',
        ChangeTag::Delete => '-',
        ChangeTag::Equal => ' ',
    };
    Line { sign, text: text.trim_end_matches(['\n', '\r']).to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brewbench_agent::wire::job::ScenarioKind;

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

    fn signs(part: &Part) -> String {
        part.stretches.iter().flatten().map(|line| line.sign).collect()
    }

    #[test]
    fn only_what_differs_is_shown_with_the_lines_around() {
        let old: String = (0..20).map(|n| format!("line {n}\n")).collect::<Vec<_>>().concat();
        let parts = differences(&scenario(&old, None), &scenario(&old.replace("line 10\n", "line ten\n"), None));
        assert_eq!(parts.len(), 1);
        assert_eq!((parts[0].title.as_str(), signs(&parts[0]).as_str()), ("Script", "   -+   "));
        assert_eq!(differences(&scenario(&old, None), &scenario(&old, None)), []);
    }

    #[test]
    fn a_file_that_came_and_one_that_went_are_differences() {
        let parts = differences(&scenario("x", None), &scenario("x", Some("[]")));
        assert_eq!((parts[0].title.as_str(), signs(&parts[0]).as_str()), ("a.json", "+"));
        let parts = differences(&scenario("x", Some("[]")), &scenario("x", None));
        assert_eq!(signs(&parts[0]), "-");
    }

    #[test]
    fn a_script_that_is_all_different_is_cut() {
        let old: String = (0..3_000).map(|n| format!("old {n}\n")).collect::<Vec<_>>().concat();
        let parts = differences(&scenario(&old, None), &scenario("", None));
        assert_eq!((signs(&parts[0]).len(), parts[0].more), (MOST_LINES, 1_000));
    }
}
