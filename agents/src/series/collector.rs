//! Turns k6's pushes, each of which is cumulative since its start, into seconds.
//!
//! k6 pushes a series only if it has a sample that is newer, in whole milliseconds, than the last one pushed. So its
//! last samples may never be pushed, unless stale markers are enabled (`K6_PROMETHEUS_RW_STALE_MARKERS`): then it
//! pushes all series again at its end, counters only as "ended", but histograms completely. Latencies, and with them
//! requests, are therefore exact at the end; iterations and bytes may lack the last millisecond.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};

use brewbench_wire::histogram::Histogram;
use brewbench_wire::reports::load;
use brewbench_wire::series::merge::moved;
use brewbench_wire::series::{Gaps, Second, Window};
use brewbench_wire::work_done::WorkDone;

use super::messages::{STALE, Sample, TimeSeries};
use super::metric::{Metric, is_call, is_http};
use super::work_counter::{MAX_KNOWN, WorkCounter};
use crate::engine::Push;

/// One hour. Longer runs are downsampled: points are added up in pairs, as often as needed.
pub const MAX_SECONDS: usize = 3600;

/// A push that follows this soon belongs to the same second: k6's last push comes when it ends, not at the end of a
/// second.
const EARLY_MS: u32 = 500;

/// Which of k6's series belong to the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All: the script has nothing but its load.
    #[default]
    All,
    /// Those with the tag of the load; others are of `setup()` and `teardown()`.
    Tagged,
}

impl Scope {
    fn contains(self, series: &TimeSeries) -> bool {
        let [tag, value] = load::TAG;
        self == Self::All || series.label(tag) == Some(value)
    }
}

/// Collects the pushes of one k6 process.
#[derive(Debug)]
pub struct Collector {
    begun_ms: i64,
    scope: Scope,
    /// Whether there were HTTP requests; gRPC calls count only without them.
    has_http: bool,
    last_request_ms: Option<i64>,
    known: HashMap<u64, LastValue>,
    hasher: RandomState,
    window: Window,
    work: WorkCounter,
    /// How often the series was downsampled.
    halvings: u32,
    /// Early pushes since the last one on time.
    early: u64,
    has_ended: bool,
    /// The counts of requests that the load generator stated itself.
    stated: Option<WorkDone>,
}

/// The last values of a series.
#[derive(Debug)]
enum LastValue {
    Count(u64),
    Latencies(Histogram),
}

impl Collector {
    /// Creates a collector for a k6 process started at this time, unix milliseconds.
    pub fn new(begun_ms: i64, scope: Scope) -> Self {
        Self {
            begun_ms,
            scope,
            has_http: false,
            last_request_ms: None,
            known: HashMap::new(),
            hasher: RandomState::new(),
            window: Window { start_ms: begun_ms, ..Window::default() },
            work: WorkCounter::default(),
            halvings: 0,
            early: 0,
            has_ended: false,
            stated: None,
        }
    }

    /// Sets a load start that is later than the start of k6, which pushes while it is paused, too.
    pub fn begin(&mut self, at_ms: i64) {
        self.begun_ms = at_ms;
        let Window { start_ms, seconds, gaps, .. } = &mut self.window;
        let shift_ms = at_ms.saturating_sub(*start_ms);
        // The load may have begun before this is known, so only idle seconds from before it are dropped.
        let is_before = |second: &Second| second.is_idle() && i64::from(second.until_ms) <= shift_ms;
        let before = seconds.iter().take_while(|second| is_before(second)).count();
        seconds.drain(..before);
        for second in seconds.iter_mut() {
            second.until_ms = moved(second.until_ms, -shift_ms);
        }
        *start_ms = at_ms;
        *gaps = Gaps { missing_seconds: 0, doubled_seconds: 0, ..*gaps };
        (self.early, self.halvings) = (0, 0);
    }

    /// Adds the body of a push received at this time, unix milliseconds.
    pub fn take(&mut self, body: &[u8], at_ms: i64) {
        let Ok(push) = Push::unpack(body) else { return self.miss() };
        let mut second = Second::default();
        let restarts = self.window.gaps.restarts;
        if !self.has_http {
            self.look_for_http(&push);
        }
        for series in push.series() {
            match series {
                Ok(series) => self.count(&series, &mut second),
                Err(_) => self.window.gaps.damaged += 1,
            }
        }
        // All series of a k6 process restart at once.
        self.window.gaps.restarts = self.window.gaps.restarts.min(restarts + 1);
        self.add_push(second, at_ms);
    }

    /// Forgets gRPC calls once there are HTTP requests, because a summary has the requests of one protocol.
    fn look_for_http(&mut self, push: &Push) {
        self.has_http = push.series().flatten().any(|series| is_http(&series) && self.scope.contains(&series));
        if self.has_http {
            for second in &mut self.window.seconds {
                (second.succeeded, second.failed) = (Histogram::default(), Histogram::default());
            }
            self.work = WorkCounter::default();
        }
    }

    /// Adds a second that ended at this time, unix milliseconds.
    pub fn add(&mut self, second: Second, at_ms: i64) {
        self.add_push(second, at_ms);
    }

    /// Ends the series of a load whose last request ended at this time, unix milliseconds.
    pub fn conclude(&mut self, work: WorkDone, last_request_ms: i64) {
        (self.stated, self.last_request_ms, self.has_ended) = (Some(work), Some(last_request_ms), true);
    }

    /// Counts a push that could not be read.
    pub fn miss(&mut self) {
        self.window.gaps.damaged += 1;
    }

    /// Returns the seconds that end after this, milliseconds since the start. The last one may still grow.
    pub fn seconds_after(&self, until_ms: u32) -> &[Second] {
        let seconds = &self.window.seconds;
        &seconds[seconds.partition_point(|second| second.until_ms <= until_ms)..]
    }

    /// Returns the start of the first second, unix milliseconds; known once it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        (!self.window.seconds.is_empty()).then_some(self.window.start_ms)
    }

    /// Returns how often the series was downsampled; each time, earlier copies become outdated.
    pub fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Returns when the last request ended by k6's clock, unix milliseconds.
    pub fn last_request_ms(&self) -> Option<i64> {
        self.last_request_ms
    }

    /// Returns the requests by path, if all are GET requests whose names are paths.
    pub fn paths(&self) -> Option<BTreeMap<String, u64>> {
        self.work.paths()
    }

    /// Returns the series and the counts of requests, once k6 has ended.
    pub fn finish(self) -> (Window, WorkDone) {
        let gaps = Gaps { unfinished: u64::from(!self.has_ended), ..self.window.gaps };
        (Window { gaps, ..self.window }, self.stated.unwrap_or_else(|| self.work.finish()))
    }

    /// Adds a series to the second.
    fn count(&mut self, series: &TimeSeries, second: &mut Second) {
        self.has_ended |= series.samples.iter().any(is_stale);
        let Some(metric) = Metric::identify(series) else { return };
        // Virtual users have no tag.
        if metric != Metric::Vus && !self.scope.contains(series) || self.has_http && is_call(series) {
            return;
        }
        for histogram in &series.histograms {
            match histogram.read() {
                Some(all) if metric == Metric::Connecting => {
                    self.work.connecting(self.hasher.hash_one(&series.labels), &all);
                }
                Some(all) => {
                    self.last_request_ms = self.last_request_ms.max(Some(histogram.timestamp));
                    self.latencies(series, metric, all, second);
                }
                None => self.window.gaps.damaged += 1,
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
            _ => return self.window.gaps.damaged += 1,
        };
        let Some(known) = self.known(series, LastValue::Latencies(Histogram::default())) else { return };
        let LastValue::Latencies(before) = known else { return self.window.gaps.damaged += 1 };
        let new = all.since(before);
        let restarted = new.is_none();
        let new = new.unwrap_or_else(|| all.clone());
        *before = all;
        sum.add(&new);
        self.work.requests(series, new.total());
        self.window.gaps.restarts += u64::from(restarted);
    }

    fn sample(&mut self, series: &TimeSeries, metric: Metric, sample: Sample, second: &mut Second) {
        let Some(value) = count(sample.value) else { return self.window.gaps.damaged += 1 };
        let sum = match metric {
            Metric::Vus => return second.vus = Some(second.vus.unwrap_or(0).saturating_add(value)),
            Metric::Iterations => &mut second.iterations,
            Metric::DroppedIterations => &mut second.dropped_iterations,
            Metric::ReceivedBytes => &mut second.received_bytes,
            Metric::SentBytes => &mut second.sent_bytes,
            Metric::Succeeded | Metric::Failed | Metric::Connecting => {
                return self.window.gaps.damaged += 1;
            }
        };
        let Some(known) = self.known(series, LastValue::Count(0)) else { return };
        let LastValue::Count(before) = known else { return self.window.gaps.damaged += 1 };
        let new = value.checked_sub(*before);
        *before = value;
        *sum = sum.saturating_add(new.unwrap_or(value));
        self.window.gaps.restarts += u64::from(new.is_none());
    }

    /// Returns the last values of a series; `None` if there are too many series. They are identified by a 64-bit hash:
    /// among thousands, a collision is practically impossible.
    fn known(&mut self, series: &TimeSeries, first: LastValue) -> Option<&mut LastValue> {
        let full = self.known.len() >= MAX_KNOWN;
        match self.known.entry(self.hasher.hash_one(&series.labels)) {
            Entry::Occupied(entry) => Some(entry.into_mut()),
            Entry::Vacant(_) if full => {
                self.window.gaps.dropped_values += 1;
                None
            }
            Entry::Vacant(entry) => Some(entry.insert(first)),
        }
    }

    /// Adds the content of a push at its time.
    fn add_push(&mut self, second: Second, at_ms: i64) {
        let Window { start_ms, seconds, gaps, .. } = &mut self.window;
        // The time k6 needs to start is not part of its first second.
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
        gaps.missing_seconds += u64::from((since.saturating_add(EARLY_MS) / 1000).saturating_sub(1));
        // Early pushes at the very end are normal.
        gaps.doubled_seconds += std::mem::take(&mut self.early);
        seconds.push(second);
    }
}

/// Halves the number of points by adding up pairs.
fn pair_up(seconds: &mut Vec<Second>) {
    let mut all = std::mem::take(seconds).into_iter();
    while let Some(mut first) = all.next() {
        if let Some(second) = all.next() {
            first.add(second);
        }
        seconds.push(first);
    }
}

/// Whether a sample only marks the end of its series.
fn is_stale(sample: &Sample) -> bool {
    sample.value.to_bits() == STALE
}

/// Converts a count sent as a float.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn count(value: f64) -> Option<u64> {
    (0.0..9e18).contains(&value).then(|| value.round() as u64)
}

#[cfg(test)]
mod tests;
