//! Receives k6's pushes: an HTTP endpoint on a loopback port, at a random path known only to this run's k6.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::engine::k6::remote_write::MAX_BODY;
use crate::series::clock::Clock;
use crate::series::collector::Collector;
use crate::wire::series::{Second, Window};
use crate::wire::work_done::WorkDone;

/// k6 uses one connection. The limit protects memory from other clients.
const MAX_CONNECTIONS: usize = 8;

/// Closes connections that send no request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Receives the pushes of one k6 process, until dropped.
#[derive(Debug)]
pub struct Receiver {
    url: String,
    shared: Arc<Shared>,
    _accepting: JoinSet<()>,
}

#[derive(Debug)]
struct Shared {
    path: String,
    clock: Clock,
    collector: Mutex<Collector>,
    news: watch::Sender<()>,
}

impl Receiver {
    /// Opens a port, and notifies `news` of every push. Fails if there is no free port.
    pub async fn open(clock: Clock, news: watch::Sender<()>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let path = format!("/{}", Uuid::new_v4().simple());
        let url = format!("http://{}{path}", listener.local_addr()?);
        let collector = Mutex::new(Collector::new(clock.now_ms()));
        let shared = Arc::new(Shared { path, clock, collector, news });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { url, shared, _accepting: accepting })
    }

    /// Returns the URL that k6 shall push to. It is a secret: its holder can add to the series.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts the series now, when k6 resumes.
    pub fn begin(&self) {
        let now_ms = self.shared.clock.now_ms();
        self.shared.with(|collector| collector.begin(now_ms));
    }

    /// Returns a handle to the points received so far.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(Arc::clone(&self.shared))
    }

    /// Returns everything received. k6 waits for the response to its last push, so nothing is missing once it has
    /// exited.
    pub fn finish(self) -> (Window, WorkDone) {
        let empty = Collector::new(self.shared.clock.now_ms());
        self.shared.with(|collector| std::mem::replace(collector, empty)).finish()
    }
}

/// The points of a receiver so far.
#[derive(Clone, Debug)]
pub struct Arrivals(Arc<Shared>);

impl Arrivals {
    /// Returns the start of the first second, unix milliseconds; known once it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        self.0.with(|collector| collector.start_ms())
    }

    /// Returns how often the series was downsampled.
    pub fn halvings(&self) -> u32 {
        self.0.with(|collector| collector.halvings())
    }

    /// Returns the first `most` seconds that end after this, milliseconds since the start. The last of all may still
    /// grow.
    pub fn seconds_after(&self, until_ms: u32, most: usize) -> Vec<Second> {
        self.0.with(|collector| collector.seconds_after(until_ms).iter().take(most).cloned().collect())
    }
}

impl Shared {
    fn with<T>(&self, act: impl FnOnce(&mut Collector) -> T) -> T {
        // A collector accepts any push, so its data is usable even after a panic.
        act(&mut self.collector.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => drop(connections.spawn(serve(stream, Arc::clone(&shared)))),
                // For example no free descriptors: k6 retries.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(|request| answer(request, &shared));
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(16 << 10);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection of the series receiver broke");
    }
}

async fn answer(request: Request<Incoming>, shared: &Shared) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = if request.method() == Method::POST && request.uri().path() == shared.path {
        if let Ok(body) = Limited::new(request.into_body(), MAX_BODY).collect().await {
            let at_ms = shared.clock.now_ms();
            shared.with(|collector| collector.take(&body.to_bytes(), at_ms));
            shared.news.send_replace(());
            StatusCode::NO_CONTENT
        } else {
            shared.with(Collector::miss);
            StatusCode::PAYLOAD_TOO_LARGE
        }
    } else {
        StatusCode::NOT_FOUND
    };
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::series::Gaps;

    async fn status(url: &str, body: Vec<u8>) -> u16 {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let response = reqwest::Client::new().post(url).body(body).send().await;
        response.expect("answered").status().as_u16()
    }

    #[tokio::test]
    async fn a_push_needs_the_secret_path() {
        let receiver = Receiver::open(Clock::new(), watch::Sender::default()).await.expect("a port");
        let (root, _) = receiver.url().rsplit_once('/').expect("a path");
        assert_eq!(status(&format!("{root}/"), b"foreign".to_vec()).await, 404);
        assert_eq!(status(&format!("{root}/api/v1/write"), b"foreign".to_vec()).await, 404);
        assert_eq!(receiver.arrivals().seconds_after(0, 9), []);
        assert_eq!(receiver.finish().0.gaps, Gaps { unfinished: 1, ..Gaps::default() });
    }

    #[tokio::test]
    async fn a_damaged_push_is_counted_but_accepted() {
        let receiver = Receiver::open(Clock::new(), watch::Sender::default()).await.expect("a port");
        let nothing = snap::raw::Encoder::new().compress_vec(&[]).expect("packed");
        assert_eq!(status(receiver.url(), nothing).await, 204);
        assert_eq!(status(receiver.url(), b"\xff".to_vec()).await, 204);
        let until_ms = receiver.arrivals().seconds_after(0, 9).first().map_or(0, |second| second.until_ms);
        assert_eq!(receiver.arrivals().seconds_after(until_ms, 9), []);
        assert_eq!(receiver.finish().0.gaps.damaged, 1);
    }

    #[tokio::test]
    async fn an_oversized_push_is_refused_and_counted() {
        let receiver = Receiver::open(Clock::new(), watch::Sender::default()).await.expect("a port");
        assert_eq!(status(receiver.url(), vec![0; MAX_BODY + 1]).await, 413);
        assert_eq!(receiver.finish().0.gaps.damaged, 1);
    }
}
