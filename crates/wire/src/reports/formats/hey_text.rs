//! The output of hey, and of oha, which prints the same summary with other words.
//!
//! hey counts a request without a response only under "Error distribution"; latencies are of responses.

use super::fields::{bad_statuses, sum};
use super::format::{Format, Reader, starts_where, words};
use super::hey_csv::RESPONSES_MAX;
use crate::reports::formats::oha_json::AT_DEADLINE;
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::time::{Time, count, number, printed, scaled};
use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

pub(super) const HEY: Format = Format {
    name: "hey-text",
    title: "hey's output",
    tool: "hey",
    limits: "Times have four decimals of a second. It lacks the address and the number of connections; beyond \
             1,000,000 responses also how many failed.",
    is_rounded: true,
    timeout_ms: Some(20_000.0),
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| is_summary(lines, false)),
        near: &[],
        read: |lines| read(lines, RESPONSES_MAX),
    },
};

pub(super) const OHA: Format = Format {
    name: "oha-text",
    title: "oha's output",
    tool: "oha",
    limits: "Times have four decimals of a unit that depends on the slowest request. It lacks the address and the number of \
             connections; the rate counts requests that were still running at the end.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| is_summary(lines, true)),
        near: &[],
        read: |lines| read(lines, u64::MAX),
    },
};

/// Rates have four decimals.
const RATE_ROUNDING: f64 = 0.000_051;

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

/// Reads a report of a tool that counts the statuses and times of at most `responses_max` responses.
fn read(lines: &[ReportLine], responses_max: u64) -> Result<Report, Fault> {
    let mut report = Report {
        latency: Latencies { of: Population::Responses, definition: Definition::Rank, ..Latencies::default() },
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
                    let time = time_of(&time.join(" ")).ok_or_else(|| garbled(line))?;
                    percentiles.push((number(percent.trim_end_matches('%')).ok_or_else(|| garbled(line))?, time));
                }
                _ => section = Section::Other,
            },
            Section::Statuses => {
                if let Some((status, rest)) = bracketed(text) {
                    let found = rest.strip_suffix(" responses").and_then(count).ok_or_else(|| garbled(line))?;
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
    report.latency = report.latency.with_percentiles(percentiles);
    counted(report, at_deadline, responses_max).map_err(|what| {
        let number = lines.last().map_or(1, |line| line.number);
        ReportLine { number, text: String::new() }.fault(what)
    })
}

/// Counts the requests.
fn counted(mut report: Report, at_deadline: u64, responses_max: u64) -> Result<Report, &'static str> {
    let (errors, responses) = (sum(report.failures.values()), sum(report.statuses.values()));
    let requests = responses.saturating_add(errors);
    if is_complete(&report, requests, at_deadline) {
        report.requests = Some(requests);
        report.failed = Some(errors.saturating_add(bad_statuses(&report.statuses)));
    } else if responses == responses_max && expected(&report).is_some_and(|(all, _)| all > requests as f64) {
        // hey divides the sum of all times by the number of those that it keeps.
        report.latency = Latencies { mean: None, definition: Definition::Sampled, ..report.latency };
        let what = "hey keeps the statuses and times of the first 1,000,000 responses only: how many requests failed \
                    is unknown, and latencies are those of the first part of the test";
        report.warnings.push(Warning::Incomplete(what.to_owned()));
    } else {
        return Err("the statuses and errors are not all requests of the summary: the output was truncated");
    }
    if report.statuses.is_empty() {
        report.latency = Latencies::default();
    }
    Ok(report)
}

/// Whether the counts are those of the summary, in which oha counts the requests that the end interrupted, too.
fn is_complete(report: &Report, requests: u64, at_deadline: u64) -> bool {
    let counted = requests.saturating_add(at_deadline) as f64;
    expected(report).is_some_and(|(expected, tolerance)| (counted - expected).abs() <= tolerance)
}

/// Returns the requests of the summary, and how far its rounding may be off.
fn expected(report: &Report) -> Option<(f64, f64)> {
    let (rate, duration) = report.rate_per_s.zip(report.duration)?;
    let tolerance = 0.5 + (rate * duration.error_ms + duration.ms * RATE_ROUNDING) / 1e3;
    Some((rate * duration.ms / 1e3, tolerance))
}

fn summary(line: &ReportLine, report: &mut Report) -> Result<(), Fault> {
    let Some((name, value)) = line.text.split_once(':') else { return Ok(()) };
    let value = value.trim();
    let time = || time_of(value).ok_or_else(|| garbled(line));
    match name {
        "Total" => report.duration = time()?,
        "Slowest" => report.latency.max = time()?,
        "Fastest" => report.latency.min = time()?,
        "Average" => report.latency.mean = time()?,
        "Requests/sec" => report.set_rate(printed(value).ok_or_else(|| garbled(line))?),
        "Total data" => {
            let bytes = match value.split_once(' ') {
                Some((bytes, "bytes")) => number(bytes),
                // `3.42 MiB`, `512 B`
                Some(_) => scaled(&value.replace("iB", "B"), "B", 1024.0).map(|bytes| bytes.value),
                None => None,
            };
            report.received_bytes = bytes.map(|bytes| crate::reports::values::to_integer(bytes.round()));
        }
        _ => {}
    }
    Ok(())
}

/// Parses a time; one that was not measured is `Some(None)`. oha's units may be `10 sec` and `10 min`.
#[expect(clippy::option_option, reason = "outer `None`: it is no time; inner: it is none that was measured")]
fn time_of(text: &str) -> Option<Option<Time>> {
    let (value, unit) = text.split_once(' ')?;
    if matches!(value, "NaN" | "inf" | "-inf") {
        return Some(None);
    }
    let time = match unit {
        "10 sec" => Time::decimal(value, 1e4),
        "10 min" => Time::decimal(value, 6e5),
        "hr" => Time::decimal(value, 3.6e6),
        _ => Time::printed(text),
    };
    time.map(Some)
}

/// `[200] 42315 responses`
fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((inside, rest.trim()))
}

fn garbled(line: &ReportLine) -> Fault {
    line.fault("is not in the format of hey and oha, or was truncated")
}
