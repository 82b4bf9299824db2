//! The output of ab, Apache's benchmark. Latencies are whole milliseconds.
//!
//! ab counts a response of another length than the first one as failed, which dynamic pages have, and a status of an
//! error as complete. Here the latter fail, and the former do not.

use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};
use crate::reports::time::{Time, count, number, printed};
use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "ab",
    title: "ab's output",
    tool: "ab",
    limits: "Latencies are whole milliseconds.",
    is_rounded: true,
    timeout_ms: Some(30_000.0),
    reader: Reader::Text {
        starts,
        near: &[(
            "ApacheBench",
            "its output ends before \"Concurrency Level\": the run failed or the text was truncated",
        )],
        read,
    },
};

/// How many lines the parts of an output may be apart.
const HEAD_LINES: usize = 14;

/// What an output begins with; parts of it may have been left out.
const HEADS: [&str; 3] = ["This is ApacheBench", "Server Software:", "Document Path:"];

fn starts(lines: &[ReportLine]) -> Vec<usize> {
    let levels =
        starts_where(lines, |lines| matches!(lines, [line, ..] if line.text.starts_with("Concurrency Level:")));
    let mut starts: Vec<usize> = Vec::new();
    let mut after = 0;
    for level in levels {
        let earliest = after.max(level.saturating_sub(HEAD_LINES));
        let before = lines.get(earliest..level).unwrap_or_default();
        let head = before.iter().position(|line| HEADS.iter().any(|head| line.text.starts_with(head)));
        starts.push(head.map_or(level, |head| earliest + head));
        after = level + 1;
    }
    starts
}

/// The values found in the text that are no part of a report.
#[derive(Default)]
struct Found {
    failed: u64,
    lengths: u64,
    non_2xx: u64,
    host: String,
    port: String,
    has_rate: bool,
    has_times: bool,
    has_end: bool,
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = Report {
        load: Generated { model: Some(Model::Closed), ..Generated::default() },
        latency: Latencies { of: Population::Responses, definition: Definition::Rank, ..Latencies::default() },
        ..Report::default()
    };
    let mut found = Found::default();
    let mut percentiles = Vec::new();
    for line in lines {
        let is_percentile = percentile(line).map(|found| percentiles.push(found)).is_some();
        if !is_percentile {
            read_line(line, &mut report, &mut found)?;
        }
        if line.text.ends_with("(longest request)") {
            found.has_end = true;
            break;
        }
    }
    // ab prints percentiles of more than one request.
    let has_all = !found.has_times || found.has_end || report.requests == Some(1);
    if !found.has_rate || report.requests.is_none() || !has_all {
        let line = lines.last().map_or(1, |line| line.number);
        let what = "\"Complete requests\", \"Requests per second\" or the longest request is missing: the output was truncated";
        return Err(ReportLine { number: line, text: String::new() }.fault(what));
    }
    let requests = report.requests.unwrap_or_default();
    let failed = found.failed.saturating_sub(found.lengths).saturating_add(found.non_2xx).min(requests);
    report.failed = Some(failed);
    if found.non_2xx > 0 {
        report.failures.insert("status".to_owned(), found.non_2xx);
    }
    if found.lengths > 0 {
        let what = format!(
            "{} responses have another length than the first one: ab counts them as failed, here they are not",
            found.lengths
        );
        report.warnings.push(Warning::Note(what));
    }
    report.latency = report.latency.with_percentiles(percentiles);
    Ok(report)
}

fn read_line(line: &ReportLine, report: &mut Report, found: &mut Found) -> Result<(), Fault> {
    let garbled = || line.fault("is not in ab's format, or was truncated");
    let whole = |text: &&str| count(text).ok_or_else(garbled);
    let words = words(line);
    match words.as_slice() {
        ["This", "is", "ApacheBench,", "Version", version, ..] => report.version = Some((*version).to_owned()),
        ["Server", "Hostname:", host] => (*host).clone_into(&mut found.host),
        ["Server", "Port:", port] => (*port).clone_into(&mut found.port),
        ["Document", "Path:", path] if !found.host.is_empty() => {
            report.url = Some(format!("http://{}:{}{path}", found.host, found.port));
        }
        ["Concurrency", "Level:", level] => report.load.connections = Some(whole(level)?),
        ["Time", "taken", "for", "tests:", time, unit, ..] => {
            report.duration = Some(Time::printed(&format!("{time} {unit}")).ok_or_else(garbled)?);
        }
        ["Complete", "requests:", requests] => report.requests = Some(whole(requests)?),
        ["Failed", "requests:", failed] => found.failed = whole(failed)?,
        ["(Connect:", rest @ ..] => {
            for pair in rest.iter().enumerate().filter(|(index, _)| index % 2 == 0).map(|(_, text)| text) {
                whole(&pair.trim_end_matches([',', ')']))?;
            }
            let kinds = line.text.trim_matches(['(', ')']).split(',').filter_map(|pair| pair.split_once(':'));
            for (kind, number) in kinds {
                let number = whole(&number.trim())?;
                if kind.trim() == "Length" {
                    found.lengths = number;
                }
                report.failures.insert(kind.trim().to_lowercase(), number);
            }
        }
        ["Non-2xx", "responses:", bad] => found.non_2xx = whole(bad)?,
        ["Total", "transferred:", bytes, "bytes"] => report.received_bytes = Some(whole(bytes)?),
        ["Requests", "per", "second:", rate, "[#/sec]", ..] => {
            report.set_rate(printed(rate).ok_or_else(garbled)?);
            found.has_rate = true;
        }
        ["Connection", "Times", ..] => found.has_times = true,
        ["Total:", times @ ..] => {
            let [min, mean, sd, _, max] = times else { return Err(garbled()) };
            let time = |text: &str| Time::decimal(text, 1.0);
            let [min, mean, sd, max] = [min, mean, sd, max].map(|text| time(text));
            (report.latency.min, report.latency.mean, report.latency.stddev, report.latency.max) = (min, mean, sd, max);
        }
        _ => {}
    }
    Ok(())
}

/// `  50%      2`, ` 100%      8 (longest request)`
fn percentile(line: &ReportLine) -> Option<(f64, Option<Time>)> {
    let mut words = line.text.split_whitespace();
    let percent = number(words.next()?.strip_suffix('%')?)?;
    let time = Time::decimal(words.next()?, 1.0)?;
    // The last one is the maximum.
    (percent < 100.0).then_some((percent, Some(time)))
}
