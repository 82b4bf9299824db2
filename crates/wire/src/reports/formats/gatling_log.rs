//! Gatling's `simulation.log` of the versions that wrote text (2 to 3.11). Times are unix milliseconds.
//!
//! The columns differ between versions, but each request has its start and its end right before its status.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use super::format::{Format, Reader, Recognised};
use crate::reports::input::unpack;
use crate::reports::report::{Generated, Population, Report};
use crate::reports::samples::Samples;
use crate::reports::seconds::{Event, Seconds};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "gatling-log",
    title: "Gatling's simulation.log",
    tool: "gatling",
    limits: "Times are whole milliseconds. It lacks statuses, bytes and the address. All requests are added up.",
    is_rounded: true,
    timeout_ms: Some(60_000.0),
    reader: Reader::Records { is, read },
};

/// Maximum number of different messages of failures.
const MESSAGES_MAX: usize = 100;

fn is(head: &str) -> Recognised {
    let fields: Vec<&str> = head.lines().next().unwrap_or_default().split('\t').collect();
    let is_run = fields.first() == Some(&"RUN") || fields.get(2) == Some(&"RUN");
    let is_next = head.lines().take(200).any(|line| line.starts_with("REQUEST\t") || line.contains("\tREQUEST\t"));
    match (is_run && fields.len() > 3, is_next || fields.first() == Some(&"ASSERTION")) {
        (true, _) => Recognised::Yes,
        (false, true) if fields.first() == Some(&"ASSERTION") => {
            if head.contains("\nRUN\t") {
                Recognised::Yes
            } else {
                Recognised::Near("its line RUN is missing".into())
            }
        }
        (false, _) => Recognised::No,
    }
}

#[derive(Default)]
struct Found {
    version: Option<String>,
    name: Option<String>,
    latency: Samples,
    ok_latency: Samples,
    seconds: Seconds,
    failures: BTreeMap<String, u64>,
    failed: u64,
    span: Option<(i64, i64)>,
    users: i64,
    users_max: i64,
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let (mut found, mut line, mut number, mut is_cut) = (Found::default(), Vec::new(), 0_u64, false);
    loop {
        line.clear();
        if source.read_until(b'\n', &mut line).map_err(|error| unpack::to_fault(&error))? == 0 {
            break;
        }
        number += 1;
        let fault = |what: &str| Place::root(&format!("line {number}")).fault(what);
        let text = std::str::from_utf8(&line).map_err(|_| fault("is not valid UTF-8"))?;
        let fields: Vec<&str> = text.trim_end_matches(['\n', '\r']).split('\t').collect();
        if found.add(&fields).is_none() {
            if line.ends_with(b"\n") {
                return Err(fault("is not in the format of Gatling's simulation.log"));
            }
            is_cut = true;
        }
    }
    Ok(vec![found.report(is_cut)?])
}

impl Found {
    /// Adds a line; `None` if it can't be read.
    fn add(&mut self, fields: &[&str]) -> Option<()> {
        // Gatling 2.0 begins with scenario and user.
        let kind = ["RUN", "USER", "REQUEST", "GROUP"].into_iter().find(|kind| {
            fields.first() == Some(kind) || fields.get(2) == Some(kind) && fields.first() != Some(&"ASSERTION")
        });
        match kind {
            Some("RUN") => {
                self.version = fields.last().map(|text| (*text).trim().to_owned()).filter(|text| text.contains('.'));
                self.name = fields.iter().find(|field| !matches!(**field, "RUN" | "")).map(|name| (*name).to_owned());
            }
            Some("USER") if fields.contains(&"START") => {
                self.users += 1;
                self.users_max = self.users_max.max(self.users);
            }
            Some("USER") if fields.contains(&"END") => self.users -= 1,
            Some("REQUEST") => {
                let status = fields.iter().rposition(|field| matches!(*field, "OK" | "KO"))?;
                self.request(fields.get(..status)?, fields.get(status..)?)?;
            }
            _ => {}
        }
        Some(())
    }

    fn request(&mut self, before: &[&str], after: &[&str]) -> Option<()> {
        let [status, message @ ..] = after else { return None };
        let is_time = |field: &&&str| field.len() == 13 && field.bytes().all(|byte| byte.is_ascii_digit());
        let times: Vec<i64> = before.iter().rev().take_while(is_time).filter_map(|field| field.parse().ok()).collect();
        let (end, start) = (*times.first()?, *times.last()?);
        if times.len() < 2 {
            return None;
        }
        let (ms, is_failed) = ((end - start) as f64, *status == "KO");
        self.latency.add(ms);
        self.seconds.add(end, Event::Request { ms, is_failed });
        if is_failed {
            self.failed += 1;
            let message: String = message.first().unwrap_or(&"").trim().chars().take(200).collect();
            let message = if message.is_empty() { "KO".to_owned() } else { message };
            if self.failures.len() < MESSAGES_MAX || self.failures.contains_key(&message) {
                *self.failures.entry(message).or_default() += 1;
            }
        } else {
            self.ok_latency.add(ms);
        }
        self.span = Some(self.span.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
        Some(())
    }

    fn report(self, is_cut: bool) -> Result<Report, Fault> {
        let (start, end) = self.span.ok_or_else(|| Place::root("the file").fault("has no requests"))?;
        let warnings = [
            self.latency.negative_ms().map(|ms| Warning::NegativeTime { statistic: "minimum latency".to_owned(), ms }),
            is_cut.then(|| Warning::Incomplete("the last line is truncated: the test was interrupted".to_owned())),
        ];
        Ok(Report {
            name: self.name,
            version: self.version,
            started_ms: Some(start),
            duration: Some(Time { ms: (end - start) as f64, error_ms: 1.0 }).filter(|time| time.ms > 0.0),
            load: Generated {
                connections: u64::try_from(self.users_max).ok().filter(|users| *users > 0),
                ..Generated::default()
            },
            requests: Some(self.latency.total()),
            failed: Some(self.failed),
            failures: self.failures,
            // Whole milliseconds: start and end are cut.
            latency: self.latency.latencies(Population::All).at_least(1.0),
            ok_latency: self.ok_latency.latencies(Population::Successful).at_least(1.0),
            series: self.seconds.window(),
            warnings: warnings.into_iter().flatten().collect(),
            ..Report::default()
        })
    }
}
