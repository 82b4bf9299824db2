//! Shares one computed value among concurrent requests.

use std::sync::Arc;

use tokio::{sync::Mutex, time::Instant};

use crate::app::error::Result;

/// A value that is never older than the request for it.
///
/// Of a hundred concurrent requests, the first computes the value, and the second computes it once more for all others.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Shared<T> {
    /// Returns a value whose computation started after this call.
    pub async fn get(&self, compute: impl AsyncFnOnce() -> Result<T>) -> Result<Arc<T>> {
        let called_at = Instant::now();
        let mut place = self.0.lock().await;
        match place.as_ref() {
            Some((begun_at, present)) if *begun_at > called_at => Ok(Arc::clone(present)),
            _ => {
                let begun_at = Instant::now();
                let new = Arc::new(compute().await?);
                *place = Some((begun_at, Arc::clone(&new)));
                Ok(new)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn concurrent_requests_share_a_value_and_later_ones_get_a_new_one() {
        let (shared, computed) = (Shared::default(), AtomicUsize::new(0));
        let get = || {
            shared.get(async || {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(computed.fetch_add(1, Ordering::Relaxed))
            })
        };
        let results = join_all((0..100).map(|_| get())).await;
        assert!(results.into_iter().all(|result| result.is_ok()));
        assert_eq!(computed.load(Ordering::Relaxed), 2);
        assert_eq!(*get().await.expect("a value"), 2, "an earlier value is too old");
    }
}
