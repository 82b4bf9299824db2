//! Accepts connections and serves HTTP/1.1 on them, with limits and timeouts.
//!
//! A connection has a [`Slot`] until its socket is closed; [`caps`] limits the slots per group, [`descriptors`] the
//! total. Connections whose TLS handshake, head, body or response makes no progress are closed, as are idle ones
//! ([`Timeouts`]). Upgraded connections have their own heartbeats.

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
pub use caps::{Caps, Slot};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::app::tls::CurrentCertificate;

/// How long open requests may take after the server starts to shut down.
const GRACE: Duration = Duration::from_secs(5);

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// TLS handshake.
    pub handshake: Duration,
    /// Head of a request, from its first byte; for the first request from the start of the connection.
    pub head: Duration,
    /// Progress of a request body or a response.
    pub progress: Duration,
    /// Wait for the next request.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            head: Duration::from_secs(10),
            progress: Duration::from_secs(30),
            // Longer than the usual 60 s of proxies, so that the proxy closes the connection.
            idle: Duration::from_secs(75),
        }
    }
}

/// Serves the application on accepted connections.
#[derive(Clone, Debug)]
pub struct Listener {
    /// The application.
    pub app: Router,
    /// Connection limits.
    pub caps: Caps,
    /// Timeouts of each connection.
    pub timeouts: Timeouts,
    /// The certificate, if the server terminates TLS itself.
    pub tls: Option<CurrentCertificate>,
}

impl Listener {
    /// Serves until `end` is cancelled, then waits briefly for open requests.
    pub async fn serve(self, socket: TcpListener, end: &CancellationToken) {
        let connections = TaskTracker::new();
        accept::accept_all(socket, &self, end, &connections).await;
        connections.close();
        if tokio::time::timeout(GRACE, connections.wait()).await.is_err() {
            tracing::warn!("some connections did not finish before the shutdown");
        }
    }
}
