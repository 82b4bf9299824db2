//! The record of k6's web dashboard (`K6_WEB_DASHBOARD_RECORD`), and its HTML report, which contains one.
//!
//! A line is an event. A list of values has one entry for each metric declared so far, in the order of their names; an
//! entry is a list of the aggregates of the metric's kind.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::format::{Format, Reader, Recognised};
use super::json_lines::{Refused, each_line};
use crate::reports::input::unpack::{self, Records};
use crate::reports::metrics::not_too_many;
use crate::reports::names;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, ShortNumber};
use crate::reports::values::{percentile, to_integer};
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "k6-dashboard",
    title: "k6's web dashboard record or HTML report",
    tool: "k6",
    limits: "Times and rates are cut to five digits, shares to five decimals: of more than 100,000 requests, some that \
             failed may be missing. It lacks statuses, thresholds, the names of checks and custom metrics; setup and \
             teardown count as load.",
    is_rounded: true,
    timeout_ms: Some(60_000.0),
    reader: Reader::Records { is, read },
};

/// The start of the element with the record in the HTML report.
const ELEMENT: &str = "<script id=\"data\"";

/// The largest float up to which all integers are exact.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Relative error of a product of floats.
const ROUNDING: f64 = 1e-9;

/// The metrics that are read.
const READ: [&str; 14] = [
    "checks",
    "data_received",
    "data_sent",
    "dropped_iterations",
    "http_req_blocked",
    "http_req_duration",
    SUCCESSFUL,
    "http_req_failed",
    "http_req_waiting",
    "http_reqs",
    "iteration_duration",
    "iterations",
    "time",
    "vus_max",
];

/// Only there if `K6_WEB_DASHBOARD_TAG` asks for it.
const SUCCESSFUL: &str = "http_req_duration{expected_response:true}";

fn is(head: &str) -> Recognised {
    let line = head.lines().next().unwrap_or_default();
    let starts = |event: &&str| line.starts_with(&format!("{{\"event\":\"{event}\",\"data\":"));
    let is_record = ["config", "param", "metric", "start"].iter().any(starts);
    (is_record || is_page(head)).into()
}

fn is_page(head: &str) -> bool {
    head.trim_start().starts_with('<') && (head.contains("<title>k6 report</title>") || head.contains(ELEMENT))
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let mut source = BufReader::with_capacity(1 << 16, source);
    let start = source.fill_buf().map_err(|error| unpack::to_fault(&error))?;
    let report = if start.trim_ascii_start().starts_with(b"<") {
        let page = unpack::document(source)?;
        let record = embedded(&String::from_utf8_lossy(&page))?;
        let lines = MultiGzDecoder::new(record.as_slice());
        let within = |fault: Fault| Fault { place: format!("the record in the page: {}", fault.place), ..fault };
        report(&mut Records::new(lines)).map_err(within)?
    } else {
        report(&mut source)?
    };
    Ok(vec![report])
}

/// Returns the record in a page, which is compressed.
fn embedded(page: &str) -> Result<Vec<u8>, Fault> {
    let fault = |what: String| Place::root("the page").fault(what);
    let element = page.split_once(ELEMENT).and_then(|(_, rest)| rest.split_once('>'));
    let Some((kind, rest)) = element else {
        return Err(fault("has no record: it is truncated, or a browser saved it without".to_owned()));
    };
    if !(kind.contains("gzip") && kind.contains("base64")) {
        return Err(fault("has a record that is not compressed with gzip and encoded in base64".to_owned()));
    }
    let Some((text, _)) = rest.split_once("</script>") else {
        return Err(fault("ends within the record: it is truncated".to_owned()));
    };
    let letters: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|error| fault(format!("has a record that is not encoded in base64: {error}")))
}

fn report(lines: &mut dyn Read) -> Result<Report, Fault> {
    let mut record = Record::default();
    let cut = each_line(lines, FORMAT.title, |line| record.add(&serde_json::from_slice(line)?))?;
    let stopped = record.stop_ms.is_some();
    let mut report = record.report()?;
    let unfinished = || Warning::Incomplete("the record has no end: the test was interrupted".to_owned());
    report.warnings.extend(cut.or_else(|| (!stopped).then(unfinished)));
    Ok(report)
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    data: &'a RawValue,
}

#[derive(Deserialize)]
struct Param {
    #[serde(default)]
    aggregates: Aggregates,
}

/// The names of the aggregates of each kind of metric, in their order.
#[derive(Deserialize)]
#[serde(default)]
struct Aggregates {
    counter: Vec<String>,
    gauge: Vec<String>,
    rate: Vec<String>,
    trend: Vec<String>,
}

impl Default for Aggregates {
    /// Those of a record that `k6 dashboard aggregate` writes, which does not name them.
    fn default() -> Self {
        let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            counter: named(&["count", "rate"]),
            gauge: named(&["value"]),
            rate: named(&["rate"]),
            trend: named(&["avg", "max", "med", "min", "p(90)", "p(95)", "p(99)"]),
        }
    }
}

#[derive(Deserialize)]
struct Declared {
    #[serde(rename = "type")]
    kind: Kind,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Counter,
    Gauge,
    Rate,
    Trend,
    #[serde(other)]
    Unknown,
}

/// What the events said so far.
#[derive(Default)]
struct Record {
    aggregates: Aggregates,
    metrics: BTreeMap<String, Kind>,
    start_ms: Option<f64>,
    stop_ms: Option<f64>,
    /// The last values of the whole test.
    totals: Option<BTreeMap<&'static str, Vec<f64>>>,
}

impl Record {
    fn add(&mut self, line: &Line<'_>) -> Result<(), Refused> {
        let data = line.data.get();
        match line.event.as_ref() {
            "param" => self.aggregates = serde_json::from_str::<Param>(data)?.aggregates,
            "metric" => {
                for (name, Declared { kind }) in serde_json::from_str::<BTreeMap<String, Declared>>(data)? {
                    names::metric(&name, &Place::root("metric"))?;
                    self.metrics.insert(name, kind);
                }
                not_too_many(self.metrics.len(), &Place::root("the record"))?;
            }
            "start" if self.start_ms.is_some() => {
                let what = "starts another record: put each into a file of its own";
                return Err(Place::root("start").fault(what).into());
            }
            "start" => self.start_ms = Some(moment(data)?),
            "stop" => self.stop_ms = Some(moment(data)?),
            "cumulative" => self.totals = Some(self.values(&serde_json::from_str::<Vec<Option<Vec<f64>>>>(data)?)?),
            _ => {}
        }
        Ok(())
    }

    /// Returns the values of the metrics that are read.
    fn values(&self, all: &[Option<Vec<f64>>]) -> Result<BTreeMap<&'static str, Vec<f64>>, Fault> {
        if all.len() != self.metrics.len() {
            let what = format!("has values of {} metrics, but {} were declared", all.len(), self.metrics.len());
            return Err(Place::root("cumulative").fault(what));
        }
        let known = self.metrics.keys().zip(all).filter_map(|(name, values)| {
            let name = READ.into_iter().find(|read| read == name)?;
            Some((name, values.clone()?))
        });
        Ok(known.collect())
    }

    /// Returns the aggregates of a metric by name. One without samples has none.
    fn aggregates(&self, metric: &str) -> Result<Vec<(&str, f64)>, Fault> {
        let values = self.totals.as_ref().and_then(|totals| totals.get(metric)).filter(|values| !values.is_empty());
        let (Some(kind), Some(values)) = (self.metrics.get(metric), values) else { return Ok(Vec::new()) };
        let names = match kind {
            Kind::Counter => &self.aggregates.counter,
            Kind::Gauge => &self.aggregates.gauge,
            Kind::Rate => &self.aggregates.rate,
            Kind::Trend => &self.aggregates.trend,
            Kind::Unknown => return Ok(Vec::new()),
        };
        if names.len() != values.len() {
            let what = format!("has {} values, but {} were declared", values.len(), names.len());
            return Err(Place::root(metric).fault(what));
        }
        Ok(names.iter().map(String::as_str).zip(values.iter().copied()).collect())
    }

    fn value(&self, metric: &str, aggregate: &str) -> Result<Option<f64>, Fault> {
        Ok(self.aggregates(metric)?.into_iter().find(|(name, _)| *name == aggregate).map(|(_, value)| value))
    }

    fn count(&self, metric: &str, aggregate: &str) -> Result<Option<u64>, Fault> {
        let value = self.value(metric, aggregate)?;
        if let Some(wrong) = value.filter(|value| !(0.0..=WHOLE_MAX).contains(value) || value.fract() != 0.0) {
            let what = format!("{} is not a count", ShortNumber(wrong));
            return Err(Place::root(metric).key(aggregate).fault(what));
        }
        Ok(value.map(to_integer))
    }

    /// Returns how many requests failed: the least number with this share. It is exact up to 100,000 requests.
    fn failed(&self, requests: u64) -> Result<Option<u64>, Fault> {
        let Some(share) = self.value("http_req_failed", "rate")? else { return Ok(None) };
        if !(0.0..=1.0).contains(&share) {
            let what = format!("{} is not between 0 and 1", ShortNumber(share));
            return Err(Place::root("http_req_failed").key("rate").fault(what));
        }
        let least = share * requests as f64 * (1.0 - ROUNDING);
        Ok(Some(to_integer(least.ceil()).min(requests)))
    }

    fn latencies(&self, metric: &str, of: Population) -> Result<Latencies, Fault> {
        let times = self.aggregates(metric)?;
        let time = |wanted: &str| times.iter().find(|(name, _)| *name == wanted).map(|(_, ms)| cut(*ms));
        let ends = Latencies {
            min: time("min"),
            mean: time("avg"),
            max: time("max"),
            of,
            definition: Definition::Interpolated,
            ..Latencies::default()
        };
        Ok(ends.with_percentiles(times.iter().filter_map(|(name, ms)| Some((percentile(name)?, Some(cut(*ms)))))))
    }

    fn report(&self) -> Result<Report, Fault> {
        if self.totals.is_none() {
            let what = "has no totals: the test ended before the first period did";
            return Err(Place::root("the record").fault(what));
        }
        let Some(requests) = self.count("http_reqs", "count")? else {
            let what = "is missing: a record without HTTP requests can't be compared";
            return Err(Place::root("http_reqs").fault(what));
        };
        let end_ms = self.stop_ms.or(self.value("time", "value")?);
        let others = [
            ("iteration_duration_ms", self.value("iteration_duration", "avg")?),
            ("checks_passed_share", self.value("checks", "rate")?),
        ];
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let started_ms = self.start_ms.map(|ms| ms as i64);
        Ok(Report {
            started_ms,
            // Both are cut to milliseconds.
            duration: self.start_ms.zip(end_ms).map(|(start, end)| Time { ms: end - start, error_ms: 1.0 }),
            load: Generated { connections: self.count("vus_max", "value")?, ..Generated::default() },
            requests: Some(requests),
            failed: self.failed(requests)?,
            rate_per_s: self.value("http_reqs", "rate")?,
            received_bytes: self.count("data_received", "count")?,
            sent_bytes: self.count("data_sent", "count")?,
            starts: self.count("iterations", "count")?,
            dropped: self.count("dropped_iterations", "count")?,
            blocked_ms: self.value("http_req_blocked", "avg")?,
            first_byte: self.latencies("http_req_waiting", Population::All)?,
            latency: self.latencies("http_req_duration", Population::All)?,
            ok_latency: self.latencies(SUCCESSFUL, Population::Successful)?,
            others: others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect(),
            ..Report::default()
        })
    }
}

/// Reads the time of an event that has only that, unix milliseconds.
fn moment(data: &str) -> Result<f64, Refused> {
    match serde_json::from_str::<Vec<Vec<f64>>>(data)?.as_slice() {
        [time] if time.len() == 1 => Ok(time.iter().sum()),
        _ => Err(Place::root("time").fault("is not the only value of the event").into()),
    }
}

/// Returns a time that was cut to five digits, those before a decimal point that are zero included.
fn cut(ms: f64) -> Time {
    let steps = [(1e4, 1.0), (1e3, 0.1), (1e2, 0.01), (1e1, 1e-3), (1.0, 1e-4)];
    let step = steps.into_iter().find(|(least, _)| ms >= *least).map_or(1e-5, |(_, step)| step);
    // k6 measures zero if there was no response.
    Time { ms, error_ms: if ms == 0.0 { 0.0 } else { step } }
}
