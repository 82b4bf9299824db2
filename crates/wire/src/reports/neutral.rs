//! Turns a report into the figures of a run, and into the metrics that a page shows. Pure.

use std::collections::BTreeMap;

use crate::reports::check::DURATION_MS;
use crate::reports::formats::{self, table_csv};
use crate::reports::report::{Generated, Latencies, Model, Population, Report};
use crate::reports::summary::{
    Between, Connections, Contains, Figures, Group, Kind, Latency, Metric, OtherTool, Resolution, Shape, Summary,
};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, ShortNumber};
use crate::reports::values::to_integer;

/// The largest relative error of a mean that is compared with the number of connections.
const MEAN_ERROR: f64 = 0.02;

/// How far a rate that is a mean of samples may be from requests by duration.
const RATE_ERROR: f64 = 0.1;

/// How far durations of one run may be apart that its files define differently, relative.
const SAME_DURATION: f64 = 0.01;

/// The same of short runs, milliseconds.
const SAME_DURATION_MS: f64 = 100.0;

/// The largest relative error of latencies by which runs of the same length are distinguished.
const SAME_ERROR: f64 = 5e-4;

impl Report {
    /// Returns the main metrics of the run. Of requests, rate and duration, one is computed if the other two are known.
    ///
    /// Fails if they are not: without them there is nothing to compare.
    pub fn figures(&self) -> Result<Figures, Fault> {
        if let Some(summary) = &self.summary {
            let resolution = self.resolution(self.rate_per_s.unwrap_or_default());
            return Ok(Figures { resolution, warnings: self.warnings.clone(), ..summary.figures() });
        }
        let duration_ms = self.duration.map(|time| time.ms);
        let (requests, rps, measured_ms) = match (self.requests, self.rate_per_s, duration_ms) {
            (Some(requests), Some(rate), Some(ms)) => self.agreeing(requests, rate, ms)?,
            (Some(requests), None, Some(ms)) if ms > 0.0 => (requests, requests as f64 / ms * 1e3, ms),
            (Some(requests), Some(rate), None) if rate > 0.0 => (requests, rate, requests as f64 / rate * 1e3),
            (None, Some(rate), Some(ms)) => (self.not_below_failed(to_integer((rate * ms / 1e3).round()))?, rate, ms),
            _ => {
                let what = "has fewer than two of requests, rate and duration: specify the duration of the load";
                return Err(Place::root("the report").fault(what));
            }
        };
        if !DURATION_MS.contains(&measured_ms) {
            let what = format!("{requests} at {} requests/s take no plausible time", ShortNumber(rps));
            return Err(Place::root("the requests").fault(what));
        }
        let ms = |latencies| latency(latencies, |time| Some(time.ms));
        let (latency, ok_latency) = match self.latency.of {
            Population::Successful => (Latency::default(), ms(&self.latency)),
            Population::All | Population::Responses => (ms(&self.latency), ms(&self.ok_latency)),
        };
        let Generated { connections, connect_errors, model, .. } = self.load;
        let open = self.load.open();
        Ok(Figures {
            requests,
            failed: self.failed_of(requests),
            rps,
            measured_ms,
            latency,
            ok_latency,
            ttfb_p95_ms: self.first_byte.percentile(95.0).map(|time| time.ms),
            blocked_ms: self.blocked_ms,
            iterations: self.starts,
            dropped_iterations: self.dropped,
            new_connections: self.opened.map(|opened| Between { least: opened, most: opened }),
            data_received_bytes: self.received_bytes,
            received_per_s: self.received_per_s,
            data_sent_bytes: self.sent_bytes,
            vus_max: open,
            connections: connections.zip(connect_errors).map(|(requested, failed)| Connections { requested, failed }),
            closed_connections: open.filter(|_| model == Some(Model::Closed) && is_exact(&self.latency)),
            resolution: self.resolution(rps),
            warnings: self.warnings.clone(),
            ..Figures::default()
        })
    }

    /// Returns how far the values of this report may be from those that were measured, at this rate.
    fn resolution(&self, rps: f64) -> Resolution {
        let coarse = |time: Time| Resolution::of(time.ms, time.error_ms);
        let is_of_all = self.latency.of != Population::Successful;
        let of_duration = self.duration.filter(|time| time.ms > 0.0).map_or(0.0, |time| time.error_ms / time.ms);
        let rate_error = if self.rate_per_s.is_some() { self.rate_error_per_s } else { rps * of_duration };
        Resolution {
            rps: Resolution::of(rps, rate_error),
            measured_ms: self.duration.and_then(coarse),
            latency: if is_of_all { latency(&self.latency, coarse) } else { Latency::default() },
            ttfb_p95_ms: self.first_byte.percentile(95.0).and_then(coarse),
            received_per_s: self.received_per_s.and_then(|rate| Resolution::of(rate, self.received_error_per_s)),
        }
    }

    /// Checks the columns of a table that a person wrote: one of them may be of something else.
    fn agreeing(&self, requests: u64, rate: f64, ms: f64) -> Result<(u64, f64, f64), Fault> {
        let (counted, made) = (requests as f64, rate * ms / 1e3);
        if self.format == table_csv::FORMAT.name && (counted - made).abs() > RATE_ERROR * counted.max(made) {
            let (rate, seconds) = (ShortNumber(rate), ShortNumber(ms / 1e3));
            let what = format!("{requests} are not {rate} requests/s in {seconds} s: correct or ignore a column");
            return Err(Place::root("the requests").fault(what));
        }
        Ok((requests, rate, ms))
    }

    /// Returns how many of these requests failed; at least one if any did.
    pub(super) fn failed_of(&self, requests: u64) -> Option<u64> {
        let counted = |share: f64| to_integer((share * requests as f64).round()).max(u64::from(share > 0.0));
        self.failed.or_else(|| self.failed_share.map(counted))
    }

    /// Returns how many requests there were, of which only a rounded rate tells: not fewer than those that failed.
    fn not_below_failed(&self, requests: u64) -> Result<u64, Fault> {
        let failed = self.failed.unwrap_or_default();
        if failed as f64 > (1.0 + RATE_ERROR) * requests as f64 {
            let what = format!("{failed} of about {requests} requests can't have failed");
            return Err(Place::root("failed requests").fault(what));
        }
        Ok(requests.max(failed))
    }

    /// Whether both are one result in two files: in two formats, or in one format with the same start.
    pub fn is_same_result(&self, other: &Self) -> bool {
        let is_one_start = self.started_ms.is_some() && self.started_ms == other.started_ms;
        (self.format != other.format || is_one_start && self.latency == other.latency) && self.is_same_run(other)
    }

    /// Whether both are of the same run, such as its text and its JSON: the same tool counted the same requests in the
    /// same time.
    pub fn is_same_run(&self, other: &Self) -> bool {
        let tool = |report: &Self| formats::find(report.format).map(|format| format.tool);
        let near = |left: Option<Time>, right: Option<Time>| match (left, right) {
            (Some(left), Some(right)) => (left.ms - right.ms).abs() <= left.error_ms + right.error_ms + 1e-9 * left.ms,
            _ => true,
        };
        let same = |left: Option<u64>, right: Option<u64>| left.is_none() || right.is_none() || left == right;
        tool(self) == tool(other)
            && self.requests.is_some_and(|requests| requests > 0)
            && self.requests == other.requests
            && same(self.failed, other.failed)
            && same(self.exact_bytes(), other.exact_bytes())
            && self.name == other.name
            && (near(self.duration, other.duration) || self.is_as_long(other))
            && (self.duration.is_some() && other.duration.is_some())
            && near(self.latency.mean, other.latency.mean)
            && near(self.latency.max, other.latency.max)
    }

    /// Whether the durations are those of one run by two definitions, such as with and without the start of the tool.
    /// Two runs are as long, so the figures that differ between them have to be known, and hardly rounded.
    fn is_as_long(&self, other: &Self) -> bool {
        let Some((left, right)) = self.duration.zip(other.duration) else { return false };
        let is_distinct = |report: &Self| {
            let is_sharp = |time: Option<Time>| time.is_some_and(|time| time.error_ms <= SAME_ERROR * time.ms);
            let is_counted = report.failed.is_some() && report.exact_bytes().is_some();
            is_counted && is_sharp(report.latency.mean) && is_sharp(report.latency.max)
        };
        let at_once = |start: i64, other: i64| (start.abs_diff(other) as f64) < left.ms.max(right.ms);
        let is_at_once = self.started_ms.zip(other.started_ms).is_none_or(|(start, other)| at_once(start, other));
        let tolerance = SAME_DURATION_MS.max(SAME_DURATION * left.ms);
        (left.ms - right.ms).abs() <= tolerance && is_at_once && is_distinct(self) && is_distinct(other)
    }

    /// Returns the bytes received, if they are not rounded.
    fn exact_bytes(&self) -> Option<u64> {
        self.received_bytes.filter(|_| self.received_per_s.is_none())
    }

    /// Returns what a page shows of the report: k6's own summary, or the values under neutral names.
    pub fn into_summary(mut self) -> Result<Summary, Fault> {
        if let Some(summary) = self.summary.take() {
            let resolution = self.resolution(self.rate_per_s.unwrap_or_default());
            return Ok(Summary { resolution, warnings: self.warnings, ..*summary });
        }
        let figures = self.figures()?;
        self.failed = figures.failed;
        Ok(Summary {
            shape: Shape::Other(other_tool(self.format)),
            k6_version: self.version.clone(),
            duration_ms: Some(figures.measured_ms),
            metrics: self.metrics(),
            root: Group::default(),
            negative_minima: Vec::new(),
            resolution: figures.resolution,
            stated: Some(Box::new(figures)),
            warnings: self.warnings.clone(),
        })
    }

    fn metrics(&self) -> BTreeMap<String, Metric> {
        let count = |value: Option<u64>| value.map(|value| value as f64);
        let gauge = |value: f64| metric(Kind::Gauge, Contains::Default, [("value", Some(value))]);
        let counter = |contains, value, rate| metric(Kind::Counter, contains, [("count", value), ("rate", rate)]);
        let Self { load, .. } = self;
        let gauges = [
            ("connections", count(load.connections)),
            ("connections_open", count(load.open())),
            ("connect_errors", count(load.connect_errors)),
            ("threads", count(load.threads)),
            ("requested_rate", load.rate_per_s),
            ("connections_opened", count(self.opened)),
            ("dropped", count(self.dropped)),
        ];
        let mut metrics: BTreeMap<String, Metric> =
            gauges.into_iter().filter_map(|(name, value)| Some((name.to_owned(), gauge(value?)))).collect();
        metrics.extend(self.failures.iter().map(|(name, value)| (format!("failed_{name}"), gauge(*value as f64))));
        metrics.extend(self.statuses.iter().map(|(name, value)| (format!("status_{name}"), gauge(*value as f64))));
        metrics.extend(self.others.iter().map(|(name, value)| (name.clone(), gauge(*value))));
        let counters = [
            ("requests", Contains::Default, count(self.requests), self.rate_per_s),
            ("failed", Contains::Default, count(self.failed), None),
            ("bytes_received", Contains::Data, count(self.received_bytes), self.received_per_s),
            ("bytes_sent", Contains::Data, count(self.sent_bytes), None),
        ];
        let known = counters.into_iter().filter(|(_, _, value, rate)| value.is_some() || rate.is_some());
        metrics.extend(known.map(|(name, contains, value, rate)| (name.to_owned(), counter(contains, value, rate))));
        let times =
            [("latency", &self.latency), ("latency_successful", &self.ok_latency), ("first_byte", &self.first_byte)];
        let known = times.into_iter().filter(|(_, latency)| !latency.is_empty());
        metrics.extend(known.map(|(name, latency)| (name.to_owned(), trend(latency))));
        metrics
    }
}

fn other_tool(name: &'static str) -> OtherTool {
    match formats::find(name) {
        Some(format) => {
            OtherTool { format: format.name, title: format.title, tool: format.tool, is_rounded: format.is_rounded }
        }
        None => OtherTool { format: name, title: name, tool: name, is_rounded: false },
    }
}

/// Whether throughput × latency can tell how many connections were in requests.
fn is_exact(latency: &Latencies) -> bool {
    latency.mean.is_some_and(|mean| mean.error_ms <= MEAN_ERROR * mean.ms)
}

fn metric<const N: usize>(kind: Kind, contains: Contains, values: [(&str, Option<f64>); N]) -> Metric {
    let known = values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Metric { kind, contains, values: known.collect(), thresholds: Vec::new() }
}

fn trend(latency: &Latencies) -> Metric {
    let ms = |time: Option<Time>| time.map(|time| time.ms);
    let Latencies { min, mean, max, stddev, percentiles, .. } = latency;
    let ends = [("min", ms(*min)), ("avg", ms(*mean)), ("max", ms(*max)), ("stddev", ms(*stddev))];
    let mut metric = metric(Kind::Trend, Contains::Time, ends);
    metric.values.extend(percentiles.iter().map(|one| {
        let is_median = (one.percent - 50.0).abs() < 1e-9;
        (if is_median { "med".to_owned() } else { format!("p({})", one.percent) }, one.time.ms)
    }));
    metric
}

/// Returns the same of each of the latencies.
fn latency(latency: &Latencies, of: impl Fn(Time) -> Option<f64>) -> Latency {
    let percentile = |percent| latency.percentile(percent).and_then(&of);
    Latency {
        avg_ms: latency.mean.and_then(&of),
        min_ms: latency.min.and_then(&of),
        p50_ms: percentile(50.0),
        p90_ms: percentile(90.0),
        p95_ms: percentile(95.0),
        p99_ms: percentile(99.0),
        p999_ms: percentile(99.9),
        max_ms: latency.max.and_then(&of),
    }
}
