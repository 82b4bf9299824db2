//! What many look at is made once for all of them.

use std::sync::Arc;

use tokio::{sync::Mutex, time::Instant};

use crate::app::error::Result;

/// A place for something that is made anew whenever somebody needs one that is not older than the wish for it. Of a
/// hundred who come at once, one makes it, the next one makes it anew for all who came meanwhile, and that is all.
#[derive(Debug)]
pub struct Shared<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> Shared<T> {
    /// One whose making has begun after this was called.
    pub async fn get(&self, make: impl AsyncFnOnce() -> Result<T>) -> Result<Arc<T>> {
        let wished = Instant::now();
        let mut place = self.0.lock().await;
        match place.as_ref() {
            Some((begun_at, present)) if *begun_at > wished => Ok(Arc::clone(present)),
            _ => {
                let begun_at = Instant::now();
                let new = Arc::new(make().await?);
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
    async fn many_at_once_share_and_who_comes_later_gets_a_new_one() {
        let (shared, made) = (Shared::default(), AtomicUsize::new(0));
        let get = || {
            shared.get(async || {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Ok(made.fetch_add(1, Ordering::Relaxed))
            })
        };
        let got = join_all((0..100).map(|_| get())).await;
        assert!(got.into_iter().all(|got| got.is_ok()));
        assert_eq!(made.load(Ordering::Relaxed), 2);
        assert_eq!(*get().await.expect("made"), 2, "what was made before is too old");
    }
}
