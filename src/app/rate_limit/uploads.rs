//! Limits the memory of uploads of all callers together.
//!
//! A handler of large bodies takes an [`UploadPermit`] after it has authenticated the caller and before it reads the
//! body, so that unauthenticated callers take none. Small bodies need no room.

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

/// Bodies up to this size need no room.
pub const SMALL: usize = 64 * 1024;

/// How many bodies of the maximum size fit at once.
const AT_ONCE: usize = 2;

/// How long a request waits for room before it is refused.
const PATIENCE: Duration = Duration::from_secs(5);

/// Seconds after which to retry.
const WAIT_S: u64 = 2;

/// Bytes per permit: a semaphore counts permits as `u32`.
const UNIT: usize = 1024;

/// The upload memory of one server.
#[derive(Debug)]
pub struct Uploads {
    largest: usize,
    free: Arc<Semaphore>,
}

impl Uploads {
    /// Creates room for several bodies of at most this many bytes.
    pub fn for_bodies_up_to(largest: usize) -> Self {
        Self { largest, free: Arc::new(Semaphore::new(units(largest) as usize * AT_ONCE)) }
    }

    async fn room(&self, headers: &HeaderMap) -> Result<UploadPermit> {
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        // A body of unknown length may have the maximum size. A larger one is refused elsewhere and not read.
        let length: usize = length.unwrap_or(self.largest).min(self.largest);
        if length <= SMALL {
            return Ok(UploadPermit(None));
        }
        let free = Arc::clone(&self.free);
        match timeout(PATIENCE, free.acquire_many_owned(units(length))).await {
            Ok(Ok(permit)) => Ok(UploadPermit(Some(permit))),
            _ => Err(Error::Busy {
                why: "the server is busy with other uploads; try again in a few seconds".to_owned(),
                wait_s: WAIT_S,
            }),
        }
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

/// Room for the body of a request, as an extractor after the caller and before the body. Dropping it releases the room.
#[derive(Debug)]
pub struct UploadPermit(#[expect(dead_code, reason = "held, never read")] Option<OwnedSemaphorePermit>);

/// Request extension: the handler has room already, so the extractor of the body takes none.
#[derive(Clone, Copy, Debug)]
struct HasRoom;

impl UploadPermit {
    /// Takes room unless the handler already has it.
    pub async fn unless_taken(parts: &Parts, state: &AppState) -> Result<Option<Self>> {
        match parts.extensions.get::<HasRoom>() {
            Some(HasRoom) => Ok(None),
            None => state.limits.uploads.room(&parts.headers).await.map(Some),
        }
    }
}

impl FromRequestParts<AppState> for UploadPermit {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let room = state.limits.uploads.room(&parts.headers).await?;
        parts.extensions.insert(HasRoom);
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
    async fn two_of_the_largest_bodies_fit_and_others_are_refused() {
        const MIB: usize = 1024 * 1024;
        let uploads = Uploads::for_bodies_up_to(16 * MIB);
        let first = uploads.room(&headers(16 * MIB)).await.expect("room");
        let unknown = uploads.room(&HeaderMap::new()).await.expect("room");
        let error = uploads.room(&headers(MIB)).await.expect_err("no room");
        assert!(matches!(&error, Error::Busy { wait_s: 2, .. }), "{error}");
        uploads.room(&headers(SMALL)).await.expect("small bodies need no room");
        drop(first);
        let next = uploads.room(&headers(usize::MAX)).await.expect("room for a body that is refused later");
        drop((unknown, next));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_gets_room_after_a_short_wait() {
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
