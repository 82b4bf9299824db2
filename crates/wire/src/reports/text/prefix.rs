//! Removes what a log or an e-mail puts before each line: a time, the name of a container, or `>`.

use super::line::ReportLine;

/// Prefixes that may stand before each other: `k6-1  | 2026-11-25T10:00:00Z `.
const MAX_PREFIXES: usize = 3;

/// Returns the lines without the prefixes that all of them have.
pub(super) fn without(lines: &[ReportLine]) -> Vec<ReportLine> {
    let mut lines = lines.to_vec();
    for _ in 0..MAX_PREFIXES {
        let prefixes: [(Prefix, bool); 3] = [(time, false), (name, true), (quote, false)];
        let Some(stripped) = prefixes.into_iter().find_map(|prefix| strip(&lines, prefix)) else { break };
        lines = stripped;
    }
    lines
}

/// Splits a line into a prefix and the rest.
type Prefix = fn(&str) -> Option<(&str, &str)>;

/// Removes a prefix if all lines have it, and the same one if it `is_constant`. Empty lines are dropped.
fn strip(lines: &[ReportLine], (prefix, is_constant): (Prefix, bool)) -> Option<Vec<ReportLine>> {
    let split: Vec<(usize, &str, &str)> = lines
        .iter()
        .map(|line| prefix(&line.text).map(|(prefix, rest)| (line.number, prefix, rest.trim())))
        .collect::<Option<_>>()?;
    let (_, first, _) = split.first()?;
    let is_one = !is_constant || split.iter().all(|(_, other, _)| other == first);
    let rest = split.iter().filter(|(.., rest)| !rest.is_empty());
    is_one.then(|| rest.map(|(number, _, rest)| ReportLine { number: *number, text: (*rest).to_owned() }).collect())
}

/// `2026-11-25T10:00:00.123Z …`
fn time(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let pattern = "0000-00-00T00:00:00";
    let fits = |(letter, expected): (u8, u8)| match expected {
        b'0' => letter.is_ascii_digit(),
        expected => letter == expected,
    };
    (word.len() >= pattern.len() && word.bytes().zip(pattern.bytes()).all(fits)).then_some((word, rest))
}

/// `k6_1  | …`
fn name(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once('|')?;
    let name = name.trim_end();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    (!name.is_empty() && name.chars().all(is_of_name)).then_some((name, rest))
}

/// `> …`
fn quote(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('>').map(|rest| (">", rest))
}
