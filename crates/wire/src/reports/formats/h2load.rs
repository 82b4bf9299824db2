//! The output of h2load, nghttp2's load generator.

use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::{Time, count, number, printed, scaled};
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "h2load",
    title: "h2load's output",
    tool: "h2load",
    limits: "Times are rounded to three digits. There are no percentiles in most versions, and no address.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Text {
        starts, near: &[("starting benchmark...", "h2load's has a line \"finished in …\"")], read
    },
};

/// How many lines may be between the beginning and the end of a run.
const RUN_LINES: usize = 4_000;

fn is_finish(line: &ReportLine) -> bool {
    matches!(words(line).as_slice(), ["finished", "in", _, _, "req/s,", ..])
}

fn starts(lines: &[ReportLine]) -> Vec<usize> {
    let finishes = starts_where(lines, |lines| lines.first().is_some_and(is_finish));
    let mut starts: Vec<usize> = Vec::new();
    for finish in finishes {
        let earliest = starts.last().map_or(0, |last| last + 1).max(finish.saturating_sub(RUN_LINES));
        let before = lines.get(earliest..finish).unwrap_or_default();
        let begin = before.iter().rposition(|line| line.text.starts_with("starting benchmark"));
        starts.push(begin.map_or(finish, |begin| earliest + begin));
    }
    starts
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = Report {
        latency: Latencies { of: Population::Responses, definition: Definition::Rank, ..Latencies::default() },
        ..Report::default()
    };
    let (mut columns, mut clients, mut is_end) = (Vec::new(), None, false);
    for line in lines {
        let garbled = || line.fault("is not in h2load's format, or was truncated");
        let words = words(line);
        match words.as_slice() {
            ["spawning", "thread", _, found, "total", "client(s).", ..] => {
                clients = Some(clients.unwrap_or(0_u64).saturating_add(count(found).ok_or_else(garbled)?));
                report.load.threads = Some(report.load.threads.unwrap_or_default() + 1);
            }
            ["finished", "in", time, rate, "req/s,", transfer] => {
                report.duration = Some(Time::printed(time.trim_end_matches(',')).ok_or_else(garbled)?);
                report.set_rate(printed(rate).ok_or_else(garbled)?);
                let transfer = transfer.strip_suffix("/s").and_then(|text| scaled(text, "B", 1024.0));
                report.set_received(transfer.ok_or_else(garbled)?);
            }
            ["requests:", ..] => requests(&line.text, &mut report).ok_or_else(garbled)?,
            ["status", "codes:", pairs @ ..] => {
                for pair in pairs.chunks(2) {
                    let [found, class] = pair else { return Err(garbled()) };
                    let found = count(found).ok_or_else(garbled)?;
                    report.statuses.insert(class.trim_end_matches(',').to_owned(), found);
                }
            }
            ["traffic:", ..] => {
                let total = line.text.split_once('(').and_then(|(_, rest)| count(rest.split_once(')')?.0));
                report.received_bytes = Some(total.ok_or_else(garbled)?);
            }
            ["min", "max", ..] => columns = words.iter().map(|word| (*word).to_owned()).collect(),
            ["time", "for", "request:", times @ ..] => times_of(&columns, times, &mut report).ok_or_else(garbled)?,
            ["req/s", ..] => {
                is_end = true;
                break;
            }
            _ => {}
        }
    }
    report.load = Generated { connections: clients, ..report.load };
    if !is_end || report.requests.is_none() || report.statuses.is_empty() {
        let line = lines.last().map_or(1, |line| line.number);
        return Err(ReportLine { number: line, text: String::new() }
            .fault("h2load's \"requests:\" or its last line \"req/s\" is missing: the output was truncated"));
    }
    // A status of an error is not among those that h2load counts as failed.
    let bad =
        super::fields::bad_statuses(&report.statuses.iter().map(|(class, found)| (class.clone(), *found)).collect());
    let without = report.failures.iter().filter(|(kind, _)| kind.as_str() != "failed").map(|(_, found)| found);
    let failed = super::fields::sum(without).saturating_add(bad);
    report.failed = report.requests.map(|requests| failed.min(requests));
    report.statuses.retain(|_, found| *found > 0);
    Ok(report)
}

/// `requests: 2000 total, 2000 started, 2000 done, 2000 succeeded, 0 failed, 0 errored, 0 timeout`
fn requests(text: &str, report: &mut Report) -> Option<()> {
    for pair in text.strip_prefix("requests:")?.split(',') {
        let (found, kind) = pair.trim().split_once(' ')?;
        let found = count(found)?;
        match kind {
            "total" => report.requests = Some(found),
            "failed" | "errored" | "timeout" => drop(report.failures.insert(kind.to_owned(), found)),
            _ => {}
        }
    }
    Some(())
}

/// The columns differ between versions: newer ones have the median and percentiles.
fn times_of(columns: &[String], times: &[&str], report: &mut Report) -> Option<()> {
    let mut percentiles = Vec::new();
    for (column, text) in columns.iter().filter(|column| column.as_str() != "+/-").zip(times) {
        let time = Time::printed(text);
        match column.as_str() {
            "min" => report.latency.min = Some(time?),
            "max" => report.latency.max = Some(time?),
            "mean" => report.latency.mean = Some(time?),
            "median" => percentiles.push((50.0, Some(time?))),
            "sd" => {
                report.latency.stddev = Some(time?);
                break;
            }
            column => {
                let percent = column.strip_prefix('p').and_then(number);
                percentiles.extend(percent.map(|percent| (percent, time)));
            }
        }
    }
    let latency = std::mem::take(&mut report.latency);
    report.latency = latency.with_percentiles(percentiles);
    Some(())
}
