//! The output of wrk, wrk2 and `wrk --latency`.
//!
//! How wrk counts, according to `wrk.c`: `requests in` and `Requests/sec` count responses. A connect, read or write
//! error is a request without a response, so it is added to the requests here and counts as failed. A timeout is a
//! response that took longer than `--timeout`; an error status is 400 or above. Both are among the responses, and count
//! as failed. Latencies exclude timeouts.

use super::format::{Format, Reader, words};
use crate::reports::input::lines::ReportLine;
use crate::reports::report::{Definition, Generated, Latencies, Model, Report, Since};
use crate::reports::time::{Printed, Time, count, number, printed, scaled};
use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "wrk",
    title: "wrk's output",
    tool: "wrk",
    limits: "Times, rates and bytes have two decimals of their unit. There is no minimum, and percentiles only with \
             --latency. wrk2 does not print the rate that was requested.",
    is_rounded: true,
    timeout_ms: Some(2_000.0),
    reader: Reader::Text {
        starts,
        near: &[(
            "Requests/sec:",
            "\"Requests/sec\" alone is printed by several tools: a result of wrk begins with \"Running … test @ …\"",
        )],
        read,
    },
};

/// Tolerance between two values rounded to two decimals.
const ROUNDED: f64 = 0.0051;

/// wrk2 has reported its calibration by then.
const LONGER_THAN_CALIBRATION_MS: f64 = 11_000.0;

/// wrk2 counts latency from the time at which a request was due.
const WRK2_LOAD: &str = "wrk2 does not print the rate that was requested";

fn is_title(line: &ReportLine) -> bool {
    line.text.starts_with("Running ") && line.text.contains(" test @ ")
}

/// How far above its output a command may be, lines that are not empty.
const COMMAND_ABOVE: usize = 6;

/// `$ wrk -t2 -c100 -d30s -R2000 http://…`: only the command has wrk2's rate.
fn is_command(line: &ReportLine) -> bool {
    let mut words = line.text.split_whitespace();
    words.any(|word| word.ends_with("wrk") || word.ends_with("wrk2")) && words.any(|word| word.starts_with('-'))
}

/// Returns the rate that a command requests: `-R2000`, `-R 2000`, `--rate 2000`, `--rate=2k`.
fn requested_rate(words: &[&str]) -> Option<f64> {
    let at = words.iter().position(|word| word.starts_with("-R") || word.starts_with("--rate"))?;
    let word = words.get(at)?;
    let value = word.strip_prefix("--rate").or_else(|| word.strip_prefix("-R"))?.trim_start_matches('=');
    scaled(if value.is_empty() { words.get(at + 1)? } else { value }, "", 1e3).map(|rate| rate.value)
}

fn is_threads(line: &ReportLine) -> bool {
    matches!(words(line).as_slice(), [_, "threads", "and", _, "connections"])
}

fn starts(lines: &[ReportLine]) -> Vec<usize> {
    let (mut starts, mut has_ended) = (Vec::new(), true);
    for (index, line) in lines.iter().enumerate() {
        let next = lines.get(index + 1..).unwrap_or_default();
        // autocannon begins in the same way.
        if is_title(line) && next.iter().take(2).any(is_threads) {
            let above = lines.get(index.saturating_sub(COMMAND_ABOVE)..index).unwrap_or_default();
            // Nearer than the end of another output.
            let above = above.iter().rev().take_while(|line| !line.text.starts_with("Transfer/sec:"));
            let command = above.enumerate().find(|(_, line)| is_command(line));
            starts.push(index - command.map_or(0, |(distance, _)| distance + 1));
            has_ended = false;
        } else if has_ended && (is_threads(line) || line.text.starts_with("Thread Stats ")) {
            // The title was left out.
            starts.push(index);
            has_ended = false;
        }
        has_ended |= line.text.starts_with("Requests/sec:");
    }
    starts
}

/// The values found in the text.
#[derive(Default)]
struct Found {
    url: Option<String>,
    load: Generated,
    latency: Latencies,
    percentiles: Vec<(f64, Option<Time>)>,
    thread_rate: Option<[f64; 2]>,
    /// Responses, duration and bytes.
    total: Option<(u64, Time, f64)>,
    errors: Option<[u64; 4]>,
    statuses: Option<u64>,
    rate: Option<Printed>,
    transfer: Option<Printed>,
    in_distribution: bool,
    /// Whether wrk2 wrote it, which sends at a rate instead of after each response.
    is_rate_limited: bool,
}

fn read(lines: &[ReportLine]) -> Result<Report, Fault> {
    let mut found = Found::default();
    for line in lines {
        found.read(line)?;
        if found.transfer.is_some() {
            break;
        }
    }
    let last = lines.last().map_or(1, |line| line.number);
    found.report().map_err(|what| ReportLine { number: last, text: String::new() }.fault(what))
}

impl Found {
    fn read(&mut self, line: &ReportLine) -> Result<(), Fault> {
        let words = words(line);
        if std::mem::take(&mut self.in_distribution) && self.percentile(line, &words)? {
            self.in_distribution = true;
            return Ok(());
        }
        let garbled = || line.fault("is not in wrk's format");
        match words.as_slice() {
            words if self.url.is_none() && is_command(line) => self.load.rate_per_s = requested_rate(words),
            ["Running", _, "test", "@", url, ..] => self.url = Some((*url).to_owned()),
            [threads, "threads", "and", connections, "connections"] => {
                let (threads, connections) = count(threads).zip(count(connections)).ok_or_else(garbled)?;
                self.load.threads = once(self.load.threads, threads, line)?;
                self.load.connections = once(self.load.connections, connections, line)?;
            }
            // Another view of the same requests (wrk2 -U), which is not the one of the mean and maximum above.
            ["Latency", "Distribution", _, "-", "Uncorrected", ..] => {}
            ["Latency", "Distribution", rest @ ..] => {
                self.in_distribution = true;
                self.is_rate_limited |= rest.first() == Some(&"(HdrHistogram");
            }
            ["Thread", "calibration:", ..] => self.is_rate_limited = true,
            ["Latency", mean, stddev, max, ..] => {
                // Without responses wrk writes `-nan`.
                let time = |text: &str| if text.contains("nan") { Some(None) } else { Time::printed(text).map(Some) };
                self.latency.mean = time(mean).ok_or_else(garbled)?;
                self.latency.stddev = time(stddev).ok_or_else(garbled)?;
                self.latency.max = time(max).ok_or_else(garbled)?;
            }
            ["Req/Sec", mean, _, max, ..] => {
                self.thread_rate =
                    scaled(mean, "", 1e3).zip(scaled(max, "", 1e3)).map(|(mean, max)| [mean.value, max.value]);
            }
            [answers, "requests", "in", time, amount, "read"] => {
                let read = || {
                    Some((
                        count(answers)?,
                        Time::printed(time.strip_suffix(',')?)?,
                        scaled(amount, "B", 1024.0)?.value.round(),
                    ))
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
            ["Requests/sec:", rate] => self.rate = once(self.rate, printed(rate).ok_or_else(garbled)?, line)?,
            ["Transfer/sec:", rate] => {
                let rate = scaled(rate, "B", 1024.0).ok_or_else(garbled)?;
                self.transfer = once(self.transfer, Printed { value: rate.value.round(), ..rate }, line)?;
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
        let time = Time::printed(time).ok_or_else(garbled)?;
        self.percentiles.push((percent, Some(time)));
        Ok(true)
    }

    fn report(self) -> Result<Report, String> {
        let (answers, duration, bytes) = self.total.ok_or("wrk's \"… requests in …\" is missing")?;
        let rate = self.rate.ok_or("wrk's \"Requests/sec\" is missing")?;
        let transfer = self.transfer.ok_or("wrk's \"Transfer/sec\" is missing, its last line")?;
        self.load.connections.ok_or("wrk's \"… threads and … connections\" is missing")?;
        let seconds = duration.ms / 1e3;
        let Printed { value: per_s, .. } = rate;
        if (answers as f64 - per_s * seconds).abs() > ROUNDED * seconds + per_s * duration.error_ms * 1.02e-3 {
            return Err(format!(
                "{per_s} requests/s for {seconds} s are not {answers} requests: the text was modified"
            ));
        }
        let [connect, read, write, timeout] = self.errors.unwrap_or_default();
        let statuses = self.statuses.unwrap_or_default();
        let without = [connect, read, write].into_iter().fold(0, u64::saturating_add);
        let requests = answers.saturating_add(without);
        let failed = [timeout, statuses].into_iter().fold(without, u64::saturating_add).min(requests);
        let failures =
            [("connect", connect), ("read", read), ("write", write), ("timeout", timeout), ("status", statuses)];
        // Those in time; wrk prints zeros without any.
        let latency =
            if answers > timeout { self.latency.with_percentiles(self.percentiles) } else { Latencies::default() };
        let is_longer = duration.ms > LONGER_THAN_CALIBRATION_MS;
        // wrk2 calibrates its threads after ten seconds; a shorter output without distribution could be of either.
        let model = match (self.is_rate_limited, is_longer) {
            (true, _) => Some(Model::Open),
            (false, true) => Some(Model::Closed),
            (false, false) => None,
        };
        let is_unknown = self.is_rate_limited && self.load.rate_per_s.is_none();
        let unknown = is_unknown.then_some(Warning::LoadUnknown(WRK2_LOAD.to_owned()));
        let no_latency = (answers <= timeout).then_some(Warning::NoLatency);
        let mut report = Report {
            url: self.url,
            duration: Some(duration),
            load: Generated { connect_errors: Some(connect), model, ..self.load },
            requests: Some(requests),
            failed: Some(failed),
            failures: failures.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
            received_bytes: Some(crate::reports::values::to_integer(bytes)),
            latency: Latencies {
                definition: Definition::Histogram,
                since: if self.is_rate_limited { Since::Due } else { Since::Sent },
                ..latency
            },
            others: self
                .thread_rate
                .map(|[_, max]| ("thread_requests_per_s_max".to_owned(), max))
                .into_iter()
                .collect(),
            warnings: unknown.into_iter().chain(no_latency).collect(),
            ..Report::default()
        };
        report.set_rate(rate);
        report.set_received(transfer);
        Ok(report)
    }
}

fn once<T: Copy>(before: Option<T>, value: T, line: &ReportLine) -> Result<Option<T>, Fault> {
    match before {
        None => Ok(Some(value)),
        Some(_) => Err(line.fault("is duplicated: these are two outputs, or one was edited")),
    }
}
