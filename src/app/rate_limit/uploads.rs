//! How much of what is being uploaded may be in memory at once, of all callers together.
//!
//! A handler of large bodies takes [`Room`] after it knows who calls and before it reads: who may not call, or is slow at a
//! door that is open to anybody, takes nothing. What is small always gets in.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::app::{
    error::{Error, Result},
    state::AppState,
};

/// Bodies up to this need no room.
pub const SMALL: usize = 64 * 1024;

/// So many of the largest bodies at once; some take more while they are read, by a factor that does not matter here.
const AT_ONCE: usize = 2;

/// How long to wait for room before the caller is asked to come again.
const PATIENCE: Duration = Duration::from_secs(5);

/// When that is, seconds.
const WAIT_S: u64 = 2;

/// A permit is for so many bytes: they are taken by a `u32` of them.
const UNIT: usize = 1024;

/// The room of one server.
#[derive(Debug)]
pub struct Uploads {
    largest: usize,
    free: Arc<Semaphore>,
}

impl Uploads {
    /// For some bodies of at most so many bytes.
    pub fn for_bodies_up_to(largest: usize) -> Self {
        Self { largest, free: Arc::new(Semaphore::new(units(largest) as usize * AT_ONCE)) }
    }

    async fn room(&self, headers: &HeaderMap) -> Result<Room> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // What does not say how long it is may be as long as any. What is too long is refused as such, and not read.
        let length: usize = length.unwrap_or(self.largest).min(self.largest);
        if length <= SMALL {
            return Ok(Room(None));
        }
        let free = Arc::clone(&self.free);
        match timeout(PATIENCE, free.acquire_many_owned(units(length))).await {
            Ok(Ok(permit)) => Ok(Room(Some(permit))),
            _ => Err(Error::Busy {
                why: "the server has its hands full with other uploads; try again in a few seconds".to_owned(),
                wait_s: WAIT_S,
            }),
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Room for the body of a request; to stand in a handler's signature behind who calls and before what is read. Given back
/// when the handler is done.
#[derive(Debug)]
pub struct Room(#[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>);

/// There is room already, and what reads the body need not ask for it.
#[derive(Clone, Copy, Debug)]
struct Taken;

impl Room {
    /// For what reads a body: none where the handler has it.
    pub async fn unless_taken(parts: &Parts, state: &AppState) -> Result<Option<Self>> {
        match parts.extensions.get::<Taken>() {
            Some(Taken) => Ok(None),
            None => state.limits.uploads.room(&parts.headers).await.map(Some),
        }
    }
}

impl FromRequestParts<AppState> for Room {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let room = state.limits.uploads.room(&parts.headers).await?;
        parts.extensions.insert(Taken);
        Ok(room)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(length: usize) -> HeaderMap {
        HeaderMap::from_iter([(header::CONTENT_LENGTH, HeaderValue::from(length))])
    }

    #[tokio::test(start_paused = true)]
    async fn two_of_the_largest_are_read_at_once_and_others_are_asked_to_come_again() {
        const MIB: usize = 1024 * 1024;
        let uploads = Uploads::for_bodies_up_to(16 * MIB);
        let first = uploads.room(&headers(16 * MIB)).await.expect("room");
        let unknown = uploads.room(&HeaderMap::new()).await.expect("room");
        let told = uploads.room(&headers(MIB)).await.expect_err("no room");
        assert!(matches!(&told, Error::Busy { wait_s: 2, .. }), "{told}");
        uploads.room(&headers(SMALL)).await.expect("small ones always get in");
        drop(first);
        let next = uploads.room(&headers(usize::MAX)).await.expect("room, for what will be refused as too large");
        drop((unknown, next));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_a_little_gets_in() {
        let uploads = Arc::new(Uploads::for_bodies_up_to(1024 * 1024));
        let first = uploads.room(&headers(1024 * 1024)).await.expect("room");
        let second = uploads.room(&headers(1024 * 1024)).await.expect("room");
        let free = async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(first);
        };
        let length = headers(1024 * 1024);
        let (third, ()) = tokio::join!(uploads.room(&length), free);
        third.expect("room");
        drop(second);
    }
}
