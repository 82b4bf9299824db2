//! Hands the counts of a thread over, once a second and without a lock: boxes go back and forth.

use std::sync::mpsc::{Receiver, Sender};

use crate::tally::Tally;

/// A second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// The counts of a thread since its previous report.
#[derive(Debug)]
pub struct Report {
    /// The thread.
    pub thread: u32,
    /// The number of complete seconds since the start, of which all counts are reported.
    pub seconds: u64,
    /// The end of its time, nanoseconds since the start.
    pub until_ns: u64,
    /// Whether the thread has ended.
    pub is_last: bool,
    /// The counts.
    pub tally: Box<Tally>,
}

/// The counts of a thread, and where they go.
#[derive(Debug)]
pub struct Outbox {
    /// Counts since the previous report.
    pub tally: Box<Tally>,
    thread: u32,
    since_ns: u64,
    due_ns: u64,
    reports: Sender<Report>,
    spares: Receiver<Box<Tally>>,
}

impl Outbox {
    /// Creates it.
    pub fn new(thread: u32, reports: Sender<Report>, spares: Receiver<Box<Tally>>) -> Self {
        Self { tally: Box::default(), thread, since_ns: 0, due_ns: SECOND_NS, reports, spares }
    }

    /// Returns when the next report is due.
    pub fn due_ns(&self) -> u64 {
        self.due_ns
    }

    /// Sends what was counted, with the state now. Returns whether the collector still reads.
    pub fn send(&mut self, now_ns: u64, open: u64, in_flight: u64, is_last: bool) -> bool {
        let mut tally = self.spares.try_recv().unwrap_or_default();
        std::mem::swap(&mut tally, &mut self.tally);
        tally.counts.open = open;
        tally.counts.in_flight = in_flight;
        tally.counts.wall_ns = now_ns - self.since_ns;
        let seconds = now_ns / SECOND_NS;
        self.since_ns = now_ns;
        self.due_ns = (seconds + 1) * SECOND_NS;
        self.reports.send(Report { thread: self.thread, seconds, until_ns: now_ns, is_last, tally }).is_ok()
    }
}
