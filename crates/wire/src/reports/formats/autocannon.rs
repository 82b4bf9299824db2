//! autocannon's output as JSON and as tables. Latencies are whole milliseconds.

use serde::Deserialize;
use std::collections::BTreeMap;

use super::fields::{Loose, counts, instant_ms};
use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::{Time, count, number, printed, scaled};
use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

pub(super) const JSON: Format = Format {
    name: "autocannon",
    title: "autocannon's output as JSON",
    tool: "autocannon",
    limits: "Latencies are whole milliseconds; the minimum is of those above zero, so it may be missing. The rate is the \
             mean of one sample a second.",
    is_rounded: true,
    timeout_ms: Some(10_000.0),
    reader: Reader::Json {
        is: |document| (document.has(&["latency", "requests", "non2xx", "errors"])).into(),
        read: |document| Ok(vec![document.read::<Autocannon>()?.report()]),
    },
};

pub(super) const TEXT: Format = Format {
    name: "autocannon-text",
    title: "autocannon's output",
    tool: "autocannon",
    limits: "Latencies are whole milliseconds. Large counts are rounded to thousands, so that the number of requests is \
             unknown unless statuses are printed.",
    is_rounded: true,
    timeout_ms: Some(10_000.0),
    reader: Reader::Text {
        starts: |lines| starts_where(lines, is_start),
        near: &[("Req/Bytes counts sampled once per second", "autocannon's begins with \"Running … test @ …\"")],
        read,
    },
};

#[derive(Deserialize)]
struct Autocannon {
    url: Option<String>,
    connections: Option<u64>,
    duration: Loose,
    start: Option<String>,
    errors: u64,
    #[serde(default)]
    timeouts: u64,
    #[serde(default)]
    mismatches: u64,
    non2xx: u64,
    #[serde(default, rename = "statusCodeStats")]
    status_code_stats: BTreeMap<String, Status>,
    latency: BTreeMap<String, Loose>,
    requests: BTreeMap<String, Loose>,
    #[serde(default)]
    throughput: BTreeMap<String, Loose>,
}

#[derive(Deserialize)]
struct Status {
    count: u64,
}

impl Autocannon {
    fn report(self) -> Report {
        let Self { errors, timeouts, mismatches, non2xx, latency, requests, .. } = self;
        let get = |values: &BTreeMap<String, Loose>, name: &str| values.get(name).copied().unwrap_or_default();
        let responses = get(&requests, "total").count();
        let time = |name: &str| get(&latency, name).whole_time(1.0);
        let percentiles: Vec<_> = latency
            .iter()
            .filter_map(|(name, value)| {
                let percent = name.strip_prefix('p')?.replace('_', ".").parse().ok()?;
                Some((percent, value.whole_time(1.0)))
            })
            .collect();
        let ends = Latencies {
            // Not those of zero, which most are on loopback.
            min: time("min").filter(|min| get(&latency, "p1").0.is_some_and(|p1| p1 >= min.ms)),
            mean: get(&latency, "mean").0.map(|ms| Time { ms, error_ms: 0.5 }),
            max: time("max"),
            stddev: get(&latency, "stddev").0.map(Time::exact),
            of: Population::Responses,
            definition: Definition::Histogram,
            ..Latencies::default()
        };
        let has_responses = responses.is_none_or(|responses| responses > 0);
        Report {
            url: self.url,
            started_ms: self.start.as_deref().and_then(instant_ms),
            duration: self.duration.time(1e3),
            load: Generated { connections: self.connections, ..Generated::default() },
            requests: responses.map(|responses| responses.saturating_add(errors)),
            failed: Some(errors.saturating_add(non2xx).saturating_add(mismatches)),
            failures: counts([("errors", errors), ("timeout", timeouts), ("status", non2xx), ("body", mismatches)]),
            statuses: self.status_code_stats.into_iter().map(|(status, found)| (status, found.count)).collect(),
            rate_per_s: get(&requests, "mean").0,
            received_bytes: get(&self.throughput, "total").count(),
            latency: if has_responses { ends.with_percentiles(percentiles) } else { Latencies::default() },
            ..Report::default()
        }
    }
}

fn is_start(lines: &[ReportLine]) -> bool {
    let [title, rest @ ..] = lines else { return false };
    let is_title = title.text.starts_with("Running ")
        && (title.text.contains(" test @ ") || title.text.contains(" requests test @ "));
    let connections =
        |line: &ReportLine| matches!(words(line).as_slice(), [_, "connections"] | [_, "connections", "with", ..]);
    is_title && rest.iter().take(2).any(connections)
}

/// Returns the cells of a line of a table.
fn cells(line: &ReportLine) -> Vec<&str> {
    line.text.split(['│', '|']).map(str::trim).filter(|cell| !cell.is_empty()).collect()
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = Report {
        latency: Latencies { of: Population::Responses, definition: Definition::Histogram, ..Latencies::default() },
        ..Report::default()
    };
    let (mut header, mut is_end): (Vec<&str>, bool) = (Vec::new(), false);
    for line in lines {
        let garbled = || line.fault("is not in autocannon's format, or was truncated");
        let cells = cells(line);
        match cells.as_slice() {
            ["Stat", rest @ ..] => header = rest.to_vec(),
            ["Code", "Count"] | ["Percentile", _] => header.clone_from(&cells),
            ["Latency", times @ ..] => latencies(&header, times, &mut report).ok_or_else(garbled)?,
            ["Req/Sec", rates @ ..] => {
                let at = header.iter().position(|name| *name == "Avg");
                let rate = at.and_then(|at| printed(&rates.get(at)?.replace(',', "")));
                report.set_rate(rate.ok_or_else(garbled)?);
            }
            [code, found] if header == ["Code", "Count"] && code.len() == 3 => {
                report.statuses.insert((*code).to_owned(), count(found).ok_or_else(garbled)?);
            }
            [only] => {
                is_end |= footer(line, &words(line), &mut report)?;
                header.retain(|_| only.starts_with(['├', '┌', '└', '─']));
            }
            _ => {}
        }
    }
    if !is_end {
        let line = lines.last().map_or(1, |line| line.number);
        let what = "autocannon's \"… requests in …\" is missing, its last line: the output was truncated";
        return Err(ReportLine { number: line, text: String::new() }.fault(what));
    }
    let failures = super::fields::sum(
        report.failures.iter().filter(|(kind, _)| kind.as_str() != "timeout").map(|(_, found)| found),
    );
    if !report.statuses.is_empty() {
        let errors = report.failures.get("errors").copied().unwrap_or_default();
        report.requests = Some(super::fields::sum(report.statuses.values()).saturating_add(errors));
    }
    report.failed = Some(report.requests.map_or(failures, |requests| failures.min(requests)));
    Ok(report)
}

/// Reads a line outside of the tables; returns whether it is the one about all requests.
fn footer(line: &ReportLine, words: &[&str], report: &mut Report) -> Result<bool, Fault> {
    let garbled = || line.fault("is not in autocannon's format, or was truncated");
    // `36k`: rounded to thousands.
    let about =
        |text: &str| scaled(text, "", 1e3).map(|number| crate::reports::values::to_integer(number.value.round()));
    match words {
        ["Running", _, "test", "@", url] | ["Running", _, "requests", "test", "@", url] => {
            report.url = Some((*url).to_owned());
        }
        [found, "connections", ..] => report.load.connections = count(found),
        [good, "2xx", "responses,", bad, "non", "2xx", "responses"] => {
            let (_, bad_count) = about(good).zip(about(bad)).ok_or_else(garbled)?;
            report.failures.insert("status".to_owned(), bad_count);
            is_rounded(bad, report);
        }
        [errors, "errors", timeouts, "timeouts)"] => {
            let timeouts = timeouts.trim_start_matches('(');
            let (errors_count, timeouts) = about(errors).zip(about(timeouts)).ok_or_else(garbled)?;
            report.failures.insert("errors".to_owned(), errors_count);
            report.failures.insert("timeout".to_owned(), timeouts);
            is_rounded(errors, report);
        }
        [requests, "requests", "in", time, amount @ .., "read"] => {
            report.duration = Some(Time::printed(time.trim_end_matches(',')).ok_or_else(garbled)?);
            report.requests = count(requests);
            let amount = amount.concat();
            report.received_bytes =
                scaled(&amount, "B", 1e3).map(|bytes| crate::reports::values::to_integer(bytes.value.round()));
            return Ok(true);
        }
        _ => {}
    }
    Ok(false)
}

fn is_rounded(text: &str, report: &mut Report) {
    if count(text).is_none() {
        report
            .warnings
            .push(Warning::Note(format!("autocannon printed {text}: the number of failed requests is rounded")));
    }
}

fn latencies(header: &[&str], times: &[&str], report: &mut Report) -> Option<()> {
    let mut percentiles = Vec::new();
    if header.len() != times.len() {
        return None;
    }
    for (name, time) in header.iter().zip(times) {
        let time = Time::printed(time)?;
        match *name {
            // Recorded as whole milliseconds.
            "Avg" => report.latency.mean = Some(Time { error_ms: 0.5, ..time }),
            "Stdev" => report.latency.stddev = Some(time),
            "Max" => report.latency.max = Some(time),
            name => percentiles.push((number(name.strip_suffix('%')?)?, Some(time))),
        }
    }
    let latency = std::mem::take(&mut report.latency);
    report.latency = latency.with_percentiles(percentiles);
    Some(())
}
