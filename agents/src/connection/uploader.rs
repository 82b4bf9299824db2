//! Uploads outcomes from the spool with HTTP `PUT`, retried until the server has acknowledged each.

use std::sync::Arc;
use std::time::Duration;

use brewbench_io::client::{Client, Fault};
use brewbench_wire::outcome::Outcome;
use brewbench_wire::{RunId, now_ms};
use reqwest::{Method, StatusCode};
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::connection::spool::Spool;

const FIRST_PAUSE: Duration = Duration::from_millis(300);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Empties one spool; cheap to clone.
#[derive(Clone, Debug)]
pub struct Uploader {
    client: Client,
    spool: Spool,
    work: Arc<Notify>,
    hurry: Arc<Notify>,
}

impl Uploader {
    /// Uploads from a spool to a server.
    pub fn new(client: Client, spool: Spool) -> Self {
        Self { client, spool, work: Arc::default(), hurry: Arc::default() }
    }

    /// Signals a new outcome in the spool.
    pub fn wake(&self) {
        self.work.notify_one();
    }

    /// Restarts an upload that waits for a response: after a reconnect it may use the broken connection, which can take
    /// a minute to notice.
    pub fn hurry(&self) {
        self.hurry.notify_one();
    }

    /// Uploads until `end`, and returns once the spool is empty or can't be emptied now.
    pub async fn run(self, end: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let emptied = tokio::select! {
                emptied = self.empty() => emptied,
                () = self.hurry.notified() => continue,
            };
            pause = if emptied { FIRST_PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            if end.is_cancelled() {
                return;
            }
            tokio::select! {
                () = end.cancelled() => {}
                () = self.work.notified() => {}
                () = self.hurry.notified() => {}
                () = sleep(pause), if !emptied => {}
            }
        }
    }

    /// Uploads everything in the spool; returns whether nothing is left.
    async fn empty(&self) -> bool {
        self.spool.write_pending();
        let waiting = match self.spool.waiting() {
            Ok(waiting) => waiting,
            Err(fault) => {
                tracing::error!(spool = %self.spool.folder().display(), %fault, "failed to read the spool");
                return false;
            }
        };
        for run in waiting {
            if let Ok(outcome) = self.spool.read(run) {
                if !self.deliver(run, outcome).await {
                    return false;
                }
            } else {
                tracing::error!(%run, "damaged outcome put aside");
            }
        }
        true
    }

    /// Uploads one outcome; returns whether nothing is left to do for it.
    async fn deliver(&self, run: RunId, outcome: Outcome) -> bool {
        match self.send(outcome).await {
            Ok(()) => self.spool.acknowledge(run).is_ok(),
            Err(Fault::Refused { status, sentence }) if is_final(status) => {
                tracing::error!(%run, %status, sentence, "the server rejected an outcome; it was put aside");
                self.spool.put_aside(run).is_ok()
            }
            Err(fault) => {
                tracing::warn!(%run, %fault, "failed to upload an outcome; retrying");
                false
            }
        }
    }

    async fn send(&self, outcome: Outcome) -> Result<(), Fault> {
        let path = format!("api/v1/agent/runs/{}/result", outcome.run);
        let outcome = Outcome { sent_at_ms: now_ms(), ..outcome };
        let request = self.client.request(Method::PUT, &path).timeout(Duration::from_mins(1)).json(&outcome);
        self.client.send(request).await.map(drop)
    }
}

/// Whether retrying can't help.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error()
        && !matches!(
            status,
            StatusCode::UNAUTHORIZED
                | StatusCode::FORBIDDEN
                | StatusCode::REQUEST_TIMEOUT
                | StatusCode::TOO_MANY_REQUESTS
        )
}
