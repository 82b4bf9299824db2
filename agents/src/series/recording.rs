//! Records one k6 process from start to end: its metrics and the resource usage.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use brewbench_wire::load_time::LoadTime;
use brewbench_wire::series::{Second, Usage, Window};
use brewbench_wire::traffic::Traffic;
use brewbench_wire::work_done::WorkDone;
use tokio::sync::{Notify, watch};

use super::clock::Clock;
use super::collector::Scope;
use super::load_time::Planned;
use super::sampler::{Sample, Sampler, Samples, Watched};
use super::shared::Span;
use crate::engine::{Arrivals, Received, Receiver};

/// Receives k6's pushes and samples usage, until dropped.
#[derive(Debug)]
pub struct Recording {
    receiver: Receiver,
    sampler: Sampler,
    clock: Clock,
}

impl Recording {
    /// Starts recording, and notifies `news` of new points; start k6 right after. Fails if there is no free port.
    pub async fn start(watched: Watched, scope: Scope, news: watch::Sender<()>) -> io::Result<Self> {
        let clock = Clock::new();
        let receiver = Receiver::open(clock, scope, news.clone()).await?;
        let sampler = Sampler::start(watched, Some(receiver.address()), clock, news);
        Ok(Self { receiver, sampler, clock })
    }

    /// Starts recording several k6 processes on other machines, which reach this one at this address and port. Each has
    /// a name. Fails if the port is not free.
    pub async fn start_for(
        at: (IpAddr, u16),
        names: &[String],
        watched: Watched,
        scope: Scope,
        news: watch::Sender<()>,
    ) -> io::Result<Self> {
        let clock = Clock::new();
        let receiver = Receiver::open_for(at, names, clock, scope, news.clone()).await?;
        Ok(Self { receiver, sampler: Sampler::start(watched, None, clock, news), clock })
    }

    /// Returns the clock of all points.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Returns what takes a sample of usage at once, at the edge of a load.
    pub fn edges(&self) -> Arc<Notify> {
        self.sampler.edges()
    }

    /// Returns a handle to what has arrived so far.
    pub fn arrivals(&self) -> Arrivals {
        self.receiver.arrivals()
    }

    /// Starts the series of one of several k6 processes.
    pub fn begin_one(&self, index: usize, at_ms: i64) {
        self.receiver.begin_one(index, at_ms);
    }

    /// Returns what each of several k6 processes has sent, and the usage of the target since `start_ms`.
    pub async fn finish_all(self, start_ms: i64) -> (Vec<Received>, Vec<Usage>) {
        let (samples, _) = self.sampler.finish().await;
        let usage = samples.iter().map(|sample| usage_at(start_ms, sample)).collect();
        (self.receiver.finish(), usage)
    }

    /// Returns the URL that k6 shall push to.
    pub fn url(&self) -> &str {
        self.receiver.url()
    }

    /// Returns the address in that URL.
    pub fn address(&self) -> SocketAddr {
        self.receiver.address()
    }

    /// Starts the series now: k6 was paused until here.
    pub fn begin(&self) {
        self.receiver.begin();
    }

    /// Returns a handle to the points so far.
    pub fn so_far(&self) -> SoFar {
        SoFar { arrivals: self.receiver.arrivals(), samples: self.sampler.samples() }
    }

    /// Returns everything, once k6 has ended: of the load only, if its times are known.
    pub async fn finish(self, planned: Option<Planned>) -> Recorded {
        let (mut samples, connections) = self.sampler.finish().await;
        let Some(received) = self.receiver.finish().into_iter().next() else { return Recorded::default() };
        let Received { mut window, work, paths, last_request_ms, .. } = received;
        let limits = planned.zip(last_request_ms);
        let load_time = limits.map(|(planned, last_ms)| planned.limit(&mut window, last_ms));
        let start_ms = window.start_ms;
        if let Some((time, (_, last_ms))) = load_time.zip(limits) {
            keep_between(&mut samples, start_ms, time.end_ms(start_ms).max(last_ms));
        }
        let spans = spans(start_ms, &samples);
        let (from_ms, to_ms) = loaded(&window).unwrap_or((start_ms, i64::MAX));
        let traffic = connections.and_then(|connections| connections.traffic(from_ms, to_ms));
        let usage = samples.into_iter().map(|sample| usage_at(start_ms, &sample)).collect();
        Recorded { window: Window { usage, ..window }, spans, work, paths, load_time, traffic }
    }
}

/// The result of a recording.
#[derive(Debug, Default)]
pub struct Recorded {
    /// The points.
    pub window: Window,
    /// Usage between the samples since the start. The last span is dropped unless it is the only one: its sample was
    /// taken after k6 had exited, so it is partly idle.
    pub spans: Vec<Span>,
    /// Counts of k6's requests.
    pub work: WorkDone,
    /// Its requests by path, if all are GET requests whose names are paths.
    pub paths: Option<BTreeMap<String, u64>>,
    /// The time of the load, if it is known.
    pub load_time: Option<LoadTime>,
    /// Where its bytes went; `None` if unknown.
    pub traffic: Option<Traffic>,
}

/// Keeps the samples of a time. The nearest ones to its edges are those that were taken for them.
fn keep_between(samples: &mut Vec<Sample>, start_ms: i64, end_ms: i64) {
    let nearest = |at_ms: i64| {
        let distances = samples.iter().map(|sample| sample.at_ms.abs_diff(at_ms)).enumerate();
        distances.min_by_key(|(_, distance)| *distance).map_or(0, |(index, _)| index)
    };
    let (first, last) = (nearest(start_ms), nearest(end_ms));
    samples.truncate(last + 1);
    samples.drain(..first.min(samples.len()));
    if let Some(first) = samples.first_mut() {
        first.usage = first.usage.without_counts();
    }
}

/// Returns from when to when there was load for certain, unix milliseconds: without the first second with virtual
/// users, and without what `setup` and `teardown` do, which have none. `None` if k6 reported none: this machine runs no
/// k6.
fn loaded(window: &Window) -> Option<(i64, i64)> {
    let is_loaded = |second: &&Second| second.vus.is_some_and(|vus| vus > 0) || second.iterations > 0;
    let mut loaded = window.seconds.iter().filter(is_loaded).map(|second| window.start_ms + i64::from(second.until_ms));
    let first = loaded.next()?;
    Some((first, loaded.next_back().unwrap_or(first)))
}

fn spans(start_ms: i64, samples: &[Sample]) -> Vec<Span> {
    let begun = samples.partition_point(|sample| sample.at_ms < start_ms).saturating_sub(1);
    let span = |pair: &[Sample]| {
        let elapsed_ms = u64::try_from(pair[1].at_ms.saturating_sub(pair[0].at_ms)).ok().filter(|ms| *ms > 0)?;
        let Sample { usage: Usage { target, generator, .. }, shared, .. } = pair[1];
        Some(Span { elapsed_us: elapsed_ms.saturating_mul(1_000), target, generator, shared })
    };
    let mut spans: Vec<Span> = samples[begun..].windows(2).filter_map(span).collect();
    if spans.len() > 1 {
        spans.pop();
    }
    spans
}

fn usage_at(start_ms: i64, sample: &Sample) -> Usage {
    Usage { at_ms: since(start_ms, sample.at_ms), ..sample.usage }
}

/// The points of a recording in progress.
#[derive(Clone, Debug)]
pub struct SoFar {
    arrivals: Arrivals,
    samples: Samples,
}

impl SoFar {
    /// Returns the start of the first second, unix milliseconds; known once it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        self.arrivals.start_ms()
    }

    /// Returns how often k6's series and the samples were downsampled.
    pub fn halvings(&self) -> (u32, u32) {
        (self.arrivals.halvings(), self.samples.halvings())
    }

    /// Returns the first `most` seconds that end after this, milliseconds since the start.
    pub fn seconds_after(&self, until_ms: u32, most: usize) -> Vec<Second> {
        self.arrivals.seconds_after(until_ms, most)
    }

    /// Returns the first `most` samples taken after this, milliseconds since the start.
    pub fn usage_after(&self, start_ms: i64, at_ms: i32, most: usize) -> Vec<Usage> {
        let samples = self.samples.after(start_ms.saturating_add(at_ms.into()), most);
        samples.iter().map(|sample| usage_at(start_ms, sample)).collect()
    }
}

fn since(start_ms: i64, at_ms: i64) -> i32 {
    let since = at_ms.saturating_sub(start_ms);
    i32::try_from(since).unwrap_or(if since < 0 { i32::MIN } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use brewbench_wire::series::Consumption;

    use super::super::shared::Shared;
    use super::*;

    #[test]
    fn usage_is_that_between_the_edges_of_the_load() {
        let used = |at_ms: i64| {
            let target = Consumption { cpu_us: Some(5), memory_bytes: Some(7), ..Consumption::default() };
            Sample { at_ms, usage: Usage { target, ..Usage::default() }, shared: Shared::default() }
        };
        let between = |times: &[i64], start_ms, end_ms| {
            let mut samples: Vec<_> = times.iter().copied().map(used).collect();
            keep_between(&mut samples, start_ms, end_ms);
            if let Some(Sample { usage: Usage { target, .. }, .. }) = samples.first() {
                assert_eq!((target.cpu_us, target.memory_bytes), (Some(0), Some(7)), "used before");
            }
            samples.iter().map(|sample| sample.at_ms).collect::<Vec<_>>()
        };
        assert_eq!(
            between(&[0, 1_000, 1_402, 2_402, 3_402, 3_900, 4_902, 5_300], 1_400, 3_899),
            [1_402, 2_402, 3_402, 3_900]
        );
        assert_eq!(between(&[0, 1_000, 2_000, 3_000], 900, 2_100), [1_000, 2_000], "not taken for the edges");
        assert_eq!(between(&[0], 900, 2_100), [0]);
        assert!(between(&[], 900, 2_100).is_empty());
    }

    #[test]
    fn spans_exclude_the_time_before_the_start_and_after_k6() {
        let sample = |at_ms: i64| Sample { at_ms, usage: Usage::default(), shared: Shared::default() };
        let lengths = |start_ms, times: &[i64]| {
            let samples: Vec<_> = times.iter().copied().map(sample).collect();
            spans(start_ms, &samples).into_iter().map(|span| span.elapsed_us / 1_000).collect::<Vec<_>>()
        };
        assert_eq!(lengths(10, &[0, 1_000, 2_010, 3_000, 3_100]), [1_000, 1_010, 990]);
        assert_eq!(lengths(5_000, &[0, 1_000, 4_900, 5_800, 6_700, 6_710]), [900, 900]);
        assert_eq!(lengths(0, &[0, 700]), [700], "the only one");
        assert_eq!(lengths(0, &[0]), Vec::<u64>::new());
        assert_eq!(lengths(0, &[]), Vec::<u64>::new());
    }
}
