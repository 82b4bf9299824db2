//! JMeter's samples, as CSV and XML have them, added up.

use std::collections::BTreeMap;

use crate::reports::report::{Generated, Population, Report};
use crate::reports::samples;
use crate::reports::seconds::{Event, Seconds};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

/// Maximum number of different response codes; others are text such as the names of exceptions.
const CODES_MAX: usize = 200;

/// One sample.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Its start, unix milliseconds.
    pub at_ms: i64,
    /// Its duration.
    pub elapsed_ms: f64,
    /// Whether all assertions passed.
    pub is_success: bool,
    /// The status, or the text that JMeter writes without one.
    pub code: &'a str,
    /// Bytes received.
    pub received: Option<u64>,
    /// Bytes sent.
    pub sent: Option<u64>,
    /// Threads that ran.
    pub threads: Option<u64>,
    /// The address.
    pub url: &'a str,
}

/// Samples added up.
#[derive(Debug, Default)]
pub struct Samples {
    latency: samples::Samples,
    ok_latency: samples::Samples,
    seconds: Seconds,
    statuses: BTreeMap<String, u64>,
    failures: BTreeMap<String, u64>,
    failed: u64,
    received: Option<u64>,
    sent: Option<u64>,
    threads: Option<u64>,
    span: Option<(i64, i64)>,
    url: Option<String>,
    is_several_urls: bool,
    /// Transactions, which contain samples that are counted.
    pub transactions: u64,
    /// Whether nothing in the file distinguishes transactions from samples.
    pub may_have_transactions: bool,
}

impl Samples {
    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample<'_>) {
        let Sample { at_ms, elapsed_ms, is_success, code, received, sent, threads, url } = *sample;
        self.latency.add(elapsed_ms);
        if is_success {
            self.ok_latency.add(elapsed_ms);
        } else {
            self.failed += 1;
        }
        let is_status = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
        let codes = if is_status { &mut self.statuses } else { &mut self.failures };
        if !code.is_empty() && (codes.len() < CODES_MAX || codes.contains_key(code)) {
            *codes.entry(code.chars().take(200).collect()).or_default() += 1;
        }
        let add = |sum: Option<u64>, more: Option<u64>| match (sum, more) {
            (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
            (sum, more) => sum.or(more),
        };
        (self.received, self.sent) = (add(self.received, received), add(self.sent, sent));
        self.threads = self.threads.max(threads);
        #[expect(clippy::cast_possible_truncation, reason = "a float to integer cast saturates")]
        let end_ms = at_ms.saturating_add(elapsed_ms.max(0.0) as i64);
        self.span = Some(self.span.map_or((at_ms, end_ms), |(start, end)| (start.min(at_ms), end.max(end_ms))));
        self.seconds.add(end_ms, Event::Request { ms: elapsed_ms, is_failed: !is_success });
        if !url.is_empty() && url != "null" {
            self.is_several_urls |= self.url.as_deref().is_some_and(|first| first != url);
            self.url.get_or_insert_with(|| url.to_owned());
        }
    }

    /// Returns how many samples there are.
    pub fn total(&self) -> u64 {
        self.latency.total()
    }

    /// Returns the report.
    pub fn report(self) -> Result<Report, Fault> {
        let negative = self.latency.negative_ms();
        let requests = self.latency.total();
        let Some((start, end)) = self.span else {
            let what = match self.transactions {
                0 => "has no samples",
                _ => "has only transactions, and none of their samples",
            };
            return Err(Place::root("the file").fault(what));
        };
        let warnings = [
            negative.map(|ms| Warning::NegativeTime { statistic: "minimum latency".to_owned(), ms }),
            (self.transactions > 0).then(|| {
                Warning::Note(format!("{} transactions are not counted: their samples are", self.transactions))
            }),
            self.may_have_transactions.then(|| {
                let what = "the columns responseCode and responseMessage are missing: a transaction of the plan counts \
                            as one more request";
                Warning::Incomplete(what.to_owned())
            }),
        ];
        Ok(Report {
            url: self.url.filter(|_| !self.is_several_urls),
            started_ms: Some(start),
            duration: Some(Time { ms: end.saturating_sub(start) as f64, error_ms: 1.0 }).filter(|time| time.ms > 0.0),
            // Timers of a plan may pause threads.
            load: Generated { connections: self.threads, ..Generated::default() },
            requests: Some(requests),
            failed: Some(self.failed),
            failures: self.failures,
            statuses: self.statuses,
            received_bytes: self.received,
            sent_bytes: self.sent,
            // Whole milliseconds: start and end are cut.
            latency: self.latency.latencies(Population::All).at_least(1.0),
            ok_latency: self.ok_latency.latencies(Population::Successful).at_least(1.0),
            series: self.seconds.window(),
            warnings: warnings.into_iter().flatten().collect(),
            ..Report::default()
        })
    }
}
