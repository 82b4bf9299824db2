//! A load generator that is ready and waits for its start.

use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::k6;
use crate::sandbox::Watch;

/// Timeout for looking up the target, and for the start of the threads.
const MAX_START: Duration = Duration::from_mins(1);

/// A load generator that is paused.
#[derive(Debug)]
pub enum Paused {
    /// k6, by its REST interface.
    K6(k6::Paused),
    /// The native one.
    Native {
        /// Whether it is ready.
        ready: watch::Receiver<bool>,
        /// Starts its load.
        start: oneshot::Sender<()>,
    },
}

impl Paused {
    /// Waits until it is ready to start. Fails with a sentence.
    pub async fn wait(&self, group: &Watch) -> Result<(), String> {
        match self {
            Self::K6(k6) => k6.wait(group).await,
            Self::Native { ready, .. } => match timeout(MAX_START, ready.clone().wait_for(|ready| *ready)).await {
                Ok(Ok(_)) => Ok(()),
                _ => Err(format!("the load generator was not ready within {} s", MAX_START.as_secs())),
            },
        }
    }

    /// Starts its load. Fails with a sentence.
    pub async fn resume(self) -> Result<(), String> {
        match self {
            Self::K6(k6) => k6.resume().await,
            Self::Native { start, .. } => start.send(()).map_err(|()| "the load generator has ended".to_owned()),
        }
    }
}
