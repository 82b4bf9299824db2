//! Removes what a log or an e-mail puts before each line: a time, the name of a container, or `>`. Pure.

use std::collections::BTreeSet;

use super::lines::ReportLine;

/// Prefixes that may stand before each other: `k6-1  | 2026-11-25T10:00:00Z `.
const MAX_PREFIXES: usize = 4;

/// Share of the lines that have a prefix; the others were written by something else.
const MOST: f64 = 0.8;

/// Splits a line into a prefix and the rest.
type Prefix = fn(&str) -> Option<(&str, &str)>;

/// What may stand before a line.
const PREFIXES: [(Prefix, Order, &str); 6] = [
    (step, Order::Kept, "the steps of a CI log"),
    (time, Order::Kept, "the times of a log"),
    (bracketed_time, Order::Kept, "the times of a log"),
    (stream, Order::Kept, "the names of streams"),
    (name, Order::ByPrefix, "the names of containers"),
    (quote, Order::Kept, "the > of a quotation"),
];

/// The order of lines without their prefixes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Kept,
    /// Lines with the same prefix stand together.
    ByPrefix,
}

/// Returns the lines without the prefixes that most of them have. Lines of several containers are put together by
/// container.
pub fn without(lines: &[ReportLine], stripped: &mut BTreeSet<&'static str>) -> Vec<ReportLine> {
    let mut lines = lines.to_vec();
    for _ in 0..MAX_PREFIXES {
        let found = PREFIXES.iter().find_map(|(prefix, order, what)| Some((strip(&lines, *prefix, *order)?, *what)));
        let Some((rest, what)) = found else { break };
        stripped.insert(what);
        lines = rest;
    }
    lines
}

fn strip(lines: &[ReportLine], prefix: Prefix, order: Order) -> Option<Vec<ReportLine>> {
    let mut split: Vec<(&str, ReportLine)> = Vec::new();
    let mut count = 0;
    for line in lines {
        let (before, rest) = prefix(&line.text).map_or(("", line.text.as_str()), |(before, rest)| {
            count += 1;
            (before, rest)
        });
        split.push((before, ReportLine { number: line.number, text: rest.trim().to_owned() }));
    }
    if count == 0 || (f64::from(count)) < MOST * lines.len() as f64 {
        return None;
    }
    if order == Order::ByPrefix {
        split.sort_by_key(|(before, _)| *before);
    }
    Some(split.into_iter().map(|(_, line)| line).filter(|line| !line.text.is_empty()).collect())
}

/// `2026-11-25T10:00:00.123Z …`, or with a comma before the fraction.
fn time(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let pattern = "0000-00-00T00:00:00";
    let fits = |(letter, expected): (u8, u8)| match expected {
        b'0' => letter.is_ascii_digit(),
        expected => letter == expected,
    };
    let fraction = word.get(pattern.len()..).filter(|_| word.bytes().zip(pattern.bytes()).all(fits))?;
    // In a table other columns follow.
    let is_column = fraction.strip_prefix(',').unwrap_or(fraction).contains([',', ';', '\t']);
    (!is_column).then_some((word, rest))
}

/// `[2026-11-25 10:00:00.123] …`, `[10:00:00] …`
fn bracketed_time(line: &str) -> Option<(&str, &str)> {
    let (inside, rest) = line.strip_prefix('[')?.split_once(']')?;
    let is_of_time = |letter: char| letter.is_ascii_digit() || " -/:.,+TZ".contains(letter);
    (inside.matches(':').count() >= 2 && inside.chars().all(is_of_time)).then_some((inside, rest))
}

/// `stdout F …`, after the time in a log as Kubernetes stores it.
fn stream(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("stdout F").or_else(|| line.strip_prefix("stderr F"))?;
    Some(("", rest))
}

/// `k6_1  | …`
fn name(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.split_once('|')?;
    let name = name.trim_end();
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    (!name.is_empty() && name.chars().all(is_of_name)).then_some((name, rest))
}

/// `build\tRun wrk\t2026-11-25T10:00:00.123Z …`
fn step(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.split_once('\t')?;
    let (_, rest) = rest.split_once('\t')?;
    time(rest.trim_start_matches('\u{feff}'))
}

/// `> …`
fn quote(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('>').map(|rest| (">", rest))
}
