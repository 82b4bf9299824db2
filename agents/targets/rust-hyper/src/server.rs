//! Accepts connections and shuts them down gracefully.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};

use crate::site::Site;

/// How long a shutdown waits for requests in flight.
const GRACE: Duration = Duration::from_secs(5);

/// Pause when no connection can be accepted, for example because all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Serves until SIGTERM or SIGINT, completes requests in flight and returns. It prints its address to stdout.
/// The error is a sentence for the user.
pub async fn run(listen: &str, site: Site) -> Result<(), String> {
    let stop = stop_signal().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let listener = TcpListener::bind(listen).await.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr().map_err(|error| format!("cannot read the local address: {error}"))?;
    // Optional to read: a closed stdout is not an error.
    let _ = writeln!(io::stdout(), "listening on {address}");

    let connections = GracefulShutdown::new();
    tokio::select! {
        () = stop => {}
        () = accept(listener, Arc::new(site), &connections) => {}
    }
    let ended = timeout(GRACE, connections.shutdown()).await;
    ended.map_err(|_| format!("connections still open after {} s were closed", GRACE.as_secs()))
}

fn stop_signal() -> io::Result<impl Future<Output = ()>> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Accepts connections forever.
async fn accept(listener: TcpListener, site: Arc<Site>, connections: &GracefulShutdown) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => serve(stream, Arc::clone(&site), connections),
            Err(error) => {
                eprintln!("cannot accept a connection: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn serve(stream: TcpStream, site: Arc<Site>, connections: &GracefulShutdown) {
    // This fails only on a closed connection, which is detected when reading from it.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| ready(Ok::<_, Infallible>(site.answer(&request))));
    let connection = connections.watch(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    tokio::spawn(async move {
        // A connection closed by the client is not an error.
        let _ = connection.await;
    });
}
