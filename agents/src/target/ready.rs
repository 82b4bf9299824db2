//! Knowing that a target serves: asked over HTTP, and checked that it is the target who answers.

use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Client;
use tokio::time::{Instant, sleep, timeout_at};

use super::manifest::{Ready, Verify};
use crate::host::procfs;
use crate::sandbox::Watch;

/// There is nothing to await but an answer, so the target is asked again and again. The pause limits how exactly the
/// start-up time is known: 1 ms at first, later 1 %.
fn pause(waited: Duration) -> Duration {
    (waited / 100).clamp(Duration::from_millis(1), Duration::from_millis(10))
}

/// An answer is looked at up to this length.
const BODY_BYTES: usize = 1 << 20;

/// Who answers on a port.
#[derive(Debug, PartialEq, Eq)]
pub enum Server {
    /// A process of the target's group.
    Target,
    /// Somebody else.
    Stranger,
    /// Nobody listens.
    Nobody,
}

/// Asks until the answer is as wanted; the error says what was seen last.
pub async fn answer(at: SocketAddr, ready: &Ready) -> Result<(), String> {
    let client = client()?;
    let begun = Instant::now();
    let deadline = begun + ready.timeout();
    let url = url(at, &ready.path);
    let mut seen = None;
    while let Ok(answered) = timeout_at(deadline, client.get(&url).send()).await {
        match answered.map(|response| response.status().as_u16()) {
            Ok(status) if status == ready.status => return Ok(()),
            Ok(status) => seen = Some(format!("it answers with status {status}")),
            Err(error) if error.is_connect() => seen = None,
            Err(error) => seen = Some(format!("it breaks the connection: {error}")),
        }
        let pause = pause(begun.elapsed());
        if Instant::now() + pause >= deadline {
            break;
        }
        sleep(pause).await;
    }
    let silence = match procfs::listeners(at).len() {
        0 => "it refuses connections",
        _ => "it accepts connections and does not answer",
    };
    let seen = seen.unwrap_or_else(|| silence.to_owned());
    let Ready { path, status, .. } = ready;
    let seconds = ready.timeout().as_secs_f64();
    Err(format!("it did not answer GET {path} with status {status} within {seconds} s: {seen}"))
}

/// What is kept of one answer.
#[derive(Debug)]
pub struct Response {
    /// The header's value; empty if there is none.
    pub content_type: String,
    /// The body, up to 1 MiB of it.
    pub body: Vec<u8>,
}

/// Asks for one answer and checks it; the error says in what it is not as wanted, or that there was none in time.
pub async fn ask(at: SocketAddr, verify: &Verify, limit: Duration) -> Result<Response, String> {
    let Verify { path, status, contains } = verify;
    let ask = async {
        let response = client()?.get(url(at, path)).send().await;
        let mut response = response.map_err(|error| format!("GET {path} failed: {error}"))?;
        let got = response.status().as_u16();
        if got != *status {
            return Err(format!("GET {path} has status {got}, not {status}"));
        }
        let content_type = response
            .headers()
            .get("content-type")
            .map_or_else(String::new, |name| name.to_str().unwrap_or("?").to_owned());
        let body = body(&mut response).await.map_err(|error| format!("the body of GET {path} broke off: {error}"))?;
        let text = contains.as_deref().unwrap_or_default();
        if text.is_empty() || body.windows(text.len()).any(|window| window == text.as_bytes()) {
            return Ok(Response { content_type, body });
        }
        let start: String = String::from_utf8_lossy(&body).chars().take(100).collect();
        Err(format!("the body of GET {path} does not contain {text:?}; it begins with {start:?}"))
    };
    let late = |_| Err(format!("GET {path} had no answer within {} s", limit.as_secs_f64()));
    tokio::time::timeout(limit, ask).await.unwrap_or_else(late)
}

/// Finds out who listens there.
pub fn server_of(at: SocketAddr, group: &Watch) -> Server {
    let mut listeners = procfs::listeners(at);
    if listeners.is_empty() {
        return Server::Nobody;
    }
    for pid in group.processes() {
        for socket in procfs::sockets(pid) {
            listeners.remove(&socket);
        }
    }
    if listeners.is_empty() { Server::Target } else { Server::Stranger }
}

/// A client for programs on this machine: no proxy, no redirects, and no connection kept open that the target would
/// have to wait for at its end.
pub fn client() -> Result<Client, String> {
    // The HTTP library wants to know its cryptography even where none is used. Another part of the program may have
    // said so before, which is as good. Certificates it must not look for: a machine may have none.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let builder = builder.pool_max_idle_per_host(0).tls_certs_only([]);
    builder.build().map_err(|error| format!("no HTTP client: {error}"))
}

fn url(at: SocketAddr, path: &str) -> String {
    format!("http://{at}{path}")
}

async fn body(response: &mut reqwest::Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while body.len() < BODY_BYTES
        && let Some(chunk) = response.chunk().await?
    {
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}
