//! Puts the reports of all threads together: a line a second, and the summary. Pure.

use std::collections::BTreeMap;

use crate::events::{Second, Summary};
use crate::outbox::Report;
use crate::tally::{Counts, Tally};

/// Share of the time above which a thread counts as saturated.
const SATURATED: f64 = 0.9;

/// Counts of seconds that not all threads have reported, and of the complete load.
#[derive(Debug)]
pub struct Collector {
    /// The last second that each thread has reported; `None` after its last report.
    reported: Vec<Option<u64>>,
    pending: BTreeMap<u64, Pending>,
    /// Pending counts that were sent, to be used again.
    unused: Vec<Pending>,
    total: Tally,
    /// Idle and complete time of each thread.
    times: Vec<(u64, u64)>,
    until_ns: u64,
}

#[derive(Debug, Default)]
struct Pending {
    tally: Tally,
    busy: f64,
    until_ns: u64,
    is_partial: bool,
}

impl Collector {
    /// Creates it for some threads.
    pub fn new(threads: usize) -> Self {
        Self {
            reported: vec![Some(0); threads],
            pending: BTreeMap::new(),
            unused: Vec::new(),
            total: Tally::default(),
            times: vec![(0, 0); threads],
            until_ns: 0,
        }
    }

    /// Takes a report, and returns the seconds that are complete, ascending.
    pub fn add(&mut self, report: &Report) -> Vec<Second> {
        let Report { thread, seconds, until_ns, is_last, tally } = report;
        let place = *thread as usize;
        self.total.add(tally);
        self.until_ns = self.until_ns.max(*until_ns);
        let Counts { idle_ns, away_ns, wall_ns, .. } = tally.counts;
        let wall_ns = wall_ns.saturating_sub(away_ns);
        self.times[place].0 += idle_ns;
        self.times[place].1 += wall_ns;
        // What a thread reports last is of a second that is not complete.
        let pending =
            self.pending.entry(seconds + u64::from(*is_last)).or_insert_with(|| self.unused.pop().unwrap_or_default());
        pending.tally.add(tally);
        pending.busy = pending.busy.max(busy(idle_ns, wall_ns));
        pending.until_ns = pending.until_ns.max(*until_ns);
        pending.is_partial = *is_last;
        self.reported[place] = (!is_last).then_some(*seconds);
        self.complete()
    }

    fn complete(&mut self) -> Vec<Second> {
        let complete = self.reported.iter().copied().flatten().min().unwrap_or(u64::MAX);
        let mut seconds = Vec::new();
        while let Some(entry) = self.pending.first_entry().filter(|entry| *entry.key() <= complete) {
            let second = *entry.key();
            let mut pending = entry.remove();
            let until_ms = if pending.is_partial { pending.until_ns / 1_000_000 } else { second * 1_000 };
            let line = Second::new(until_ms, pending.busy, &pending.tally);
            // The threads may end just after a second, with nothing left to report.
            if !pending.is_partial || line.requests > 0 || pending.tally.counts.wall_ns > 10_000_000 {
                seconds.push(line);
            }
            pending.tally.clear();
            self.unused.push(Pending { tally: pending.tally, ..Pending::default() });
        }
        seconds
    }

    /// Returns the summary of what the threads have reported.
    pub fn summary(&self) -> Summary {
        let shares = self.times.iter().map(|&(idle_ns, wall_ns)| busy(idle_ns, wall_ns));
        let busy = shares.fold(0.0, f64::max);
        let elapsed_ms = self.until_ns / 1_000_000;
        let saturated = busy >= SATURATED && elapsed_ms >= 1_000;
        Summary { elapsed_ms, busy, saturated, ..Summary::new(&self.total) }
    }
}

fn busy(idle_ns: u64, wall_ns: u64) -> f64 {
    if wall_ns == 0 { 0.0 } else { 1.0 - (idle_ns as f64 / wall_ns as f64).min(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(thread: u32, until_ms: u64, requests: u64, is_last: bool) -> Report {
        let mut tally = Tally::default();
        (0..requests).for_each(|_| tally.succeeded.record(1_000));
        tally.counts.wall_ns = 1_000_000_000;
        tally.counts.idle_ns = 250_000_000;
        Report { thread, seconds: until_ms / 1_000, until_ns: until_ms * 1_000_000, is_last, tally: Box::new(tally) }
    }

    fn add(collector: &mut Collector, thread: u32, until_ms: u64, requests: u64, is_last: bool) -> Vec<(u64, u64)> {
        let seconds = collector.add(&report(thread, until_ms, requests, is_last));
        seconds.into_iter().map(|second| (second.until_ms, second.requests)).collect()
    }

    #[test]
    fn a_second_is_complete_when_all_threads_have_reported_it() {
        let mut all = Collector::new(2);
        assert_eq!(add(&mut all, 0, 1_001, 3, false), []);
        assert_eq!(add(&mut all, 0, 2_001, 5, false), []);
        assert_eq!(add(&mut all, 1, 1_002, 4, false), [(1_000, 7)]);
        // The thread was stopped for a second: what it counted is in the next line.
        assert_eq!(add(&mut all, 1, 3_500, 6, false), [(2_000, 5)]);
        assert_eq!(add(&mut all, 0, 3_001, 7, false), [(3_000, 13)]);
        assert_eq!(add(&mut all, 0, 3_700, 1, true), []);
        assert_eq!(add(&mut all, 1, 3_800, 2, true), [(3_800, 3)]);
        let summary = all.summary();
        assert_eq!((summary.requests, summary.elapsed_ms, summary.busy), (28, 3_800, 0.75));
        assert!(!summary.saturated);
    }

    #[test]
    fn threads_may_end_in_different_seconds() {
        let mut all = Collector::new(2);
        assert_eq!(add(&mut all, 0, 900, 1, true), []);
        assert_eq!(add(&mut all, 1, 1_000, 2, false), [(1_000, 3)]);
        assert_eq!(add(&mut all, 1, 1_500, 4, true), [(1_500, 4)]);
    }
}
