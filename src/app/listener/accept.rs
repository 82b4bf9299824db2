//! Accepts connections. A connection above the limits is closed before anything is read.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Listener, Slot, connection};

/// The pause after the process ran out of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// How often refused connections are logged.
const LOGGED_EVERY: Duration = Duration::from_mins(1);

/// Accepts connections until `end` is cancelled and spawns a task for each.
pub async fn accept_all(socket: TcpListener, listener: &Listener, end: &CancellationToken, connections: &TaskTracker) {
    let mut log = LogThrottle::default();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match listener.caps.admit(peer.ip()) {
                Some(slot) => {
                    log.exhausted = false;
                    connections.spawn(serve(stream, peer, slot, listener.clone(), end.clone()));
                }
                None => log.refused(peer),
            },
            // The client closed the connection before it was accepted.
            Err(fault) if is_connection_error(&fault) => {}
            Err(fault) => {
                log.exhausted(&fault);
                sleep(PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, peer: SocketAddr, slot: Arc<Slot>, listener: Listener, end: CancellationToken) {
    // Errors of a connection concern only the client, which notices them itself.
    if let Err(fault) = connection::serve(stream, peer, slot, listener, end).await {
        tracing::trace!(%peer, %fault, "connection failed");
    }
}

fn is_connection_error(fault: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(fault.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Limits repeated log messages.
#[derive(Debug, Default)]
struct LogThrottle {
    /// True until a connection is accepted again.
    exhausted: bool,
    refused: u64,
    logged: Option<Instant>,
}

impl LogThrottle {
    fn exhausted(&mut self, fault: &io::Error) {
        if !self.exhausted {
            tracing::error!(%fault, "cannot accept connections; raise the limit of open files (LimitNOFILE)");
        }
        self.exhausted = true;
    }

    fn refused(&mut self, peer: SocketAddr) {
        self.refused += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOGGED_EVERY) {
            let refused = std::mem::take(&mut self.refused);
            tracing::warn!(refused, last = %peer.ip(), "refused connections above the limit of an address, a network or the server");
            self.logged = Some(Instant::now());
        }
    }
}
