//! The output of hey, and of oha, which prints the same summary with other words.
//!
//! hey counts a request without a response only under "Error distribution"; latencies are of responses.

use super::fields::{bad_statuses, sum};
use super::{Format, Reader, starts_where, words};
use crate::reports::formats::oha_json::AT_DEADLINE;
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::time::{Time, count, number, scaled};
use crate::reports::validate::Fault;

pub(super) const HEY: Format = Format {
    name: "hey-text",
    title: "hey's output",
    tool: "hey",
    limits: "Times have four decimals of a second. It lacks the address and the number of connections.",
    is_rounded: true,
    timeout_ms: Some(20_000.0),
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| is_summary(lines, false)),
        near: &[],
        read: |lines| read(lines, Definition::Rank),
    },
};

pub(super) const OHA: Format = Format {
    name: "oha-text",
    title: "oha's output",
    tool: "oha",
    limits: "Times are rounded. It lacks the address and the number of connections.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| is_summary(lines, true)),
        near: &[],
        read: |lines| read(lines, Definition::Rank),
    },
};

/// Only oha has the success rate in its summary.
fn is_summary(lines: &[ReportLine], is_oha: bool) -> bool {
    let [title, rest @ ..] = lines else { return false };
    let has = |word: &str, within: usize| rest.iter().take(within).any(|line| line.text.starts_with(word));
    title.text == "Summary:"
        && has("Total:", 3)
        && has("Slowest:", 4)
        && has("Requests/sec:", 7)
        && has("Success rate:", 2) == is_oha
        // ghz, for gRPC, prints the same with a count.
        && !has("Count:", 2)
}

/// The part of the output that a line belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Summary,
    Distribution,
    Statuses,
    Errors,
    Other,
}

fn read(lines: &[ReportLine], definition: Definition) -> Result<Report, Fault> {
    let mut report = Report {
        latency: Latencies { of: Population::Responses, definition, ..Latencies::default() },
        ..Report::default()
    };
    let (mut section, mut percentiles, mut at_deadline) = (Section::Other, Vec::new(), 0);
    for line in lines {
        let text = line.text.as_str();
        if let Some(title) = text.strip_suffix(':').filter(|title| !title.starts_with('[')) {
            section = match title {
                "Summary" => Section::Summary,
                "Latency distribution" | "Response time distribution" => Section::Distribution,
                "Status code distribution" => Section::Statuses,
                "Error distribution" => Section::Errors,
                _ => Section::Other,
            };
            continue;
        }
        match section {
            Section::Summary => summary(line, &mut report)?,
            // hey prints `10%%` because of a mistake in its format.
            Section::Distribution => match words(line).as_slice() {
                [percent, "in", time @ ..] if percent.ends_with('%') => {
                    let time = Time::printed(&time.join(" ")).ok_or_else(|| garbled(line))?;
                    percentiles.push((number(percent.trim_end_matches('%')).ok_or_else(|| garbled(line))?, Some(time)));
                }
                _ => section = Section::Other,
            },
            Section::Statuses => {
                if let Some((status, rest)) = bracketed(text) {
                    let found = rest.split_whitespace().next().and_then(count).ok_or_else(|| garbled(line))?;
                    report.statuses.insert(status.to_owned(), found);
                }
            }
            Section::Errors => match bracketed(text) {
                Some((found, AT_DEADLINE)) => at_deadline += count(found).ok_or_else(|| garbled(line))?,
                Some((found, what)) => {
                    let found = count(found).ok_or_else(|| garbled(line))?;
                    report.failures.insert(what.to_owned(), found);
                }
                None => section = Section::Other,
            },
            Section::Other => {}
        }
    }
    let errors = sum(report.failures.values());
    if report.statuses.is_empty() && errors == 0 && at_deadline == 0 {
        let line = lines.last().map_or(1, |line| line.number);
        let what = "\"Status code distribution\" is missing: the output was truncated";
        return Err(ReportLine { number: line, text: String::new() }.fault(what));
    }
    report.requests = Some(sum(report.statuses.values()).saturating_add(errors));
    report.failed = Some(errors.saturating_add(bad_statuses(&report.statuses)));
    report.latency = report.latency.with_percentiles(percentiles);
    if report.statuses.is_empty() {
        report.latency = Latencies::default();
    }
    Ok(report)
}

fn summary(line: &ReportLine, report: &mut Report) -> Result<(), Fault> {
    let Some((name, value)) = line.text.split_once(':') else { return Ok(()) };
    let value = value.trim();
    let time = || match value.starts_with("NaN") {
        true => Ok(None),
        false => Time::printed(value).map(Some).ok_or_else(|| garbled(line)),
    };
    match name {
        "Total" => report.duration = time()?,
        "Slowest" => report.latency.max = time()?,
        "Fastest" => report.latency.min = time()?,
        "Average" => report.latency.mean = time()?,
        "Requests/sec" => report.rate_per_s = Some(number(value).ok_or_else(|| garbled(line))?),
        "Total data" => {
            let bytes = match value.split_once(' ') {
                Some((bytes, "bytes")) => number(bytes),
                // `3.42 MiB`, `512 B`
                Some(_) => scaled(&value.replace("iB", "B"), "B", 1024.0),
                None => None,
            };
            report.received_bytes = bytes.map(|bytes| crate::reports::values::to_integer(bytes.round()));
        }
        _ => {}
    }
    Ok(())
}

/// `[200]	42315 responses`
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((inside, rest.trim()))
}

fn garbled(line: &ReportLine) -> Fault {
    line.fault("is not in the format of hey and oha, or was truncated")
}
