//! k6's single measurements, as `--out json` and `--out csv` write them, added up into a summary and a time series.

use std::collections::BTreeMap;

use crate::reports::builtin;
use crate::reports::formats::k6_json;
use crate::reports::report::{Latencies, Population, Report};
use crate::reports::samples::Samples;
use crate::reports::seconds::{Event, Seconds};
use crate::reports::summary::{Check, Contains, Group, Kind, Metric, Resolution, Shape, Summary};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

/// Different values kept of each trend that is not of requests.
const DISTINCT_MAX: usize = 30_000;

/// Maximum number of metrics: each may take a megabyte.
const METRICS_MAX: usize = 200;

/// Maximum number of different checks.
const CHECKS_MAX: usize = 1_000;

/// The latency of requests, and of those with an expected response.
const DURATION: &str = "http_req_duration";
const SUCCESSFUL: &str = "http_req_duration{expected_response:true}";

/// One measurement.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The name of the metric.
    pub metric: &'a str,
    /// Unix milliseconds.
    pub at_ms: f64,
    /// In the unit of the metric.
    pub value: f64,
    /// The tag `expected_response`.
    pub is_expected: Option<bool>,
    /// The tag `status`.
    pub status: &'a str,
    /// The tag `check`.
    pub check: &'a str,
    /// The tag `url`.
    pub url: &'a str,
}

/// Measurements added up.
#[derive(Debug, Default)]
pub struct Points {
    kinds: BTreeMap<String, (Kind, Contains)>,
    metrics: BTreeMap<String, Sum>,
    checks: BTreeMap<String, [u64; 2]>,
    statuses: BTreeMap<String, u64>,
    seconds: Seconds,
    start_ms: Option<f64>,
    end_ms: Option<f64>,
    url: Option<String>,
    is_several_urls: bool,
}

#[derive(Debug)]
enum Sum {
    Counter(f64),
    Gauge { value: f64, min: f64, max: f64 },
    Rate([f64; 2]),
    Trend(Box<Samples>),
}

impl Points {
    /// Notes the kind of a metric that is not built in.
    pub fn declare(&mut self, metric: &str, kind: Kind, contains: Contains) {
        if self.kinds.len() < METRICS_MAX {
            self.kinds.insert(metric.to_owned(), (kind, contains));
        }
    }

    /// Adds a measurement. One of a metric of unknown kind is left out.
    pub fn add(&mut self, point: Point<'_>) -> Result<(), Fault> {
        let Point { metric, at_ms, value, .. } = point;
        let Some((kind, _)) = builtin::lookup(metric).or_else(|| self.kinds.get(metric).copied()) else {
            return Ok(());
        };
        let is_time = kind == Kind::Trend && builtin::lookup(metric).is_some();
        let began_ms = if is_time && value > 0.0 { at_ms - value } else { at_ms };
        self.start_ms = Some(self.start_ms.map_or(began_ms, |start| start.min(began_ms)));
        self.end_ms = Some(self.end_ms.map_or(at_ms, |end| end.max(at_ms)));
        self.series(&point);
        match metric {
            DURATION if point.is_expected == Some(true) => self.sum(SUCCESSFUL, kind, value)?,
            "http_reqs" => {
                if !point.status.is_empty()
                    && (self.statuses.len() < METRICS_MAX || self.statuses.contains_key(point.status))
                {
                    *self.statuses.entry(point.status.to_owned()).or_default() += 1;
                }
                self.is_several_urls |= self.url.as_deref().is_some_and(|url| url != point.url);
                self.url.get_or_insert_with(|| point.url.to_owned());
            }
            "checks" if self.checks.len() < CHECKS_MAX || self.checks.contains_key(point.check) => {
                self.checks.entry(point.check.to_owned()).or_default()[usize::from(value == 0.0)] += 1;
            }
            _ => {}
        }
        self.sum(metric, kind, value)
    }

    fn sum(&mut self, metric: &str, kind: Kind, value: f64) -> Result<(), Fault> {
        if !self.metrics.contains_key(metric) {
            if self.metrics.len() == METRICS_MAX {
                return Err(Place::root("the file").fault(format_args!("has more than {METRICS_MAX} metrics")));
            }
            let samples =
                || if metric.starts_with(DURATION) { Samples::default() } else { Samples::with_limit(DISTINCT_MAX) };
            let sum = match kind {
                Kind::Counter => Sum::Counter(0.0),
                Kind::Gauge => Sum::Gauge { value, min: value, max: value },
                Kind::Rate => Sum::Rate([0.0; 2]),
                Kind::Trend => Sum::Trend(Box::new(samples())),
            };
            self.metrics.insert(metric.to_owned(), sum);
        }
        match self.metrics.get_mut(metric) {
            Some(Sum::Counter(sum)) => *sum += value,
            Some(Sum::Gauge { value: last, min, max }) => (*last, *min, *max) = (value, min.min(value), max.max(value)),
            Some(Sum::Rate(counts)) => counts[usize::from(value == 0.0)] += 1.0,
            Some(Sum::Trend(samples)) => samples.add(value),
            None => {}
        }
        Ok(())
    }

    fn series(&mut self, point: &Point<'_>) {
        let event = match point.metric {
            DURATION => Event::Request { ms: point.value, is_failed: point.is_expected == Some(false) },
            "vus" => Event::Vus(point.value),
            "iterations" => Event::Iterations(point.value),
            "dropped_iterations" => Event::Dropped(point.value),
            "data_received" => Event::Received(point.value),
            "data_sent" => Event::Sent(point.value),
            _ => return,
        };
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        self.seconds.add(point.at_ms as i64, event);
    }

    /// Returns the report. `resolution_ms` is the smallest difference between two times of the file.
    pub fn report(self, resolution_ms: f64) -> Result<Report, Fault> {
        let Self { kinds, mut metrics, checks, statuses, seconds, start_ms, end_ms, url, is_several_urls } = self;
        let unfinished = without_unfinished(&mut metrics);
        let duration_ms = start_ms.zip(end_ms).map(|(start, end)| end - start).filter(|duration| *duration > 0.0);
        let Some(duration_ms) = duration_ms else {
            return Err(
                Place::root("the file").fault("has no two measurements at different times: its duration is unknown")
            );
        };
        let latencies = |name: &str, of: Population| match metrics.get(name) {
            Some(Sum::Trend(samples)) => samples.latencies(of),
            _ => Latencies::default(),
        };
        let latency = latencies(DURATION, Population::All);
        let ok_latency = latencies(SUCCESSFUL, Population::Successful);
        let kind_of = |name: &str| builtin::lookup(name).or_else(|| kinds.get(name).copied());
        let metric = |(name, sum): (String, Sum)| {
            let (kind, contains) = kind_of(&name)?;
            Some((name, Metric { kind, contains, values: sum.values(duration_ms), thresholds: Vec::new() }))
        };
        let one =
            |(name, [passes, fails]): (String, [u64; 2])| Check { path: format!("::{name}"), name, passes, fails };
        let summary = Summary {
            shape: Shape::HandleSummary,
            k6_version: None,
            duration_ms: Some(duration_ms),
            metrics: metrics.into_iter().filter_map(metric).collect(),
            root: Group { checks: checks.into_iter().map(one).collect(), ..Group::default() },
            negative_minima: Vec::new(),
            resolution: Resolution::default(),
            stated: None,
            warnings: Vec::new(),
        };
        let mut report = k6_json::report(summary)?;
        // With their errors, which a summary does not have.
        (report.latency, report.ok_latency) = (latency, ok_latency);
        report.duration = Some(Time { ms: duration_ms, error_ms: resolution_ms });
        report.rate_error_per_s = report.rate_per_s.unwrap_or_default() * resolution_ms / duration_ms;
        if resolution_ms > 0.01 * duration_ms {
            let what = format!("times are rounded to {resolution_ms} ms: the duration and the rates are as inexact");
            report.warnings.push(Warning::Incomplete(what));
        }
        report.warnings.extend(unfinished);
        report.statuses = statuses;
        if let Some(none) = report.statuses.remove("0") {
            report.failures.insert("no response".to_owned(), none);
        }
        report.url = url.filter(|url| !is_several_urls && !url.is_empty());
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let started = start_ms.map(|start| start as i64);
        report.started_ms = started;
        report.series = seconds.window();
        Ok(report)
    }
}

/// Leaves out the last request if the file ends before everything that k6 measured of it.
fn without_unfinished(metrics: &mut BTreeMap<String, Sum>) -> Option<Warning> {
    let Some(Sum::Rate([passes, fails])) = metrics.get("http_req_failed") else { return None };
    let complete = passes + fails;
    match metrics.get_mut("http_reqs") {
        Some(Sum::Counter(count)) if (*count - complete - 1.0).abs() < 0.5 => {
            *count = complete;
            let what = "the file ends within a request: the test was interrupted";
            Some(Warning::Incomplete(what.to_owned()))
        }
        _ => None,
    }
}

impl Sum {
    fn values(self, duration_ms: f64) -> BTreeMap<String, f64> {
        let named = |name: &str, value: f64| (name.to_owned(), value);
        match self {
            Self::Counter(sum) => BTreeMap::from([named("count", sum), named("rate", sum / duration_ms * 1e3)]),
            Self::Gauge { value, min, max } => {
                BTreeMap::from([named("value", value), named("min", min), named("max", max)])
            }
            Self::Rate([passes, fails]) => {
                let rate = passes / (passes + fails);
                BTreeMap::from([named("passes", passes), named("fails", fails), named("rate", rate)])
            }
            Self::Trend(samples) => {
                let found = samples.latencies(Population::All);
                let ends = [("avg", found.mean), ("min", found.min), ("max", found.max)];
                let mut values: BTreeMap<String, f64> =
                    ends.into_iter().filter_map(|(name, time)| Some(named(name, time?.ms))).collect();
                values.extend(samples.negative_ms().map(|ms| named("min", ms)));
                values.extend(found.percentiles.iter().filter(|one| one.percent >= 50.0).map(|one| {
                    let is_median = (one.percent - 50.0).abs() < 1e-9;
                    named(&if is_median { "med".to_owned() } else { format!("p({})", one.percent) }, one.time.ms)
                }));
                values.insert("count".to_owned(), samples.total() as f64);
                values
            }
        }
    }
}
