//! From k6's pushes, each of which tells everything since its start, to what happened in each second.
//!
//! k6 pushes a series only when it has a sample that is newer, by whole milliseconds, than the last one it pushed. So
//! its very last samples may never be pushed, unless it is asked for stale markers
//! (`K6_PROMETHEUS_RW_STALE_MARKERS`): then it pushes all series once more at its end, counters as "ended", but
//! histograms whole. Latencies, and with them the requests, are therefore exact at the end; iterations and bytes may
//! lack what happened in the last millisecond.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, RandomState};

use super::histogram::Histogram;
use super::messages::{STALE, Sample, TimeSeries};
use super::metric::Metric;
use super::work_counter::WorkCounter;
use crate::engine::Push;
use crate::wire::series::{Lacks, Second, Stretch};
use crate::wire::work_done::WorkDone;

/// Sets of tags, counted for each metric. What a script makes above that is left out; a histogram takes about a
/// kilobyte, so this bounds the memory to a few megabytes.
pub const MAX_KNOWN: usize = 4000;

/// An hour. Of longer runs, what is past is told in less detail: points are added up in pairs, as often as needed.
pub const MAX_SECONDS: usize = 3600;

/// What comes earlier after the push before belongs to the same second: k6's last push comes when it ends, and not when
/// a second is over.
const EARLY_MS: u32 = 500;

/// Takes the pushes of one k6.
#[derive(Debug)]
pub struct Collector {
    begun_ms: i64,
    known: HashMap<u64, Known>,
    hasher: RandomState,
    stretch: Stretch,
    work: WorkCounter,
    /// How often the past was told in less detail.
    halvings: u32,
    /// Early pushes since the last one that was in time.
    early: u64,
    said_goodbye: bool,
}

/// What a series told last.
#[derive(Debug)]
enum Known {
    Count(u64),
    Latencies(Histogram),
}

impl Collector {
    /// For a k6 that is started at this time, unix milliseconds.
    pub fn new(begun_ms: i64) -> Self {
        Self {
            begun_ms,
            known: HashMap::new(),
            hasher: RandomState::new(),
            stretch: Stretch { start_ms: begun_ms, ..Stretch::default() },
            work: WorkCounter::default(),
            halvings: 0,
            early: 0,
            said_goodbye: false,
        }
    }

    /// The load begins later than k6 was started.
    pub fn begin(&mut self, at_ms: i64) {
        self.begun_ms = at_ms;
    }

    /// Takes the body of a push that came at this time, unix milliseconds.
    pub fn take(&mut self, body: &[u8], at_ms: i64) {
        let Ok(push) = Push::unpack(body) else { return self.miss() };
        let mut second = Second::default();
        let restarts = self.stretch.lacks.restarts;
        for series in push.series() {
            match series {
                Ok(series) => self.count(&series, &mut second),
                Err(_) => self.stretch.lacks.damaged += 1,
            }
        }
        // All series of a k6 go backwards at once.
        self.stretch.lacks.restarts = self.stretch.lacks.restarts.min(restarts + 1);
        self.place(second, at_ms);
    }

    /// Notes that a push came which could not be read.
    pub fn miss(&mut self) {
        self.stretch.lacks.damaged += 1;
    }

    /// The seconds that ended later than this, milliseconds after the start. The last one may still grow.
    pub fn seconds_after(&self, until_ms: u32) -> &[Second] {
        let seconds = &self.stretch.seconds;
        &seconds[seconds.partition_point(|second| second.until_ms <= until_ms)..]
    }

    /// When the first second began, unix milliseconds; not known before it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        (!self.stretch.seconds.is_empty()).then_some(self.stretch.start_ms)
    }

    /// How often the past was told in less detail, so that what is known of it elsewhere is no beginning of this.
    pub fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Everything, once k6 has ended, and what its requests were.
    pub fn finish(self) -> (Stretch, WorkDone) {
        let lacks = Lacks { unfinished: u64::from(!self.said_goodbye), ..self.stretch.lacks };
        (Stretch { lacks, ..self.stretch }, self.work.finish())
    }

    /// Adds what a series tells to the second.
    fn count(&mut self, series: &TimeSeries, second: &mut Second) {
        self.said_goodbye |= series.samples.iter().any(is_stale);
        let Some(metric) = Metric::of(series) else { return };
        for histogram in &series.histograms {
            match Histogram::read(histogram) {
                Some(all) if metric == Metric::Connecting => {
                    self.work.connecting(self.hasher.hash_one(&series.labels), &all);
                }
                Some(all) => self.latencies(series, metric, all, second),
                None => self.stretch.lacks.damaged += 1,
            }
        }
        for sample in series.samples.iter().filter(|sample| !is_stale(sample)) {
            self.sample(series, metric, *sample, second);
        }
    }

    fn latencies(&mut self, series: &TimeSeries, metric: Metric, all: Histogram, second: &mut Second) {
        let sum = match metric {
            Metric::Succeeded => &mut second.succeeded,
            Metric::Failed => &mut second.failed,
            _ => return self.stretch.lacks.damaged += 1,
        };
        let Some(known) = self.known(series, Known::Latencies(Histogram::default())) else { return };
        let Known::Latencies(before) = known else { return self.stretch.lacks.damaged += 1 };
        let new = all.since(before);
        let restarted = new.is_none();
        let new = new.unwrap_or_else(|| all.clone());
        *before = all;
        sum.add(&new);
        self.work.requests(series, new.total());
        self.stretch.lacks.restarts += u64::from(restarted);
    }

    fn sample(&mut self, series: &TimeSeries, metric: Metric, sample: Sample, second: &mut Second) {
        let Some(value) = whole(sample.value) else { return self.stretch.lacks.damaged += 1 };
        let sum = match metric {
            Metric::Vus => return second.vus = Some(second.vus.unwrap_or(0).saturating_add(value)),
            Metric::Iterations => &mut second.iterations,
            Metric::DroppedIterations => &mut second.dropped_iterations,
            Metric::ReceivedBytes => &mut second.received_bytes,
            Metric::SentBytes => &mut second.sent_bytes,
            Metric::Succeeded | Metric::Failed | Metric::Connecting => {
                return self.stretch.lacks.damaged += 1;
            }
        };
        let Some(known) = self.known(series, Known::Count(0)) else { return };
        let Known::Count(before) = known else { return self.stretch.lacks.damaged += 1 };
        let new = value.checked_sub(*before);
        *before = value;
        *sum = sum.saturating_add(new.unwrap_or(value));
        self.stretch.lacks.restarts += u64::from(new.is_none());
    }

    /// What a series told last, by its name and tags; nothing, if there are too many. Sets of tags are told apart by 64
    /// bits of hash: among thousands, two that are the same are as good as impossible.
    fn known(&mut self, series: &TimeSeries, first: Known) -> Option<&mut Known> {
        let full = self.known.len() >= MAX_KNOWN;
        match self.known.entry(self.hasher.hash_one(&series.labels)) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(_) if full => {
                self.stretch.lacks.left_out += 1;
                None
            }
            Entry::Vacant(entry) => Some(entry.insert(first)),
        }
    }

    /// Gives what came with a push its place in time.
    fn place(&mut self, second: Second, at_ms: i64) {
        let Stretch { start_ms, seconds, lacks, .. } = &mut self.stretch;
        // What k6 needs before its first second is no part of it.
        if seconds.is_empty() {
            *start_ms = self.begun_ms.max(at_ms.saturating_sub(1000));
        }
        let until_ms = u32::try_from(at_ms.saturating_sub(*start_ms).max(0)).unwrap_or(u32::MAX);
        let second = Second { until_ms, ..second };
        if let Some(last) = seconds.last_mut()
            && until_ms.saturating_sub(last.until_ms) < EARLY_MS
        {
            self.early += 1;
            last.add(second);
            return;
        }
        if seconds.len() == MAX_SECONDS {
            pair_up(seconds);
            self.halvings += 1;
        }
        let since = until_ms - seconds.last().map_or(0, |last| last.until_ms);
        lacks.missing_seconds += u64::from((since.saturating_add(EARLY_MS) / 1000).saturating_sub(1));
        // Those at the very end are k6's goodbye.
        lacks.doubled_seconds += std::mem::take(&mut self.early);
        seconds.push(second);
    }
}

/// Half as many points, each of twice the time.
fn pair_up(seconds: &mut Vec<Second>) {
    let mut all = std::mem::take(seconds).into_iter();
    while let Some(mut first) = all.next() {
        if let Some(second) = all.next() {
            first.add(second);
        }
        seconds.push(first);
    }
}

/// The series has ended, and this is no figure.
fn is_stale(sample: &Sample) -> bool {
    sample.value.to_bits() == STALE
}

/// A count that came as a float.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn whole(value: f64) -> Option<u64> {
    (0.0..9e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests;
