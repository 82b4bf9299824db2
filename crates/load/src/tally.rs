//! What a thread counts between two reports.

use std::fmt::Display;

use crate::latency::Latencies;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection, or no TLS handshake.
    Connect,
    /// The connection broke before the response was complete.
    Read,
    /// The connection broke before the request was sent.
    Write,
    /// No response in time.
    Timeout,
    /// What arrived is not a response.
    Protocol,
    /// Another status than expected.
    Status,
    /// A body of another length than expected.
    Length,
    /// A body of another content than expected.
    Body,
}

impl Failure {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 8] =
        [Self::Connect, Self::Read, Self::Write, Self::Timeout, Self::Protocol, Self::Status, Self::Length, Self::Body];

    /// Returns the name used in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Read => "read",
            Self::Write => "write",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::Length => "length",
            Self::Body => "body",
        }
    }
}

/// Failures of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many there were.
    pub count: u64,
    /// The text of the first one.
    pub first: Option<String>,
}

/// Lowest status.
const FIRST_STATUS: u16 = 100;

/// Counts since the previous report, and the state at its end.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Durations of the successful requests.
    pub succeeded: Latencies,
    /// Durations of the failed requests.
    pub failed: Latencies,
    /// Times from the start of a request to the first byte of its response.
    pub first_byte: Latencies,
    /// Times to connect, with the TLS handshake.
    pub connect: Latencies,
    /// Lateness of starts for which a connection was free.
    pub scheduling: Latencies,
    /// Failures by kind.
    pub failures: [Failures; Failure::ALL.len()],
    /// Responses by status, from 100.
    pub statuses: Box<[u64]>,
    /// Everything else.
    pub counts: Counts,
}

/// Counts that add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Connections opened.
    pub opened: u64,
    /// Requests sent again, because the target had closed a connection that was used before.
    pub resent: u64,
    /// Connections closed because bytes arrived without a request.
    pub unsolicited: u64,
    /// Responses of which the content was compared.
    pub contents_checked: u64,
    /// Starts that waited for a free connection.
    pub waited: u64,
    /// Requests that had ended after the end of the load, or outside of its turns.
    pub late: u64,
    /// Requests without a response at the end of the grace period.
    pub interrupted: u64,
    /// Intended starts that never happened.
    pub dropped: u64,
    /// Time without work.
    pub idle_ns: u64,
    /// Time outside of the turns, without work.
    pub away_ns: u64,
    /// Time covered.
    pub wall_ns: u64,
    /// Connections open at the end.
    pub open: u64,
    /// Requests in flight at the end.
    pub in_flight: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            succeeded: Latencies::default(),
            failed: Latencies::default(),
            first_byte: Latencies::default(),
            connect: Latencies::default(),
            scheduling: Latencies::default(),
            failures: Default::default(),
            statuses: vec![0; 900].into(),
            counts: Counts::default(),
        }
    }
}

impl Tally {
    /// Counts a response with a status.
    pub fn status(&mut self, status: u16) {
        if let Some(count) = self.statuses.get_mut(usize::from(status.wrapping_sub(FIRST_STATUS))) {
            *count += 1;
        }
    }

    /// Counts a failed request.
    pub fn fail(&mut self, failure: Failure, ns: u64, text: impl Display) {
        self.failed.record(ns);
        let failures = &mut self.failures[failure as usize];
        failures.count += 1;
        if failures.first.is_none() {
            failures.first = Some(text.to_string());
        }
    }

    /// Returns number and statuses of all responses.
    pub fn statuses(&self) -> impl Iterator<Item = (u16, u64)> {
        (FIRST_STATUS..).zip(self.statuses.iter().copied()).filter(|&(_, count)| count > 0)
    }

    /// Adds the counts of another thread, or of the following time.
    pub fn add(&mut self, other: &Self) {
        self.succeeded.add(&other.succeeded);
        self.failed.add(&other.failed);
        self.first_byte.add(&other.first_byte);
        self.connect.add(&other.connect);
        self.scheduling.add(&other.scheduling);
        for (failures, other) in self.failures.iter_mut().zip(&other.failures) {
            failures.count += other.count;
            if failures.first.is_none() {
                failures.first.clone_from(&other.first);
            }
        }
        for (count, other) in self.statuses.iter_mut().zip(&other.statuses) {
            *count += other;
        }
        self.counts.add(other.counts);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        for latencies in
            [&mut self.succeeded, &mut self.failed, &mut self.first_byte, &mut self.connect, &mut self.scheduling]
        {
            latencies.clear();
        }
        self.failures = Default::default();
        self.statuses.fill(0);
        self.counts = Counts::default();
    }
}

impl Counts {
    /// Adds other counts.
    pub fn add(&mut self, other: Self) {
        let Self { bytes_in, bytes_out, opened, resent, unsolicited, contents_checked, waited, .. } = other;
        let Self { late, interrupted, dropped, idle_ns, away_ns, wall_ns, open, in_flight, .. } = other;
        self.bytes_in += bytes_in;
        self.bytes_out += bytes_out;
        self.opened += opened;
        self.resent += resent;
        self.unsolicited += unsolicited;
        self.contents_checked += contents_checked;
        self.waited += waited;
        self.late += late;
        self.interrupted += interrupted;
        self.dropped += dropped;
        self.idle_ns += idle_ns;
        self.away_ns += away_ns;
        self.wall_ns += wall_ns;
        self.open += open;
        self.in_flight += in_flight;
    }
}
