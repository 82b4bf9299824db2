//! What a load generator reports: one JSON object a line.

use std::collections::BTreeMap;

use brewbench_wire::histogram::{Histogram, sparse};
use serde::{Deserialize, Serialize};

use crate::latency::Latencies;
use crate::tally::{Failure, Tally};

/// A line of the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Everything is prepared.
    Ready,
    /// The load starts.
    Started,
    /// A second has passed.
    Second(Box<Second>),
    /// The load has ended.
    Summary(Box<Summary>),
}

/// The load since the previous second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Its end, milliseconds since the start. More than a second has passed if the generator was stopped.
    pub until_ms: u64,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Intended starts that never happened.
    #[serde(default)]
    pub dropped: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Connections opened.
    pub opened: u64,
    /// Requests in flight at its end.
    pub in_flight: u64,
    /// Share of the time that the busiest thread worked.
    pub busy: f64,
    /// Durations of successful requests.
    #[serde(with = "sparse")]
    pub succeeded: Histogram,
    /// Durations of failed requests.
    #[serde(rename = "failed_durations", with = "sparse")]
    pub failed_durations: Histogram,
}

/// The complete load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The planned duration, milliseconds; with the turns of the other load, if two take turns.
    pub planned_ms: u64,
    /// Time of its own turns, milliseconds; absent if it shared the time with no other load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_ms: Option<u64>,
    /// From the start to the end of the last request or of the load, milliseconds.
    pub elapsed_ms: u64,
    /// Most connections, of all generators.
    #[serde(default)]
    pub connections: u64,
    /// Whether requests start on schedule, not on responses.
    #[serde(default)]
    pub open: bool,
    /// Threads.
    pub threads: u32,
    /// The version of HTTP: `1.1` or `2`.
    pub http: String,
    /// Requests that ended.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Those of them that ended after the planned duration, or outside of the turns.
    pub late_requests: u64,
    /// Requests without a response at the end of the grace period; in a closed load also connections in the making at
    /// its end. They are not among the requests.
    pub interrupted_requests: u64,
    /// Intended starts that never happened, because no connection was free. They are not among the requests.
    pub dropped: u64,
    /// Starts that waited for a free connection.
    pub waited: u64,
    /// Requests that were sent again on another connection, because the target had closed the one used before.
    pub resent: u64,
    /// Connections closed because bytes arrived without a request.
    pub unsolicited: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections opened.
    pub opened: u64,
    /// Responses of which the content was compared: every 16th of those with an expected text or hash.
    pub contents_checked: u64,
    /// Failures by kind: `connect`, `read`, `write`, `timeout`, `protocol`, `status`, `length`, `body`.
    pub errors: BTreeMap<String, Errors>,
    /// Status and number of responses, ascending.
    pub statuses: Vec<(u16, u64)>,
    /// Durations of successful requests: from the intended start in an open load, else from the first byte sent.
    pub succeeded: Distribution,
    /// Durations of failed requests.
    pub failed_durations: Distribution,
    /// Times from the start of a request to the first byte of its response.
    pub first_byte: Distribution,
    /// Times to connect, with the TLS handshake.
    pub connect: Distribution,
    /// From the intended start, or from the time when a connection was free for it, to the actual start. The load
    /// generator's own lateness, in open loads.
    pub scheduling: Distribution,
    /// CPU time of the process during the load, milliseconds: of the program, and of the kernel for it.
    pub cpu_user_ms: u64,
    /// That of the kernel.
    pub cpu_system_ms: u64,
    /// Share of the time that the busiest thread worked.
    pub busy: f64,
    /// Whether that is nearly all: a faster load generator might have measured more.
    pub saturated: bool,
    /// Whether the load was ended before its time.
    pub interrupted: bool,
    /// The limit of the load generator's machine that ended the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}

/// Failures of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// How many requests.
    pub count: u64,
    /// What was wrong with the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// Times, with exact limits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// The lowest, nanoseconds; `None` without any.
    pub min_ns: Option<u64>,
    /// The highest, nanoseconds.
    pub max_ns: Option<u64>,
    /// All, with their exact sum.
    #[serde(with = "sparse")]
    pub histogram: Histogram,
}

impl From<&Latencies> for Distribution {
    fn from(latencies: &Latencies) -> Self {
        let (min_ns, max_ns) = latencies.range_ns().unzip();
        Self { min_ns, max_ns, histogram: latencies.histogram() }
    }
}

impl Second {
    /// Creates it from the counts of all threads.
    pub fn new(until_ms: u64, busy: f64, tally: &Tally) -> Self {
        let (succeeded, failed_durations) = (tally.succeeded.histogram(), tally.failed.histogram());
        let failed = failed_durations.total();
        Self {
            until_ms,
            requests: succeeded.total() + failed,
            failed,
            dropped: tally.counts.dropped,
            bytes_in: tally.counts.bytes_in,
            bytes_out: tally.counts.bytes_out,
            connections: tally.counts.open,
            opened: tally.counts.opened,
            in_flight: tally.counts.in_flight,
            busy,
            succeeded,
            failed_durations,
        }
    }
}

impl Summary {
    /// Creates it from the counts of all threads and seconds. What they do not know stays empty.
    pub fn new(tally: &Tally) -> Self {
        let failed = tally.failed.total();
        let errors = Failure::ALL.iter().zip(&tally.failures).filter(|(_, failures)| failures.count > 0);
        let named = |(kind, failures): (&Failure, &crate::tally::Failures)| {
            (kind.as_str().to_owned(), Errors { count: failures.count, first: failures.first.clone() })
        };
        Self {
            requests: tally.succeeded.total() + failed,
            failed,
            late_requests: tally.counts.late,
            interrupted_requests: tally.counts.interrupted,
            dropped: tally.counts.dropped,
            waited: tally.counts.waited,
            resent: tally.counts.resent,
            unsolicited: tally.counts.unsolicited,
            bytes_in: tally.counts.bytes_in,
            bytes_out: tally.counts.bytes_out,
            opened: tally.counts.opened,
            contents_checked: tally.counts.contents_checked,
            errors: errors.map(named).collect(),
            statuses: tally.statuses().collect(),
            succeeded: (&tally.succeeded).into(),
            failed_durations: (&tally.failed).into(),
            first_byte: (&tally.first_byte).into(),
            connect: (&tally.connect).into(),
            scheduling: (&tally.scheduling).into(),
            ..Self::default()
        }
    }

    /// Returns the number of failures of a kind.
    pub fn errors_of(&self, kind: Failure) -> u64 {
        self.errors.get(kind.as_str()).map_or(0, |errors| errors.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        let mut tally = Tally::default();
        tally.succeeded.record(1_500_000);
        tally.succeeded.record(0);
        tally.fail(Failure::Status, 7, "status 500");
        tally.status(500);
        tally.counts.bytes_in = 9;
        let second = Event::Second(Box::new(Second::new(1_000, 0.25, &tally)));
        let summary = Summary { fault: Some("x".to_owned()), http: "1.1".to_owned(), ..Summary::new(&tally) };
        assert_eq!((summary.requests, summary.failed, summary.errors_of(Failure::Status)), (3, 1, 1));
        assert_eq!((summary.succeeded.min_ns, summary.succeeded.max_ns), (Some(0), Some(1_500_000)));
        assert_eq!(summary.connect.min_ns, None, "unknown");
        for event in [Event::Ready, Event::Started, second, Event::Summary(Box::new(summary))] {
            let text = serde_json::to_string(&event).expect("written");
            assert_eq!(serde_json::from_str::<Event>(&text).expect("read"), event, "{text}");
        }
        assert_eq!(serde_json::to_string(&Event::Ready).expect("written"), r#"{"event":"ready"}"#);
    }

    #[test]
    fn a_histogram_is_sparse_and_one_that_can_not_be_is_refused() {
        let text = |index: i64| {
            format!(
                r#"{{"min_ns":null,"max_ns":null,"histogram":{{"schema":8,"zero":1,"sum_ns":2,"buckets":[[{index},3]]}}}}"#
            )
        };
        let read: Distribution = serde_json::from_str(&text(-2426)).expect("read");
        assert_eq!(serde_json::to_string(&read).expect("written"), text(-2426));
        assert!(serde_json::from_str::<Distribution>(&text(99_999)).is_err());
    }
}
