//! One k6 from its start to its end: what it tells, and what was used meanwhile.

use std::io;

use super::clock::Clock;
use super::receiver::Receiver;
use super::sampler::{Sampler, Watched};
use crate::wire::series::{Stretch, Usage};

/// Listens and samples. Dropping it ends both.
#[derive(Debug)]
pub struct Recording {
    receiver: Receiver,
    sampler: Sampler,
}

impl Recording {
    /// Begins at once; k6 is to be started right after. Fails when the machine has no port left.
    pub async fn start(watched: Watched) -> io::Result<Self> {
        let clock = Clock::new();
        Ok(Self { receiver: Receiver::open(clock).await?, sampler: Sampler::start(watched, clock) })
    }

    /// Where k6 has to push to.
    pub fn url(&self) -> &str {
        self.receiver.url()
    }

    /// Everything, once k6 has ended.
    pub async fn finish(self) -> Stretch {
        let samples = self.sampler.finish().await;
        let stretch = self.receiver.finish();
        let since_start = |at_ms: i64| {
            let since = at_ms.saturating_sub(stretch.start_ms);
            i32::try_from(since).unwrap_or(if since < 0 { i32::MIN } else { i32::MAX })
        };
        let usage = samples.into_iter().map(|(at_ms, usage)| Usage { at_ms: since_start(at_ms), ..usage }).collect();
        Stretch { usage, ..stretch }
    }
}
