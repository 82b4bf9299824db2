//! Checks that a target serves: sends HTTP requests, and verifies that the target itself answers.

use std::net::SocketAddr;
use std::time::Duration;

use brewbench_io::client::{innermost, prepare_tls};
use brewbench_wire::manifest::{Ready, Verify};
use reqwest::header::LOCATION;
use reqwest::{Client, Response as Raw, Version};
use tokio::time::{Instant, sleep, timeout_at};

use crate::host::procfs;
use crate::sandbox::Watch;

/// Returns the pause between two polls. It limits the precision of the start-up time: 1 ms at first, 1 % later, 10 ms
/// at most.
fn pause(waited: Duration) -> Duration {
    (waited / 100).clamp(Duration::from_millis(1), Duration::from_millis(10))
}

/// Maximum length of a body to read.
const BODY_BYTES: usize = 1 << 20;

/// The process that answers on a port.
#[derive(Debug, PartialEq, Eq)]
pub enum Server {
    /// A process of the target's group.
    Target,
    /// Another process.
    Other,
    /// Nothing listens.
    None,
}

/// Where a target serves.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Its URL without a trailing slash; paths are appended.
    pub base_url: String,
    pub(super) client: Client,
    /// How long the first try of a request for readiness may take; the next ones may take as much longer each.
    pub first_try: Option<Duration>,
    /// Its address, if it is on this machine.
    local: Option<SocketAddr>,
}

impl Endpoint {
    /// A program on this machine.
    pub fn local(at: SocketAddr) -> Result<Self, String> {
        Ok(Self { base_url: format!("http://{at}"), client: client()?, first_try: None, local: Some(at) })
    }

    /// Any other server, with the client to use.
    pub fn remote(base_url: &str, client: Client) -> Self {
        Self { base_url: base_url.to_owned(), client, first_try: None, local: None }
    }

    /// Requests a path.
    pub async fn get(&self, path: &str) -> reqwest::Result<Raw> {
        self.client.get(format!("{}{path}", self.base_url)).send().await
    }

    /// Describes why there is no response at all.
    fn silence(&self) -> &'static str {
        match self.local.map(|at| procfs::listeners(at).len()) {
            Some(0) => "connections are refused",
            Some(_) => "connections are accepted, but there is no response",
            None => "there is no response",
        }
    }
}

/// Polls until the response has the expected status; the error describes the last observation.
pub async fn answer(at: &Endpoint, ready: &Ready) -> Result<(), String> {
    let begun = Instant::now();
    let deadline = begun + ready.timeout();
    let mut seen = None;
    for attempt in 1.. {
        let patience = at.first_try.map_or(deadline, |first| (Instant::now() + first * attempt).min(deadline));
        match timeout_at(patience, at.get(&ready.path)).await {
            Err(_) if patience == deadline => break,
            Err(_) => continue,
            Ok(Ok(response)) if response.status().as_u16() == ready.status => return Ok(()),
            Ok(Ok(response)) => seen = Some(format!("last {}", describe_status(&response))),
            // A program that starts does not listen yet.
            Ok(Err(error)) if error.is_connect() && at.local.is_some() => seen = None,
            Ok(Err(error)) => seen = Some(format!("the connection failed: {}", innermost(&error))),
        }
        let pause = pause(begun.elapsed());
        if Instant::now() + pause >= deadline {
            break;
        }
        sleep(pause).await;
    }
    let seen = seen.unwrap_or_else(|| format!("{}; raise ready.timeout_s if it starts slowly", at.silence()));
    let Ready { path, status, .. } = ready;
    let seconds = ready.timeout().as_secs_f64();
    Err(format!("no response to GET {path} with status {status} within {seconds} s: {seen}"))
}

/// The checked parts of a response.
#[derive(Debug)]
pub struct Response {
    /// The `content-type` header; empty if there is none.
    pub content_type: String,
    /// The `server` header; empty if there is none.
    pub server: String,
    /// Bytes of the status line and the headers, if they are sent as text.
    pub head_bytes: Option<u64>,
    /// The body, up to 1 MiB of it.
    pub body: Vec<u8>,
}

/// Sends one request and checks the response; the error describes the difference, or the timeout.
pub async fn ask(at: &Endpoint, verify: &Verify, limit: Duration) -> Result<Response, String> {
    let Verify { path, status, contains } = verify;
    let ask = async {
        let mut response = at.get(path).await.map_err(|error| format!("GET {path} failed: {}", innermost(&error)))?;
        if response.status().as_u16() != *status {
            return Err(format!("GET {path} returned {}, expected {status}", describe_status(&response)));
        }
        let header = |name| response.headers().get(name).map_or("", |value| value.to_str().unwrap_or("?")).to_owned();
        let (content_type, server) = (header("content-type"), header("server"));
        let head_bytes = head_bytes(&response);
        let body = body(&mut response, BODY_BYTES)
            .await
            .map_err(|error| format!("the body of GET {path} was cut off: {error}"))?;
        let text = contains.as_deref().unwrap_or_default();
        if text.is_empty() || body.windows(text.len()).any(|window| window == text.as_bytes()) {
            return Ok(Response { content_type, server, head_bytes, body });
        }
        let start: String = String::from_utf8_lossy(&body).chars().take(100).collect();
        Err(format!("the body of GET {path} does not contain {text:?}; it starts with {start:?}"))
    };
    let late = |_| Err(format!("no response to GET {path} within {} s", limit.as_secs_f64()));
    tokio::time::timeout(limit, ask).await.unwrap_or_else(late)
}

/// Counts the bytes of the status line, the headers and the empty line after them. The reason phrase is taken to be the
/// usual one.
pub fn head_bytes(response: &Raw) -> Option<u64> {
    // HTTP/2 compresses headers.
    let is_text = matches!(response.version(), Version::HTTP_10 | Version::HTTP_11);
    let reason = response.status().canonical_reason().unwrap_or_default();
    let line = "HTTP/1.1 200 \r\n".len() + reason.len();
    let headers = response.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    let all = line + headers.sum::<usize>() + "\r\n".len();
    u64::try_from(all).ok().filter(|_| is_text)
}

/// Determines which process listens on an address.
pub fn server_of(at: SocketAddr, group: &Watch) -> Server {
    let mut listeners = procfs::listeners(at);
    if listeners.is_empty() {
        return Server::None;
    }
    for pid in group.processes() {
        for socket in procfs::sockets(pid) {
            listeners.remove(&socket);
        }
    }
    if listeners.is_empty() {
        return Server::Target;
    }
    // A target that exits in between has no processes any more, but had listened.
    let now = procfs::listeners(at);
    if listeners.iter().any(|socket| now.contains(socket)) { Server::Other } else { Server::None }
}

/// Creates a client for programs on this machine: without proxy, redirects, and idle connections, which would delay the
/// shutdown of the target.
pub fn client() -> Result<Client, String> {
    // reqwest needs a TLS provider even for plain HTTP; another part of the program may have installed it already. It
    // must not load CA certificates, because a machine may have none.
    prepare_tls();
    let builder = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let builder = builder.pool_max_idle_per_host(0).tls_certs_only([]);
    builder.build().map_err(|error| format!("no HTTP client: {error}"))
}

/// Describes a status, and where it redirects.
fn describe_status(response: &Raw) -> String {
    let status = response.status().as_u16();
    match response.headers().get(LOCATION).filter(|_| response.status().is_redirection()) {
        Some(place) => format!("status {status}, which redirects to {}", String::from_utf8_lossy(place.as_bytes())),
        None => format!("status {status}"),
    }
}

/// Reads at most this many bytes of a body, and the rest of the chunk.
pub async fn body(response: &mut Raw, most: usize) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() < most
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
