//! The reports of a file, such as a README with five of them, or a collection: each with its summary, and with a text of its
//! own. Pure.

use std::collections::BTreeSet;

use crate::reports::encoding::decoded;
use crate::reports::entry;
use crate::reports::formats::{self, Reader};
use crate::reports::hints::{Hints, is_named};
use crate::reports::input::unpack;
use crate::reports::read::{Contents, parse, read};
use crate::reports::report::Report;
use crate::reports::summary::Summary;
use crate::reports::validate::{Fault, Place};
use crate::reports::values;

/// A report of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What the file says, with its line and heading.
    pub report: Report,
    /// The same, as the summary of a run.
    pub summary: Summary,
    /// Its own text, if the file is not the report itself: its lines up to the next report, or an entry of a collection.
    pub text: Option<String>,
}

impl Part {
    /// Returns the name, or else the heading, of the report in its file.
    pub fn title(&self) -> Option<&str> {
        self.report.name.as_deref().or(self.report.heading.as_deref())
    }
}

/// Which reports of a file are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Choice<'a> {
    /// All.
    All,
    /// Those with these words in their names or headings.
    Named(&'a str),
    /// Those at these places, from 0, whatever the others are.
    Places(&'a BTreeSet<usize>),
}

impl Choice<'_> {
    fn has(self, place: usize, report: &Report) -> bool {
        match self {
            Self::All => true,
            Self::Named(words) => is_named(report.name.as_deref(), report.heading.as_deref(), words),
            Self::Places(places) => places.contains(&place),
        }
    }
}

/// Reads the reports of a file; at least one.
///
/// Fails if one of them can't be read, unless others were chosen by their places.
pub fn parts(bytes: &[u8], hints: &Hints, choice: Choice<'_>) -> Result<Vec<Part>, Fault> {
    let Contents { reports, refused, .. } = hints.read(bytes)?;
    if let Some(fault) = refused.into_iter().next().filter(|_| !matches!(choice, Choice::Places(_))) {
        return Err(fault);
    }
    let texts = texts(bytes, hints, &reports)?;
    let all = reports.into_iter().zip(texts).enumerate();
    let chosen = all.filter(|(place, (report, _))| choice.has(*place, report));
    let parts: Vec<Part> = chosen.map(|(_, (report, text))| part(report, text)).collect::<Result<_, _>>()?;
    let fault = |what: String| Err(Place::root("the file").fault(what));
    match choice {
        _ if !parts.is_empty() => Ok(parts),
        Choice::Named(words) => fault(format!("has no report named {words:?}")),
        Choice::All | Choice::Places(_) => fault("has none of these reports".to_owned()),
    }
}

fn part(report: Report, text: Option<String>) -> Result<Part, Fault> {
    let within = |fault: Fault| match (report.line, report.name.as_deref()) {
        (Some(line), _) => Fault { place: format!("the report at line {line}: {}", fault.place), ..fault },
        (None, Some(name)) => Fault { place: format!("{name:?}: {}", fault.place), ..fault },
        (None, None) => fault,
    };
    let summary = match &text {
        Some(text) => parse(text.as_bytes()).map_err(within)?,
        None => report.clone().into_summary()?,
    };
    values::judge_requests(&summary)?;
    Ok(Part { report, summary, text })
}

/// Returns a text for each report; none if the file is the only one.
fn texts(bytes: &[u8], hints: &Hints, reports: &[Report]) -> Result<Vec<Option<String>>, Fault> {
    let is_as_it_is = *hints == Hints::default();
    if let [report] = reports
        && (is_as_it_is || report.summary.is_some())
    {
        return Ok(vec![None]);
    }
    let starts: Option<Vec<usize>> = if is_as_it_is { reports.iter().map(start).collect() } else { None };
    if let Some(starts) = starts.filter(|starts| starts.is_sorted_by(|one, next| one < next)) {
        let excerpts = excerpts(bytes, &starts)?;
        // A document may begin in the line in which another one ends.
        if excerpts.iter().all(|text| read(text.as_bytes()).is_ok_and(|found| found.reports.len() == 1)) {
            return Ok(excerpts.into_iter().map(Some).collect());
        }
    }
    let apart = || {
        Place::root("the file").fault(format_args!("has {} reports: put each into a file of its own", reports.len()))
    };
    reports.iter().map(|report| entry::write(report).map(Some).ok_or_else(apart)).collect()
}

/// Returns the line, from 0, at which a report begins that can be cut out of its file. A row of a table is none without
/// its header.
fn start(report: &Report) -> Option<usize> {
    let is_alone = !matches!(formats::find(report.format)?.reader, Reader::Records { .. });
    report.line?.checked_sub(1).filter(|_| is_alone)
}

/// Cuts a text at these lines.
fn excerpts(bytes: &[u8], starts: &[usize]) -> Result<Vec<String>, Fault> {
    let bytes = unpack::document(unpack::open(bytes)?.all)?;
    let text = decoded(&bytes).map_err(|fault| Place::root("the file").fault(fault))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    Ok(starts.iter().zip(ends).map(|(start, end)| lines.get(*start..end).unwrap_or_default().join("\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::tables::Column;

    const WRK: &str = "Running 10s test @ http://127.0.0.1:8080/\n  2 threads and 10 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.00ms    0.20ms   5.00ms   90.00%\n    \
        Req/Sec     5.00k   100.00     6.00k    70.00%\n  100000 requests in 10.00s, 10.00MB read\n\
        Requests/sec:  10000.00\nTransfer/sec:      1.00MB\n";

    #[test]
    fn each_report_of_a_readme_is_a_text_of_its_own() {
        let readme = format!("# Results\n\n## Go\n\n```\n{WRK}```\n\n## Rust\n\n```\n{WRK}```\nThat was it.\n");
        let all = parts(readme.as_bytes(), &Hints::default(), Choice::All).expect("parts");
        let found: Vec<_> = all.iter().map(|part| (part.report.line, part.title())).collect();
        assert_eq!(found, [(Some(6), Some("Go")), (Some(19), Some("Rust"))]);
        assert!(all.iter().all(|part| part.text.as_ref().is_some_and(|text| text.starts_with("Running 10s test"))));
        let only = parts(readme.as_bytes(), &Hints::default(), Choice::Named("rust")).expect("one");
        assert_eq!(only, all[1..]);
        let none = parts(readme.as_bytes(), &Hints::default(), Choice::Named("zig")).expect_err("none");
        assert_eq!(none.to_string(), "the file: has no report named \"zig\"");
    }

    #[test]
    fn one_report_is_the_file_itself() {
        let one = parts(WRK.as_bytes(), &Hints::default(), Choice::All).expect("a report");
        assert!(one.len() == 1 && one[0].text.is_none(), "{one:?}");
        assert_eq!(one[0].summary, parse(WRK.as_bytes()).expect("a report"));
        assert!(parts(b"nothing", &Hints::default(), Choice::All).is_err());
    }

    #[test]
    fn rows_of_a_table_are_entries_that_read_as_the_same() {
        let table = "Server,Requests/sec,Slowest\nold,\"1,500\",12.5\nnew,2000,8\n";
        let hints = Hints {
            columns: [("Slowest".to_owned(), "max ms".parse().expect("a column"))].into(),
            duration_ms: Some(10_000.0),
        };
        let all = parts(table.as_bytes(), &hints, Choice::All).expect("two rows");
        let figures: Vec<_> = all.iter().map(|part| (part.title(), part.summary.figures())).collect();
        let found: Vec<_> = figures.iter().map(|(name, of)| (*name, of.requests, of.rps, of.latency.max_ms)).collect();
        assert_eq!(found, [(Some("old"), 15_000, 1500.0, Some(12.5)), (Some("new"), 20_000, 2000.0, Some(8.0))]);
        for part in &all {
            let text = part.text.as_ref().expect("an entry");
            let again = parts(text.as_bytes(), &Hints::default(), Choice::All).expect("an entry");
            let without_line = Report { line: None, ..part.report.clone() };
            assert_eq!((&again[0].summary, &again[0].report), (&part.summary, &without_line));
        }
        let wrong = Hints { columns: [("Slow".to_owned(), Column::Other)].into(), ..Hints::default() };
        let fault = parts(table.as_bytes(), &wrong, Choice::All).expect_err("no such column").to_string();
        assert!(fault.starts_with("the table: has no column \"Slow\", only \"Server\""), "{fault}");
    }
}
