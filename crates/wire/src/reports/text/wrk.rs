//! The output of wrk, wrk2 and `wrk --latency`.
//!
//! How wrk counts, according to `wrk.c`: `requests in` and `Requests/sec` count responses. A connect, read or write
//! error is a request without a response, so it is added to the requests here and counts as failed. A timeout is a
//! response that took longer than `--timeout`; an error status is 400 or above. Both are among the responses, and count
//! as failed. Latencies exclude timeouts.
//!
//! A connection whose socket can't be opened is given up, so the load comes from the others. One that the target
//! refuses is tried again, so that more connects may fail than there are connections; then it is unknown how many made
//! the load.

use std::collections::BTreeMap;

use super::super::values::percentile;
use super::units::{count, number, wrk_bytes, wrk_number, wrk_time};
use super::{line::ReportLine, metric};
use crate::reports::summary::{Connections, Contains, Group, Kind, Metric, Shape, Summary};
use crate::reports::validate::Fault;

/// Tolerance between two values rounded to two decimals.
const ROUNDED: f64 = 0.0051;

/// wrk2 has reported its calibration by then.
const LONGER_THAN_CALIBRATION_S: f64 = 11.0;

pub(super) fn recognises(lines: &[ReportLine]) -> bool {
    let starts = |line: &ReportLine| line.text.starts_with("Running ") && line.text.contains(" test @ ");
    lines
        .iter()
        .any(|line| starts(line) || line.text.starts_with("Thread Stats") || line.text.starts_with("Requests/sec:"))
}

/// The values found in the text.
#[derive(Default)]
struct Found {
    threads: Option<f64>,
    connections: Option<f64>,
    latency: BTreeMap<String, f64>,
    thread_rate: Option<[f64; 2]>,
    /// Responses, duration in ms, its rounding error, and bytes.
    total: Option<[f64; 4]>,
    errors: Option<[f64; 4]>,
    statuses: Option<f64>,
    rate: Option<f64>,
    transfer: Option<f64>,
    in_distribution: bool,
    /// Whether wrk2 wrote it, which sends at a rate instead of after each response.
    is_rate_limited: bool,
}

pub(super) fn read(lines: &[ReportLine]) -> Result<Summary, Fault> {
    let mut found = Found::default();
    for line in lines {
        found.read(line)?;
    }
    let last = lines.last().map_or(1, |line| line.number);
    found.summary().map_err(|what| ReportLine { number: last, text: String::new() }.fault(what))
}

impl Found {
    fn read(&mut self, line: &ReportLine) -> Result<(), Fault> {
        let text = line.text.as_str();
        let words: Vec<&str> = text.split_whitespace().collect();
        if std::mem::take(&mut self.in_distribution) && self.percentile(line, &words)? {
            self.in_distribution = true;
            return Ok(());
        }
        let garbled = || line.fault("is not in wrk's format");
        match words.as_slice() {
            [threads, "threads", "and", connections, "connections"] => {
                let both = count(threads).zip(count(connections)).ok_or_else(garbled)?;
                (self.threads, self.connections) =
                    (once(self.threads, both.0, line)?, once(self.connections, both.1, line)?);
            }
            ["Latency", "Distribution", rest @ ..] => {
                self.in_distribution = true;
                self.is_rate_limited |= rest.first() == Some(&"(HdrHistogram");
            }
            ["Thread", "calibration:", ..] => self.is_rate_limited = true,
            ["Latency", avg, _, max, ..] => {
                for (name, text) in [("avg", avg), ("max", max)] {
                    // Without responses wrk writes `-nan`.
                    if let Some((ms, _)) = wrk_time(text) {
                        self.latency.insert(name.to_owned(), ms);
                    } else if !text.contains("nan") {
                        return Err(garbled());
                    }
                }
            }
            ["Req/Sec", avg, _, max, ..] => {
                self.thread_rate = wrk_number(avg).zip(wrk_number(max)).map(|(avg, max)| [avg, max]);
            }
            [answers, "requests", "in", time, amount, "read"] => {
                let read = || {
                    let (ms, rounding) = wrk_time(time.strip_suffix(',')?)?;
                    Some([count(answers)?, ms, rounding, wrk_bytes(amount)?])
                };
                self.total = once(self.total, read().ok_or_else(garbled)?, line)?;
            }
            ["Socket", "errors:", "connect", connect, "read", read, "write", write, "timeout", timeout] => {
                let numbers = [connect, read, write, timeout].map(|text| count(text.trim_end_matches(',')));
                let [Some(connect), Some(read), Some(write), Some(timeout)] = numbers else { return Err(garbled()) };
                self.errors = once(self.errors, [connect, read, write, timeout], line)?;
            }
            ["Socket", "errors:", ..] => return Err(garbled()),
            ["Non-2xx", "or", "3xx", "responses:", statuses] => {
                self.statuses = once(self.statuses, count(statuses).ok_or_else(garbled)?, line)?;
            }
            ["Requests/sec:", rate] => self.rate = once(self.rate, number(rate).ok_or_else(garbled)?, line)?,
            ["Transfer/sec:", rate] => {
                self.transfer = once(self.transfer, wrk_bytes(rate).ok_or_else(garbled)?, line)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads a line of the distribution, if it is one; wrk2 continues with another table.
    fn percentile(&mut self, line: &ReportLine, words: &[&str]) -> Result<bool, Fault> {
        let [percent, time] = words else { return Ok(false) };
        let Some(percent) = percent.strip_suffix('%').and_then(number) else { return Ok(false) };
        let garbled = || line.fault(format_args!("the time of {percent} % is not in wrk's format"));
        let (ms, _) = wrk_time(time).ok_or_else(garbled)?;
        let name = if (percent - 50.0).abs() < 1e-9 { "med".to_owned() } else { format!("p({percent})") };
        if percentile(&name).is_some() {
            self.latency.insert(name, ms);
        }
        Ok(true)
    }

    fn summary(self) -> Result<Summary, String> {
        let [answers, ms, rounding_ms, bytes] = self.total.ok_or("wrk's \"… requests in …\" is missing")?;
        let rate = self.rate.ok_or("wrk's \"Requests/sec\" is missing")?;
        let transfer = self.transfer.ok_or("wrk's \"Transfer/sec\" is missing, its last line")?;
        let connections = self.connections.ok_or("wrk's \"… threads and … connections\" is missing")?;
        let seconds = ms / 1e3;
        if (answers - rate * seconds).abs() > ROUNDED * seconds + rate * rounding_ms * 1.02e-3 {
            return Err(format!("{rate} requests/s for {seconds} s are not {answers} requests: the text was modified"));
        }
        let [connect, read, write, timeout] = self.errors.unwrap_or_default();
        let statuses = self.statuses.unwrap_or_default();
        let requests = answers + connect + read + write;
        let failed = (connect + read + write + timeout + statuses).min(requests);
        let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let counter =
            |value: f64| metric(Kind::Counter, Contains::Default, [("count", value), ("rate", per_second(value))]);
        let gauge = |value: f64| metric(Kind::Gauge, Contains::Default, [("value", value)]);
        let share = if requests > 0.0 { failed / requests } else { 0.0 };
        let failures = [("rate", share), ("passes", failed), ("fails", requests - failed)];
        // Those in time; wrk prints zeros without any.
        let latency = if answers > timeout { self.latency } else { BTreeMap::new() };
        let mut metrics = BTreeMap::from(
            [
                ("http_reqs", metric(Kind::Counter, Contains::Default, [("count", requests), ("rate", rate)])),
                ("http_req_failed", metric(Kind::Rate, Contains::Default, failures)),
                ("data_received", metric(Kind::Counter, Contains::Data, [("count", bytes), ("rate", transfer)])),
                ("wrk_connections", gauge(connections)),
                ("wrk_connect_errors", counter(connect)),
                ("wrk_read_errors", counter(read)),
                ("wrk_write_errors", counter(write)),
                ("wrk_timeouts", counter(timeout)),
                ("wrk_bad_statuses", counter(statuses)),
            ]
            .map(|(name, metric)| (name.to_owned(), metric)),
        );
        let duration = Metric { kind: Kind::Trend, contains: Contains::Time, values: latency, thresholds: Vec::new() };
        metrics.insert("http_req_duration".to_owned(), duration);
        if let Some(open) = open(connections, connect) {
            metrics.insert("vus_max".to_owned(), gauge(open));
            // wrk2 calibrates its threads after ten seconds; a shorter output without distribution could be of either.
            if !self.is_rate_limited && seconds > LONGER_THAN_CALIBRATION_S {
                metrics.insert("wrk_closed_connections".to_owned(), gauge(open));
            }
        }
        metrics.extend(self.threads.map(|threads| ("wrk_threads".to_owned(), gauge(threads))));
        metrics.extend(self.thread_rate.map(|[avg, max]| {
            let rate = metric(Kind::Trend, Contains::Default, [("avg", avg), ("max", max)]);
            ("wrk_thread_requests_per_s".to_owned(), rate)
        }));
        Ok(Summary {
            shape: Shape::Wrk,
            k6_version: None,
            duration_ms: Some(ms),
            metrics,
            root: Group::default(),
            negative_minima: Vec::new(),
        })
    }
}

/// Returns how many connections made the load; None if that is unknown.
fn open(connections: f64, failed: f64) -> Option<f64> {
    match failed {
        failed if failed <= Connections::FEW_FAILED * connections => Some(connections),
        failed if failed < connections => Some(connections - failed),
        _ => None,
    }
}

fn once<T: Copy>(before: Option<T>, value: T, line: &ReportLine) -> Result<Option<T>, Fault> {
    match before {
        None => Ok(Some(value)),
        Some(_) => Err(line.fault("is duplicated: these are two outputs, or one was edited")),
    }
}
