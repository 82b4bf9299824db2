//! Receives k6's pushes: an HTTP endpoint at a random path known only to this run's k6. It is a loopback port, unless
//! the load comes from other machines.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brewbench_wire::series::merge::{add_up, line, lines, moved};
use brewbench_wire::series::{Second, Window};
use brewbench_wire::work_done::WorkDone;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::USER_AGENT;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use uuid::Uuid;

use crate::engine::k6::remote_write::MAX_BODY;
use crate::series::clock::Clock;
use crate::series::collector::{Collector, Scope};

/// Connections that have sent nothing to a secret path. Any program on this machine can open more, but another one
/// takes the place of the oldest, and k6 sends its request with the connection. The limit protects memory.
const MAX_STRANGERS: usize = 256;

/// Closes connections that send no request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);

/// Summaries of k6 have a few kilobytes, or hundreds with thousands of groups and checks.
const MAX_SUMMARY: usize = 16 << 20;

/// The end of the path to which a k6 on another machine sends its summary.
const SUMMARY: &str = "/summary";

/// Receives the pushes of one k6 process, or of several, until dropped.
#[derive(Debug)]
pub struct Receiver {
    url: String,
    address: SocketAddr,
    sources: Vec<Arc<Source>>,
    _accepting: JoinSet<()>,
}

/// One k6 process.
#[derive(Debug)]
struct Source {
    path: String,
    clock: Clock,
    collector: Mutex<Collector>,
    sent: Mutex<Sent>,
    news: watch::Sender<()>,
}

/// What a k6 process has sent besides its series.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    /// Its summary.
    pub summary: Option<String>,
    /// The name and version of the program that sent it.
    pub user_agent: Option<String>,
    /// When it pushed last.
    pub pushed_at: Option<Instant>,
}

/// Everything received from one k6 process.
#[derive(Debug)]
pub struct Received {
    /// Its series.
    pub window: Window,
    /// Counts of its requests.
    pub work: WorkDone,
    /// Its requests by path, if all are GET requests whose names are paths.
    pub paths: Option<BTreeMap<String, u64>>,
    /// When its last request ended by its own clock, unix milliseconds.
    pub last_request_ms: Option<i64>,
    /// The rest.
    pub sent: Sent,
}

impl Receiver {
    /// Opens a loopback port for one k6 process, and notifies `news` of every push. Fails if there is no free port.
    pub async fn open(clock: Clock, scope: Scope, news: watch::Sender<()>) -> io::Result<Self> {
        let path = format!("/{}", Uuid::new_v4().simple());
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self::bind((address, address.ip()), &path, vec![path.clone()], (clock, scope), news).await
    }

    /// Opens a port for k6 processes on other machines, which reach this one at `address`. Each has a name, the last
    /// part of its path. Port 0 is any free port.
    pub async fn open_for(
        (address, port): (IpAddr, u16),
        names: &[String],
        clock: Clock,
        scope: Scope,
        news: watch::Sender<()>,
    ) -> io::Result<Self> {
        let root = format!("/{}", Uuid::new_v4().simple());
        let all: IpAddr =
            if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { "::".parse().map_err(io::Error::other)? };
        let paths = names.iter().map(|name| format!("{root}/{name}")).collect();
        Self::bind((SocketAddr::new(all, port), address), &root, paths, (clock, scope), news).await
    }

    async fn bind(
        (at, address): (SocketAddr, IpAddr),
        root: &str,
        paths: Vec<String>,
        (clock, scope): (Clock, Scope),
        news: watch::Sender<()>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let address = SocketAddr::new(address, listener.local_addr()?.port());
        let url = format!("http://{address}{root}");
        let source = |path| {
            let (collector, news) = (Mutex::new(Collector::new(clock.now_ms(), scope)), news.clone());
            Arc::new(Source { path, clock, collector, sent: Mutex::default(), news })
        };
        let sources: Vec<_> = paths.into_iter().map(source).collect();
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, sources.clone().into()));
        Ok(Self { url, address, sources, _accepting: accepting })
    }

    /// Returns the URL that k6 shall push to, without the name of a process on another machine. It is a secret: its
    /// holder can add to the series.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address in that URL.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Starts the series now, when k6 resumes.
    pub fn begin(&self) {
        for source in &self.sources {
            let now_ms = source.clock.now_ms();
            source.with(|collector| collector.begin(now_ms));
        }
    }

    /// Starts the series of one process at a time of this machine's clock.
    pub fn begin_one(&self, index: usize, at_ms: i64) {
        if let Some(source) = self.sources.get(index) {
            source.with(|collector| collector.begin(at_ms));
        }
    }

    /// Returns a handle to the points received so far.
    pub fn arrivals(&self) -> Arrivals {
        Arrivals(self.sources.clone())
    }

    /// Returns everything received, in the order of the names. k6 waits for the response to its last push, so nothing
    /// is missing once it has exited.
    pub fn finish(self) -> Vec<Received> {
        let finish = |source: &Arc<Source>| {
            let empty = Collector::new(source.clock.now_ms(), Scope::All);
            let collector = source.with(|collector| std::mem::replace(collector, empty));
            let (last_request_ms, paths) = (collector.last_request_ms(), collector.paths());
            let (window, work) = collector.finish();
            Received { window, work, paths, last_request_ms, sent: source.sent() }
        };
        self.sources.iter().map(finish).collect()
    }
}

/// The points of a receiver so far; those of several processes added up.
#[derive(Clone, Debug)]
pub struct Arrivals(Vec<Arc<Source>>);

impl Arrivals {
    /// Returns the start of the first second, unix milliseconds; known once it has ended.
    pub fn start_ms(&self) -> Option<i64> {
        let starts = self.0.iter().map(|source| source.with(|collector| collector.start_ms()));
        starts.collect::<Option<Vec<i64>>>()?.into_iter().min()
    }

    /// Starts the series at this time, unix milliseconds.
    pub fn begin(&self, at_ms: i64) {
        for source in &self.0 {
            source.with(|collector| collector.begin(at_ms));
        }
    }

    /// Adds a second that ended at this time, unix milliseconds.
    pub fn add(&self, second: &Second, at_ms: i64) {
        for source in &self.0 {
            source.with(|collector| collector.add(second.clone(), at_ms));
            source.news.send_replace(());
        }
    }

    /// Ends the series of a load whose last request ended at this time, unix milliseconds.
    pub fn conclude(&self, work: &WorkDone, last_request_ms: i64) {
        for source in &self.0 {
            source.with(|collector| collector.conclude(work.clone(), last_request_ms));
        }
    }

    /// Returns how often the series was downsampled.
    pub fn halvings(&self) -> u32 {
        self.0.iter().map(|source| source.with(|collector| collector.halvings())).sum()
    }

    /// Whether a process has pushed anything.
    pub fn has_pushed(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|source| source.sent().pushed_at.is_some())
    }

    /// Returns for how long a process has pushed nothing; `None` if it never did.
    pub fn silent_for(&self, index: usize) -> Option<Duration> {
        self.0.get(index)?.sent().pushed_at.map(|at| at.elapsed())
    }

    /// Whether a process has sent its summary.
    pub fn has_summary(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|source| source.sent().summary.is_some())
    }

    /// Returns the first `most` seconds that end after this, milliseconds since the start. The last of all may still
    /// grow.
    pub fn seconds_after(&self, until_ms: u32, most: usize) -> Vec<Second> {
        match self.0.as_slice() {
            [source] => source.with(|collector| collector.seconds_after(until_ms).iter().take(most).cloned().collect()),
            sources => sum_after(sources, self.start_ms(), until_ms, most),
        }
    }
}

/// Adds up the seconds of several processes that all of them have reported.
fn sum_after(sources: &[Arc<Source>], start_ms: Option<i64>, until_ms: u32, most: usize) -> Vec<Second> {
    let Some(start_ms) = start_ms else { return Vec::new() };
    let after_line = if until_ms == 0 { 0 } else { line(until_ms) - 1 };
    let mut complete = u32::MAX;
    let mut all = Vec::with_capacity(sources.len());
    for source in sources {
        source.with(|collector| {
            let after_ms = collector.start_ms().unwrap_or(start_ms).saturating_sub(start_ms);
            let seconds = collector.seconds_after(0);
            complete = complete.min(seconds.last().map_or(0, |last| line(moved(last.until_ms, after_ms))));
            all.push(lines(seconds, after_ms, after_line));
        });
    }
    for lines in &mut all {
        lines.retain(|line, _| *line <= complete);
    }
    let mut seconds = add_up(all);
    seconds.retain(|second| second.until_ms > until_ms);
    seconds.truncate(most);
    seconds
}

impl Source {
    fn with<T>(&self, act: impl FnOnce(&mut Collector) -> T) -> T {
        // A collector accepts any push, so its data is usable even after a panic.
        act(&mut self.collector.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, act: impl FnOnce(&mut Sent)) {
        act(&mut self.sent.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn sent(&self) -> Sent {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn accept(listener: TcpListener, sources: Arc<[Arc<Source>]>) {
    let mut connections = JoinSet::new();
    let mut strangers = Strangers::default();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let is_known = Arc::<AtomicBool>::default();
                    let served = connections.spawn(serve(stream, Arc::clone(&sources), Arc::clone(&is_known)));
                    strangers.add(served, is_known);
                }
                // For example no free descriptors: k6 retries.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
}

/// Connections that have not sent anything to a secret path yet, oldest first.
#[derive(Default)]
struct Strangers(VecDeque<(AbortHandle, Arc<AtomicBool>)>);

impl Strangers {
    /// Adds a connection, in place of the oldest if there are too many.
    fn add(&mut self, connection: AbortHandle, is_known: Arc<AtomicBool>) {
        self.0.push_back((connection, is_known));
        if self.0.len() > MAX_STRANGERS {
            self.0.retain(|(connection, is_known)| !connection.is_finished() && !is_known.load(Ordering::Relaxed));
        }
        if self.0.len() > MAX_STRANGERS
            && let Some((oldest, _)) = self.0.pop_front()
        {
            oldest.abort();
        }
    }
}

async fn serve(stream: TcpStream, sources: Arc<[Arc<Source>]>, is_known: Arc<AtomicBool>) {
    let service = service_fn(|request| answer(request, &sources, &is_known));
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(16 << 10);
    if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection of the series receiver broke");
    }
}

async fn answer(
    request: Request<Incoming>,
    sources: &[Arc<Source>],
    is_known: &AtomicBool,
) -> Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    let path = request.uri().path();
    let (of, is_summary) = path.strip_suffix(SUMMARY).map_or((path, false), |of| (of, true));
    let source = sources.iter().find(|source| source.path == of).filter(|_| request.method() == Method::POST);
    is_known.fetch_or(source.is_some(), Ordering::Relaxed);
    *response.status_mut() = match source {
        Some(source) if is_summary => take_summary(request, source).await,
        Some(source) => take_push(request, source).await,
        None => StatusCode::NOT_FOUND,
    };
    Ok(response)
}

async fn take_push(request: Request<Incoming>, source: &Source) -> StatusCode {
    let Ok(body) = Limited::new(request.into_body(), MAX_BODY).collect().await else {
        source.with(Collector::miss);
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    let at_ms = source.clock.now_ms();
    source.change(|sent| sent.pushed_at = Some(Instant::now()));
    source.with(|collector| collector.take(&body.to_bytes(), at_ms));
    source.news.send_replace(());
    StatusCode::NO_CONTENT
}

async fn take_summary(request: Request<Incoming>, source: &Source) -> StatusCode {
    let user_agent = request.headers().get(USER_AGENT).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Ok(body) = Limited::new(request.into_body(), MAX_SUMMARY).collect().await else {
        return StatusCode::PAYLOAD_TOO_LARGE;
    };
    let Ok(text) = String::from_utf8(body.to_bytes().into()) else { return StatusCode::BAD_REQUEST };
    source.change(|sent| (sent.summary, sent.user_agent) = (Some(text), user_agent));
    source.news.send_replace(());
    StatusCode::NO_CONTENT
}

#[cfg(test)]
mod tests {
    use brewbench_wire::series::Gaps;
    use tokio::io::AsyncReadExt;

    use super::*;

    fn gaps(receiver: Receiver) -> Gaps {
        receiver.finish().remove(0).window.gaps
    }

    async fn status(url: &str, body: Vec<u8>) -> u16 {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let response = reqwest::Client::new().post(url).body(body).send().await;
        response.expect("answered").status().as_u16()
    }

    #[tokio::test]
    async fn a_push_needs_the_secret_path() {
        let receiver = Receiver::open(Clock::new(), Scope::All, watch::Sender::default()).await.expect("a port");
        let (root, _) = receiver.url().rsplit_once('/').expect("a path");
        assert_eq!(status(&format!("{root}/"), b"foreign".to_vec()).await, 404);
        assert_eq!(status(&format!("{root}/api/v1/write"), b"foreign".to_vec()).await, 404);
        assert_eq!(receiver.arrivals().seconds_after(0, 9), []);
        assert_eq!(gaps(receiver), Gaps { unfinished: 1, ..Gaps::default() });
    }

    #[tokio::test]
    async fn a_damaged_push_is_counted_but_accepted() {
        let receiver = Receiver::open(Clock::new(), Scope::All, watch::Sender::default()).await.expect("a port");
        let nothing = snap::raw::Encoder::new().compress_vec(&[]).expect("packed");
        assert_eq!(status(receiver.url(), nothing).await, 204);
        assert_eq!(status(receiver.url(), b"\xff".to_vec()).await, 204);
        let until_ms = receiver.arrivals().seconds_after(0, 9).first().map_or(0, |second| second.until_ms);
        assert_eq!(receiver.arrivals().seconds_after(until_ms, 9), []);
        assert_eq!(gaps(receiver).damaged, 1);
    }

    #[tokio::test]
    async fn an_oversized_push_is_refused_and_counted() {
        let receiver = Receiver::open(Clock::new(), Scope::All, watch::Sender::default()).await.expect("a port");
        assert_eq!(status(receiver.url(), vec![0; MAX_BODY + 1]).await, 413);
        assert_eq!(gaps(receiver).damaged, 1);
    }

    #[tokio::test]
    async fn connections_of_strangers_leave_room_for_k6() {
        let receiver = Receiver::open(Clock::new(), Scope::All, watch::Sender::default()).await.expect("a port");
        let url = receiver.url().to_owned();
        let nothing = snap::raw::Encoder::new().compress_vec(&[]).expect("packed");
        let mut strangers = VecDeque::new();
        // More than there is room for, all of them open, before and after a push.
        for _ in 0..3 {
            for _ in 0..MAX_STRANGERS {
                strangers.push_back(TcpStream::connect(receiver.address()).await.expect("connected"));
            }
            assert_eq!(status(&url, nothing.clone()).await, 204);
        }
        let mut oldest = strangers.pop_front().expect("a stranger");
        assert_eq!(oldest.read(&mut [0]).await.expect("closed"), 0);
        // Long before it times out.
        let newest = strangers.pop_back().expect("a stranger");
        let open = newest.try_read(&mut [0]).expect_err("nothing to read");
        assert_eq!(open.kind(), io::ErrorKind::WouldBlock);
    }
}
