//! Limits the open event streams per caller, because each occupies a connection, and how many render at a time, so that
//! requests do not wait for them.

use std::{
    collections::HashMap,
    num::NonZero,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::app::error::{Error, Result};

/// The maximum per caller. A browser opens at most six connections to a site.
pub const MAX_PER_CALLER: usize = 250;

/// Seconds after which to retry.
const WAIT_S: u64 = 5;

/// Open streams per caller; cheap to clone.
#[derive(Clone, Debug)]
pub struct Streams {
    open: Arc<Mutex<HashMap<String, usize>>>,
    turns: Arc<Semaphore>,
}

impl Default for Streams {
    /// One stream per two cores renders at a time.
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self { open: Arc::default(), turns: Arc::new(Semaphore::new(cores.div_ceil(2))) }
    }
}

impl Streams {
    /// Opens a stream for a caller.
    pub fn open(&self, caller: &str) -> Result<Stream> {
        let mut open = self.all();
        let count = open.entry(caller.to_owned()).or_default();
        if *count >= MAX_PER_CALLER {
            let why = format!(
                "you have {MAX_PER_CALLER} pages and commands with live updates open, which is the limit; close some and try again"
            );
            return Err(Error::Busy { why, wait_s: WAIT_S });
        }
        *count += 1;
        Ok(Stream { streams: self.clone(), caller: caller.to_owned() })
    }

    /// Waits until a stream may render, in order of arrival.
    pub async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        // Never fails: nothing closes the semaphore.
        self.turns.acquire().await.ok()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open stream; it closes on drop.
#[derive(Debug)]
pub struct Stream {
    streams: Streams,
    caller: String,
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut open = self.streams.all();
        if let Some(count) = open.get_mut(&self.caller) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_streams_per_caller_is_limited() {
        let streams = Streams::default();
        let open: Vec<_> = (0..MAX_PER_CALLER).map(|_| streams.open("ada").expect("a stream")).collect();
        let error = streams.open("ada").expect_err("too many");
        assert!(matches!(&error, Error::Busy { why, .. } if why.contains("250 pages and commands")), "{error}");
        streams.open("grace").expect("another caller's");
        drop(open);
        assert!(streams.all().is_empty(), "callers without streams are removed");
        streams.open("ada").expect("a stream again");
    }
}
