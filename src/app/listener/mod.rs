//! The server's door: accepts connections and serves HTTP/1.1 on them, within limits of number and of time.
//!
//! A connection has a [`Place`] from its first byte until its socket is closed; [`caps`] says how many there are for whom,
//! [`descriptors`] how many in all. Nobody keeps a place for nothing: TLS handshakes, heads, bodies and answers that make no
//! progress end their connection, and so does one on which nothing is asked any more ([`Patience`]). What comes after an
//! upgrade has heartbeats of its own.

mod accept;
mod body;
pub mod caps;
mod connection;
pub mod descriptors;
mod pace;
mod stream;

use std::time::Duration;

use axum::Router;
pub use body::is_stalled;
pub use caps::{Caps, Place};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::app::tls::InUse;

/// How long requests may take to end once the server is told to.
const GRACE: Duration = Duration::from_secs(5);

/// How long a connection may keep its place without getting on.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For the head of a request, from its first byte; of the first one from the start of the connection.
    pub head: Duration,
    /// For some progress of a body or of an answer.
    pub progress: Duration,
    /// For the next request.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            progress: Duration::from_secs(30),
            // Longer than proxies keep theirs for (60 s as a rule): it is they who should close.
            idle: Duration::from_secs(75),
        }
    }
}

/// What every connection needs.
#[derive(Clone, Debug)]
pub struct Door {
    /// What answers.
    pub app: Router,
    /// How many connections there may be.
    pub caps: Caps,
    /// How long each may take.
    pub patience: Patience,
    /// The certificate of a server that speaks TLS itself.
    pub tls: Option<InUse>,
}

impl Door {
    /// Serves until told to end, and a little longer those who are being served then.
    pub async fn serve(self, listener: TcpListener, end: &CancellationToken) {
        let connections = TaskTracker::new();
        accept::accept_all(listener, &self, end, &connections).await;
        connections.close();
        if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
    }
}
