//! Connections: accepting them, keeping them alive, ending them gracefully.

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

/// How long requests in flight may take once the end was asked for.
const GRACE: Duration = Duration::from_secs(5);

/// How long to wait when no connection can be accepted, for instance because all file descriptors are in use.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Serves until SIGTERM or SIGINT, then answers what is in flight and returns. It says its address on stdout.
/// The error is a sentence for the user.
pub async fn run(listen: &str, site: Site) -> Result<(), String> {
    let stop = stop_signal().map_err(|error| format!("cannot listen for signals: {error}"))?;
    let listener = TcpListener::bind(listen).await.map_err(|error| format!("cannot listen on {listen}: {error}"))?;
    let address = listener.local_addr().map_err(|error| format!("cannot tell the address: {error}"))?;
    // Nobody needs to read it: a closed stdout is no reason to end.
    let _ = writeln!(io::stdout(), "listening on {address}");

    let connections = GracefulShutdown::new();
    tokio::select! {
        () = stop => {}
        () = accept(listener, Arc::new(site), &connections) => {}
    }
    let ended = timeout(GRACE, connections.shutdown()).await;
    ended.map_err(|_| format!("connections were cut off that did not end within {} s", GRACE.as_secs()))
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

/// Accepts connections for ever.
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
    // It fails only on a connection that is gone already; reading from it will tell.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| ready(Ok::<_, Infallible>(site.answer(&request))));
    let connection = connections.watch(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    tokio::spawn(async move {
        // What a client breaks off is its own matter.
        let _ = connection.await;
    });
}
