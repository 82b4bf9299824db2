//! vegeta's reports: JSON, text and `hdrplot`.
//!
//! Its latencies are of all requests, those without a response among them; percentiles are estimated by a t-digest.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fields::{bad_statuses, instant_ms};
use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Model, Population, Report};
use crate::reports::time::{Time, count, number, printed};
use crate::reports::validate::Fault;

pub(super) const JSON: Format = Format {
    name: "vegeta",
    title: "vegeta's report as JSON",
    tool: "vegeta",
    limits: "It lacks the address and the requested rate; the rate is the one that was sent.",
    is_rounded: false,
    timeout_ms: Some(30_000.0),
    reader: Reader::Json {
        is: |document| document.has(&["latencies", "bytes_in", "status_codes", "throughput"]).into(),
        read: |document| Ok(vec![document.read::<Vegeta>()?.report()]),
    },
};

pub(super) const TEXT: Format = Format {
    name: "vegeta-text",
    title: "vegeta's report as text",
    tool: "vegeta",
    limits: "Times have three decimals of their unit, rates two. It lacks the address and the requested rate.",
    is_rounded: true,
    timeout_ms: Some(30_000.0),
    reader: Reader::Text {
        starts: |lines| {
            starts_where(lines, |lines| lines.first().is_some_and(|line| heads(line, "Requests", "[total, rate")))
        },
        near: &[(
            "Bucket         #",
            "vegeta's histogram has no rate and no percentiles: import its report of type json",
        )],
        read: read_text,
    },
};

pub(super) const HDRPLOT: Format = Format {
    name: "vegeta-hdrplot",
    title: "vegeta's report of type hdrplot",
    tool: "vegeta",
    limits: "It has only percentiles and the number of requests: no rate, no duration, no statuses.",
    is_rounded: false,
    timeout_ms: Some(30_000.0),
    reader: Reader::Text {
        starts: |lines| {
            let header = ["Value(ms)", "Percentile", "TotalCount", "1/(1-Percentile)"];
            starts_where(lines, |lines| lines.first().is_some_and(|line| words(line) == header))
        },
        near: &[],
        read: read_hdrplot,
    },
};

#[derive(Deserialize)]
struct Vegeta {
    latencies: Times,
    bytes_in: Bytes,
    bytes_out: Bytes,
    earliest: Option<String>,
    duration: f64,
    requests: u64,
    rate: f64,
    throughput: f64,
    status_codes: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
struct Bytes {
    total: u64,
}

#[derive(Deserialize)]
struct Times {
    mean: f64,
    #[serde(rename = "50th")]
    p50: f64,
    #[serde(rename = "90th")]
    p90: Option<f64>,
    #[serde(rename = "95th")]
    p95: f64,
    #[serde(rename = "99th")]
    p99: f64,
    max: f64,
    min: Option<f64>,
}

fn base() -> Report {
    Report {
        load: Generated { model: Some(Model::Open), ..Generated::default() },
        latency: Latencies { of: Population::All, definition: Definition::Estimated, ..Latencies::default() },
        ..Report::default()
    }
}

/// A request without a response has the status 0.
fn with_statuses(mut report: Report, mut statuses: BTreeMap<String, u64>) -> Report {
    report.failed = Some(bad_statuses(&statuses));
    if let Some(none) = statuses.remove("0") {
        report.failures.insert("no response".to_owned(), none);
    }
    report.statuses = statuses;
    report
}

impl Vegeta {
    fn report(self) -> Report {
        let ns = |value: f64| Some(Time::of(value, 1e-6));
        let Self { latencies, .. } = self;
        let mut report = base();
        report.started_ms = self.earliest.as_deref().and_then(instant_ms);
        report.duration = ns(self.duration).filter(|time| time.ms > 0.0);
        report.requests = Some(self.requests);
        report.rate_per_s = Some(self.rate);
        report.received_bytes = Some(self.bytes_in.total);
        report.sent_bytes = Some(self.bytes_out.total);
        report.others.insert("successes_per_s".to_owned(), self.throughput);
        report.latency.min = latencies.min.and_then(ns);
        report.latency.mean = ns(latencies.mean);
        report.latency.max = ns(latencies.max);
        report.latency = report.latency.with_percentiles([
            (50.0, ns(latencies.p50)),
            (90.0, latencies.p90.and_then(ns)),
            (95.0, ns(latencies.p95)),
            (99.0, ns(latencies.p99)),
        ]);
        with_statuses(report, self.status_codes)
    }
}

fn heads(line: &ReportLine, name: &str, columns: &str) -> bool {
    line.text.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(columns))
}

fn read_text(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = base();
    let mut statuses = None;
    for line in lines {
        let garbled = || line.fault("is not in vegeta's format, or was truncated");
        let Some((head, values)) = line.text.split_once(']') else { continue };
        let Some((name, columns)) = head.split_once('[') else { continue };
        let columns: Vec<&str> = columns.split(',').map(str::trim).collect();
        let values: Vec<&str> = values.split(',').map(str::trim).collect();
        match (name.trim(), values.as_slice()) {
            ("Requests", [total, rate, rest @ ..]) => {
                report.requests = Some(count(total).ok_or_else(garbled)?);
                report.set_rate(printed(rate).ok_or_else(garbled)?);
                report.others.extend(
                    rest.first().and_then(|text| number(text)).map(|rate| ("successes_per_s".to_owned(), rate)),
                );
            }
            ("Duration", [_, attack, ..]) => {
                report.duration = Some(Time::printed(attack).ok_or_else(garbled)?).filter(|time| time.ms > 0.0);
            }
            ("Latencies", times) => latencies(&columns, times, &mut report).ok_or_else(garbled)?,
            ("Bytes In", [total, ..]) => report.received_bytes = Some(count(total).ok_or_else(garbled)?),
            ("Bytes Out", [total, ..]) => report.sent_bytes = Some(count(total).ok_or_else(garbled)?),
            ("Status Codes", _) => {
                let pairs = line.text.split_once(']').map_or("", |(_, pairs)| pairs).split_whitespace();
                let pair = |pair: &str| {
                    let (status, found) = pair.split_once(':')?;
                    Some((status.to_owned(), count(found)?))
                };
                statuses = Some(pairs.map(pair).collect::<Option<BTreeMap<_, _>>>().ok_or_else(garbled)?);
                break;
            }
            _ => {}
        }
    }
    let is_all = |found: &BTreeMap<String, u64>| Some(super::fields::sum(found.values())) == report.requests;
    let Some(statuses) = statuses.filter(is_all) else {
        let line = lines.last().map_or(1, |line| line.number);
        let what = "\"Status Codes\" is missing or not of all requests: the report was truncated";
        return Err(ReportLine { number: line, text: String::new() }.fault(what));
    };
    Ok(with_statuses(report, statuses))
}

fn latencies(columns: &[&str], times: &[&str], report: &mut Report) -> Option<()> {
    let mut percentiles = Vec::new();
    if columns.len() != times.len() {
        return None;
    }
    for (column, time) in columns.iter().zip(times) {
        let time = Time::printed(time)?;
        match *column {
            "min" => report.latency.min = Some(time),
            "mean" => report.latency.mean = Some(time),
            "max" => report.latency.max = Some(time),
            percent => percentiles.push((number(percent)?, Some(time))),
        }
    }
    let latency = std::mem::take(&mut report.latency);
    report.latency = latency.with_percentiles(percentiles);
    Some(())
}

fn read_hdrplot(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut report = base();
    let mut percentiles: Vec<(f64, Option<Time>)> = Vec::new();
    for line in lines.iter().skip(1) {
        let words = words(line);
        let [value, share, total, _] = words.as_slice() else { break };
        let read = || Some((Time::decimal(value, 1.0)?, number(share)?, count(total)?));
        let (time, share, total) = read().ok_or_else(|| line.fault("is not in the format of hdrplot"))?;
        // Shares have six decimals.
        let percent = (share * 1e8).round() / 1e6;
        match percent {
            percent if percent <= 0.0 => report.latency.min = Some(time),
            percent if percent >= 100.0 => report.latency.max = Some(time),
            percent if percentiles.last().is_none_or(|(last, _)| *last < percent) => {
                percentiles.push((percent, Some(time)));
            }
            _ => {}
        }
        report.requests = Some(total);
    }
    let latency = std::mem::take(&mut report.latency);
    report.latency = latency.with_percentiles(percentiles);
    Ok(report)
}
