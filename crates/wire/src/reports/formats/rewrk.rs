//! rewrk's output, as text and as JSON.
//!
//! Its table "Percentile / Avg Latency" (`--pct`) has means of the slowest requests: they are no percentiles, and are not
//! read.

use serde::Deserialize;

use super::format::{Format, Reader, starts_where, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Generated, Latencies, Model, Population, Report};
use crate::reports::time::{Time, count, printed, scaled};
use crate::reports::validate::Fault;

const LIMITS: &str =
    "It does not say how many requests failed. Its percentiles are means of the slowest requests, and are not read.";

pub(super) const TEXT: Format = Format {
    name: "rewrk",
    title: "rewrk's output",
    tool: "rewrk",
    limits: LIMITS,
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Text {
        starts: |lines| starts_where(lines, |lines| lines.first().and_then(benchmarked).is_some()),
        near: &[],
        read,
    },
};

pub(super) const JSON: Format = Format {
    name: "rewrk-json",
    title: "rewrk's output as JSON",
    is_rounded: false,
    reader: Reader::Json {
        is: |document| document.has(&["latency_std_deviation", "requests_total", "requests_avg"]).into(),
        read: |document| Ok(vec![document.read::<Rewrk>()?.report()]),
    },
    ..TEXT
};

/// Returns the connections and the address of `Benchmarking 256 connections @ http://… for 15 second(s)`.
fn benchmarked(line: &ReportLine) -> Option<(u64, String)> {
    match words(line).as_slice() {
        ["Benchmarking", connections, "connections", "@", url, "for", ..] => {
            Some((count(connections)?, (*url).to_owned()))
        }
        _ => None,
    }
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let (connections, url) = lines.first().and_then(benchmarked).unzip();
    let mut report = Report {
        url,
        load: Generated { connections, model: Some(Model::Closed), ..Generated::default() },
        latency: Latencies { of: Population::Responses, ..Latencies::default() },
        ..Report::default()
    };
    for pair in lines.windows(2) {
        let [above, line] = pair else { continue };
        let garbled = || line.fault("is not in rewrk's format, or was truncated");
        match (words(above).as_slice(), words(line).as_slice()) {
            (["Avg", "Stdev", "Min", "Max"], times) => {
                let &[mean, stddev, min, max] = times else { return Err(garbled()) };
                let time = |text| Time::printed(text).ok_or_else(garbled).map(Some);
                let latency = &mut report.latency;
                (latency.mean, latency.stddev) = (time(mean)?, time(stddev)?);
                (latency.min, latency.max) = (time(min)?, time(max)?);
            }
            (_, ["Total:", requests, "Req/Sec:", rate]) => {
                report.requests = Some(count(requests).ok_or_else(garbled)?);
                report.set_rate(printed(rate).ok_or_else(garbled)?);
            }
            (_, ["Total:", amount, unit, "Transfer", "Rate:", ..]) => {
                let bytes = scaled(&format!("{amount}{unit}"), "B", 1024.0).map(|bytes| bytes.value);
                report.received_bytes = Some(bytes.map(crate::reports::values::to_integer).ok_or_else(garbled)?);
            }
            _ => {}
        }
    }
    if report.requests.is_none() || report.received_bytes.is_none() {
        let last = lines.last().map_or(1, |line| line.number);
        let last = ReportLine { number: last, text: String::new() };
        return Err(last.fault("rewrk's \"Requests:\" or \"Transfer:\" is missing: the output was truncated"));
    }
    Ok(report)
}

#[derive(Deserialize)]
struct Rewrk {
    latency_avg: f64,
    latency_max: f64,
    latency_min: f64,
    latency_std_deviation: f64,
    transfer_total: f64,
    requests_total: u64,
    requests_avg: f64,
}

impl Rewrk {
    fn report(self) -> Report {
        let time = |ms| Some(Time::exact(ms));
        Report {
            requests: Some(self.requests_total),
            rate_per_s: Some(self.requests_avg),
            received_bytes: Some(crate::reports::values::to_integer(self.transfer_total)),
            load: Generated { model: Some(Model::Closed), ..Generated::default() },
            latency: Latencies {
                min: time(self.latency_min),
                mean: time(self.latency_avg),
                max: time(self.latency_max),
                stddev: time(self.latency_std_deviation),
                of: Population::Responses,
                ..Latencies::default()
            },
            ..Report::default()
        }
    }
}
