//! How many streams of events one caller may have open: each keeps a connection and is worked for as long as it lasts.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::app::error::{Error, Result};

/// A browser opens six connections to a site at most; the rest is for many browsers, or for a program's.
pub const MOST_OF_ONE: usize = 250;

/// When to try again, seconds.
const WAIT_S: u64 = 5;

/// The open streams by their callers; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Streams(Arc<Mutex<HashMap<String, usize>>>);

impl Streams {
    /// A caller opens one more.
    pub fn open(&self, caller: &str) -> Result<Stream> {
        let mut open = self.all();
        let count = open.entry(caller.to_owned()).or_default();
        if *count >= MOST_OF_ONE {
            let why = format!("{MOST_OF_ONE} pages and commands follow for you already; close some and try again");
            return Err(Error::Busy { why, wait_s: WAIT_S });
        }
        *count += 1;
        Ok(Stream { streams: self.clone(), caller: caller.to_owned() })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One open stream; closed when this is dropped.
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
    fn a_caller_has_so_many_streams_and_no_more() {
        let streams = Streams::default();
        let open: Vec<_> = (0..MOST_OF_ONE).map(|_| streams.open("ada").expect("a stream")).collect();
        let told = streams.open("ada").expect_err("too many");
        assert!(matches!(&told, Error::Busy { why, .. } if why.contains("250 pages and commands")), "{told}");
        streams.open("grace").expect("somebody else's");
        drop(open);
        assert!(streams.all().is_empty(), "nothing is kept of who is gone");
        streams.open("ada").expect("a stream again");
    }
}
