//! The output of bombardier as text.

use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::{Time, count, number, printed, scaled};
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "bombardier-text",
    title: "bombardier's output",
    tool: "bombardier",
    limits: "Times have two decimals of their unit. The rate is the mean of samples. Percentiles are only there with \
             --latencies.",
    is_rounded: true,
    timeout_ms: Some(2_000.0),
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| matches!(lines, [first, ..] if is_start(first))),
        near: &[("Reqs/sec", "bombardier's begins with \"Bombarding …\"")],
        read,
    },
};

fn is_start(line: &ReportLine) -> bool {
    line.text.starts_with("Bombarding ")
        && [" connection(s)", " connections"].iter().any(|end| line.text.ends_with(end))
}

/// `Bombarding URL for 2s using 8 connection(s)`, `Bombarding URL with 100 request(s) using 8 connection(s)`
fn head(words: &[&str], report: &mut Report) {
    let ["Bombarding", url, how, amount, rest @ ..] = words else { return };
    report.url = Some((*url).to_owned());
    if *how == "for" {
        report.duration = Time::printed(amount);
    }
    let using = rest.iter().position(|word| *word == "using").and_then(|at| rest.get(at + 1));
    report.load = Generated { connections: using.and_then(|text| count(text)), ..Generated::default() };
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = Report {
        latency: Latencies { of: Population::All, definition: Definition::Rank, ..Latencies::default() },
        ..Report::default()
    };
    let (mut percentiles, mut others, mut in_errors, mut is_end) = (Vec::new(), 0, false, false);
    for line in lines {
        let garbled = || line.fault("is not in bombardier's format, or was truncated");
        let words = words(line);
        match words.as_slice() {
            ["Bombarding", ..] => head(&words, &mut report),
            ["Reqs/sec", mean, ..] => report.set_rate(printed(mean).ok_or_else(garbled)?),
            ["Latency", "Distribution"] => {}
            ["Latency", mean, stddev, max] => {
                let [mean, stddev, max] = [mean, stddev, max].map(|text| Time::printed(text));
                (report.latency.mean, report.latency.stddev, report.latency.max) = (mean, stddev, max);
                mean.zip(stddev).zip(max).ok_or_else(garbled)?;
            }
            [percent, time] if percent.ends_with('%') => {
                let percent = percent.strip_suffix('%').and_then(number).ok_or_else(garbled)?;
                percentiles.push((percent, Some(Time::printed(time).ok_or_else(garbled)?)));
            }
            ["1xx", "-", ..] => {
                for pair in line.text.split(',') {
                    let (class, found) = pair.split_once(" - ").ok_or_else(garbled)?;
                    report.statuses.insert(class.trim().to_owned(), count(found.trim()).ok_or_else(garbled)?);
                }
            }
            ["others", "-", found] => others = count(found).ok_or_else(garbled)?,
            ["Errors:"] => in_errors = true,
            ["Throughput:", rate] => {
                // Of both directions together.
                let rate = rate.strip_suffix("/s").ok_or_else(garbled)?;
                let rate = scaled(rate, "B", 1024.0).map(|rate| rate.value).or_else(|| number(rate));
                report.others.insert("throughput_bytes_per_s".to_owned(), rate.ok_or_else(garbled)?);
                is_end = true;
                break;
            }
            [.., "-", found] if in_errors => {
                let what = line.text.rsplit_once(" - ").map_or("", |(what, _)| what);
                report.failures.insert(what.to_owned(), count(found).ok_or_else(garbled)?);
            }
            _ => {}
        }
    }
    if !is_end || report.statuses.is_empty() || report.rate_per_s.is_none() {
        let line = lines.last().map_or(1, |line| line.number);
        let what = "\"Reqs/sec\", \"HTTP codes\" or \"Throughput\" is missing: the output was truncated";
        return Err(ReportLine { number: line, text: String::new() }.fault(what));
    }
    let bad = ["4xx", "5xx"].iter().filter_map(|class| report.statuses.get(*class));
    report.failed = Some(super::fields::sum(bad).saturating_add(others));
    report.requests = Some(super::fields::sum(report.statuses.values()).saturating_add(others));
    report.statuses.retain(|_, found| *found > 0);
    report.latency = report.latency.with_percentiles(percentiles);
    Ok(report)
}
