//! Takes connections as they come. One that there is no room for is closed before anything is read from it.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Door, Place, connection};

/// How long to wait for a descriptor after the kernel had none.
const BREATH: Duration = Duration::from_millis(100);

/// How often connections that were refused are logged.
const LOGGED_EVERY: Duration = Duration::from_mins(1);

/// Until told to end. A connection is served beside the others.
pub async fn accept_all(listener: TcpListener, door: &Door, end: &CancellationToken, connections: &TaskTracker) {
    let mut complaints = Complaints::default();
    loop {
        let accepted = tokio::select! {
            () = end.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match door.caps.admit(peer.ip()) {
                Some(place) => {
                    complaints.exhausted = false;
                    connections.spawn(begin(stream, peer, place, door.clone(), end.clone()));
                }
                None => complaints.refused(peer),
            },
            // Of one connection, which is gone again.
            Err(fault) if is_passing(&fault) => {}
            Err(fault) => {
                complaints.exhausted(&fault);
                sleep(BREATH).await;
            }
        }
    }
}

async fn begin(stream: TcpStream, peer: SocketAddr, place: Arc<Place>, door: Door, end: CancellationToken) {
    // What comes of a connection concerns nobody but who made it: it is told there.
    if let Err(fault) = connection::serve(stream, peer, place, door, end).await {
        tracing::trace!(%peer, %fault, "connection");
    }
}

fn is_passing(fault: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(fault.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// What the log is told once, not once for each connection.
#[derive(Debug, Default)]
struct Complaints {
    /// Until a connection is taken again.
    exhausted: bool,
    refused: u64,
    logged: Option<Instant>,
}

impl Complaints {
    fn exhausted(&mut self, fault: &io::Error) {
        if !self.exhausted {
            tracing::error!(%fault, "no connections can be accepted; raise the limit of open files (LimitNOFILE)");
        }
        self.exhausted = true;
    }

    fn refused(&mut self, peer: SocketAddr) {
        self.refused += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOGGED_EVERY) {
            let refused = std::mem::take(&mut self.refused);
            tracing::warn!(refused, last = %peer.ip(), "too many connections from one place, or in all");
            self.logged = Some(Instant::now());
        }
    }
}
