//! One k6 from its start to its end: what it tells, and what was used meanwhile.

use std::io;

use tokio::sync::watch;

use super::clock::Clock;
use super::receiver::{Arrivals, Receiver};
use super::sampler::{Sampler, Samples, Watched};
use crate::wire::series::{Second, Stretch, Usage};

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
    pub async fn finish(self) -> Stretch {
        let samples = self.sampler.finish().await;
        let stretch = self.receiver.finish();
        let start_ms = stretch.start_ms;
        let usage =
            samples.into_iter().map(|(at_ms, usage)| Usage { at_ms: since(start_ms, at_ms), ..usage }).collect();
        Stretch { usage, ..stretch }
    }
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
        samples.into_iter().map(|(at_ms, usage)| Usage { at_ms: since(start_ms, at_ms), ..usage }).collect()
    }
}

fn since(start_ms: i64, at_ms: i64) -> i32 {
    let since = at_ms.saturating_sub(start_ms);
    i32::try_from(since).unwrap_or(if since < 0 { i32::MIN } else { i32::MAX })
}
