//! One k6 from its start to its end: what it tells, and what was used meanwhile.

use std::io;

use tokio::sync::watch;

use super::clock::Clock;
use super::sampler::{Sample, Sampler, Samples, Watched};
use super::shared::Span;
use crate::engine::{Arrivals, Receiver};
use crate::wire::series::{Second, Stretch, Usage};
use crate::wire::work_done::WorkDone;

/// Listens and samples. Dropping it ends both.
#[derive(Debug)]
pub struct Recording {
    receiver: Receiver,
    sampler: Sampler,
}

impl Recording {
    /// Begins at once, and rings whenever there is more; k6 is to be started right after. Fails when the machine has no
    /// port left.
    pub async fn start(watched: Watched, news: watch::Sender<()>) -> io::Result<Self> {
        let clock = Clock::new();
        let receiver = Receiver::open(clock, news.clone()).await?;
        Ok(Self { receiver, sampler: Sampler::start(watched, clock, news) })
    }

    /// Where k6 has to push to.
    pub fn url(&self) -> &str {
        self.receiver.url()
    }

    /// k6 waited until now: nothing before belongs to it.
    pub fn begin(&self) {
        self.receiver.begin();
    }

    /// What there is so far, for as long as somebody wants to know.
    pub fn so_far(&self) -> SoFar {
        SoFar { arrivals: self.receiver.arrivals(), samples: self.sampler.samples() }
    }

    /// Everything, once k6 has ended.
    pub async fn finish(self) -> Recorded {
        let samples = self.sampler.finish().await;
        let (stretch, work) = self.receiver.finish();
        let start_ms = stretch.start_ms;
        let spans = spans(start_ms, &samples);
        let usage = samples.into_iter().map(|sample| at(start_ms, &sample)).collect();
        Recorded { stretch: Stretch { usage, ..stretch }, spans, work }
    }
}

/// What a recording came to.
#[derive(Debug)]
pub struct Recorded {
    /// Second by second.
    pub stretch: Stretch,
    /// Between the samples since the start. The last one is left out where there are others: its sample was taken when
    /// k6 had gone, so it is partly idle.
    pub spans: Vec<Span>,
    /// What k6's requests were.
    pub work: WorkDone,
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

fn at(start_ms: i64, sample: &Sample) -> Usage {
    Usage { at_ms: since(start_ms, sample.at_ms), ..sample.usage }
}

/// What a recording has so far.
#[derive(Clone, Debug)]
pub struct SoFar {
    arrivals: Arrivals,
    samples: Samples,
}

impl SoFar {
    /// When the first second began, unix milliseconds; not known before it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        self.arrivals.start_ms()
    }

    /// How often the past of k6's figures, and of what was used, was told in less detail.
    pub fn halvings(&self) -> (u32, u32) {
        (self.arrivals.halvings(), self.samples.halvings())
    }

    /// The first so many of the seconds that ended later than this, milliseconds after the start.
    pub fn seconds_after(&self, until_ms: u32, most: usize) -> Vec<Second> {
        self.arrivals.seconds_after(until_ms, most)
    }

    /// The first so many of the samples that were taken later than this, milliseconds after the start.
    pub fn usage_after(&self, start_ms: i64, at_ms: i32, most: usize) -> Vec<Usage> {
        let samples = self.samples.after(start_ms.saturating_add(at_ms.into()), most);
        samples.iter().map(|sample| at(start_ms, sample)).collect()
    }
}

fn since(start_ms: i64, at_ms: i64) -> i32 {
    let since = at_ms.saturating_sub(start_ms);
    i32::try_from(since).unwrap_or(if since < 0 { i32::MIN } else { i32::MAX })
}

#[cfg(test)]
mod tests {
    use super::super::shared::Shared;
    use super::*;

    #[test]
    fn what_was_before_the_start_and_what_came_after_k6_is_in_no_span() {
        let sample = |at_ms: i64| Sample { at_ms, usage: Usage::default(), shared: Shared::default() };
        let lengths = |start_ms, times: &[i64]| {
            let samples: Vec<_> = times.iter().copied().map(sample).collect();
            spans(start_ms, &samples).into_iter().map(|span| span.elapsed_us / 1_000).collect::<Vec<_>>()
        };
        assert_eq!(lengths(10, &[0, 1_000, 2_010, 3_000, 3_100]), [1_000, 1_010, 990]);
        assert_eq!(lengths(5_000, &[0, 1_000, 4_900, 5_800, 6_700, 6_710]), [900, 900]);
        assert_eq!(lengths(0, &[0, 700]), [700], "there is no other");
        assert_eq!(lengths(0, &[0]), Vec::<u64>::new());
        assert_eq!(lengths(0, &[]), Vec::<u64>::new());
    }
}
