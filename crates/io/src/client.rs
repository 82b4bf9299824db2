//! HTTP client for the server: JSON in and out, errors as sentences. Used by the daemon and by the commands.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response, StatusCode, header};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use serde::Serialize;
use serde::de::DeserializeOwned;

use brewbench_wire::sanitize::plain;

/// Bytes of an error response that are read.
const MAX_ERROR: usize = 64 << 10;

/// Attempts per request while the server is overloaded.
const TRIES: u32 = 5;

/// Longest `Retry-After` that is honoured.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// Talks to one server with one secret, shared by its clones.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: reqwest::Url,
    secret: Option<Arc<RwLock<String>>>,
    tls: Option<Arc<ClientConfig>>,
}

/// What a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM file with CAs in addition to those of this machine.
    pub ca_file: Option<PathBuf>,
    /// Where plain HTTP is allowed.
    pub plain: Plain,
}

/// Where plain HTTP is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Within this machine.
    #[default]
    Loopback,
    /// Everywhere, as configured by the user.
    Anywhere,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The server answered with an error.
    #[error("{sentence}")]
    Refused {
        /// HTTP status.
        status: StatusCode,
        /// The server's error message.
        sentence: String,
    },
    /// No response.
    #[error("{url} can't be reached: {cause}")]
    Unreachable {
        /// The server.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// Plain HTTP would expose the secret to the network.
    #[error(
        "{url} is another machine, and plain HTTP exposes secrets and results to the network; use https, or allow \
         plain HTTP with --insecure-http"
    )]
    Plain {
        /// The server.
        url: String,
    },
    /// The CA file can't be used.
    #[error("CA file {file} can't be used: {cause}")]
    CaFile {
        /// Path of the file.
        file: String,
        /// The underlying error.
        cause: String,
    },
    /// No certificate can be verified on this machine.
    #[error(
        "{url} can't be trusted: this machine has no CA certificates; install them (Debian: ca-certificates), or name \
         your own CA file in SSL_CERT_FILE or with --ca-file"
    )]
    NoTrust {
        /// The server.
        url: String,
    },
    /// The response can't be parsed.
    #[error("{url} is not a brewbench server, or runs another version: {cause}")]
    Garbled {
        /// The server.
        url: String,
        /// The underlying error.
        cause: String,
    },
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The secret is left out because this may be logged.
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// Installs the TLS provider of this process; harmless when called again.
pub fn prepare_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Client {
    /// Creates a client that trusts the CAs of this machine and allows plain HTTP on loopback only.
    pub fn new(base: &reqwest::Url, secret: Option<String>) -> Result<Self, Fault> {
        Self::with_trust(base, secret, &Trust::default())
    }

    /// Creates a client with the given trust.
    pub fn with_trust(base: &reqwest::Url, secret: Option<String>, trust: &Trust) -> Result<Self, Fault> {
        prepare_tls();
        if base.scheme() != "https" && trust.plain == Plain::Loopback && !is_here(base) {
            return Err(Fault::Plain { url: base.to_string() });
        }
        let tls = if base.scheme() == "https" { Some(trusted(base, trust.ca_file.as_deref())?) } else { None };
        let builder = reqwest::Client::builder();
        let builder = match &tls {
            Some(tls) => builder.tls_backend_preconfigured(ClientConfig::clone(tls)),
            // Otherwise a machine without CA certificates could not use plain HTTP either.
            None => builder.tls_certs_only([]),
        };
        let http = builder
            .connect_timeout(Duration::from_secs(5))
            .user_agent(concat!("brewbench/", env!("CARGO_PKG_VERSION")))
            // Proxies in the environment are for the internet; this server is usually on the local network.
            .no_proxy()
            .build()
            .map_err(|fault| unreachable(base, &fault))?;
        Ok(Self { http, base: base.clone(), secret: secret.map(|secret| Arc::new(RwLock::new(secret))), tls })
    }

    /// The server's address.
    pub fn base(&self) -> &reqwest::Url {
        &self.base
    }

    /// Returns the TLS configuration, for other connections to the same server; `None` with plain HTTP.
    pub fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// Returns the current secret, if there is one.
    pub fn secret(&self) -> Option<String> {
        let secret = self.secret.as_ref()?;
        Some(secret.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Replaces the secret of this client and its clones; does nothing if there was none.
    pub fn change_secret(&self, new: &str) {
        if let Some(secret) = &self.secret {
            new.clone_into(&mut secret.write().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Builds a request to a path such as `api/v1/runs`.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        let request = self.http.request(method, url);
        match self.secret() {
            Some(secret) => request.bearer_auth(secret),
            None => request,
        }
    }

    /// Sends a request and turns an error response into the server's message. Retries while an overloaded server sends
    /// `Retry-After`.
    pub async fn send(&self, mut request: RequestBuilder) -> Result<Response, Fault> {
        let mut tries = 1;
        let response = loop {
            let again = request.try_clone().filter(|_| tries < TRIES);
            let response = request.send().await.map_err(|fault| unreachable(&self.base, &fault))?;
            match (again, retry_after(&response)) {
                (Some(again), Some(wait)) => {
                    tokio::time::sleep(wait).await;
                    request = again;
                    tries += 1;
                }
                _ => break response,
            }
        };
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = first_bytes(response).await;
        let body = serde_json::from_str::<serde_json::Value>(&text).ok();
        let field = |name: &str| body.as_ref().and_then(|body| body[name].as_str()).map(str::to_owned);
        let sentence = match (field("error"), field("request_id")) {
            // The id finds the request in the server's log.
            (Some(sentence), Some(id)) if status.is_server_error() => Some(format!("{sentence} (request {id})")),
            (sentence, _) => sentence,
        };
        // The message is printed as it is, and the server may be compromised.
        let sentence = sentence.map_or_else(|| format!("{} returned {status}", self.base), |sentence| plain(&sentence));
        Err(Fault::Refused { status, sentence })
    }

    /// Sends a request and parses its JSON response.
    pub async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Fault> {
        let response = self.send(request).await?;
        response.json().await.map_err(|fault| Fault::Garbled { url: self.base.to_string(), cause: innermost(&fault) })
    }

    /// Sends `GET` and parses the response.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        self.json(self.request(Method::GET, path)).await
    }

    /// Sends `POST` with a JSON body and parses the response.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<T, Fault> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    /// Sends `DELETE`.
    pub async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.send(self.request(Method::DELETE, path)).await.map(drop)
    }
}

/// Returns when to retry a request that an overloaded server rejected without processing it.
fn retry_after(response: &Response) -> Option<Duration> {
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let wait = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(wait)).filter(|wait| *wait <= MAX_WAIT)
}

/// Whether an address names this machine, without resolving it.
fn is_here(base: &reqwest::Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |ip| ip.to_canonical().is_loopback())
}

/// Trusts the CAs of this machine, or those in the file named by `SSL_CERT_FILE`.
pub fn system_trust(base: &reqwest::Url) -> Result<ClientConfig, Fault> {
    trusted(base, None).map(Arc::unwrap_or_clone)
}

/// Trusts the CAs of this machine, or those in the file named by `SSL_CERT_FILE`, and those in the given file: a team's
/// own CA may be in any of them.
fn trusted(base: &reqwest::Url, ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        add_all(&mut roots, file).map_err(|cause| Fault::CaFile { file: file.display().to_string(), cause })?;
    }
    // Some of the many CAs on a machine may be in a format that rustls does not support.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Fault::NoTrust { url: base.to_string() });
    }
    Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
}

fn add_all(roots: &mut RootCertStore, file: &Path) -> Result<(), String> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(|fault| fault.to_string())?;
    for certificate in certificates {
        let certificate = certificate.map_err(|fault| fault.to_string())?;
        roots.add(certificate).map_err(|fault| fault.to_string())?;
    }
    if roots.is_empty() { Err("it contains no certificate".to_owned()) } else { Ok(()) }
}

/// Adds a hint to an error caused by a certificate of an unknown CA.
pub fn with_ca_hint(cause: String) -> String {
    // `BadSignature` occurs if the CA has the name of a known one.
    if cause.contains("UnknownIssuer") || cause.contains("BadSignature") {
        format!("{cause}; if the server uses your own CA, name its file in SSL_CERT_FILE or with --ca-file")
    } else {
        cause
    }
}

fn unreachable(base: &reqwest::Url, fault: &reqwest::Error) -> Fault {
    Fault::Unreachable { url: base.to_string(), cause: with_ca_hint(innermost(fault)) }
}

/// Returns the root cause: reqwest wraps it in several layers of "error sending request".
pub fn innermost(fault: &dyn std::error::Error) -> String {
    let mut fault = fault;
    while let Some(source) = fault.source() {
        fault = source;
    }
    fault.to_string()
}

/// Returns the begin of a response's text. A sentence is short, whatever a server sends.
async fn first_bytes(mut response: Response) -> String {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR - text.len())]);
        if text.len() == MAX_ERROR {
            break;
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn refused(url: &str, trust: &Trust) -> Option<String> {
        let url = url.parse().expect("an address");
        Client::with_trust(&url, None, trust).err().map(|fault| fault.to_string())
    }

    #[test]
    fn plain_http_is_limited_to_this_machine_unless_allowed() {
        let careful = Trust::default();
        for here in [
            "http://127.0.0.1:8377/",
            "http://127.8.8.8/",
            "http://[::1]:1/",
            "http://localhost/",
            "http://b.localhost/",
        ] {
            assert_eq!(refused(here, &careful), None, "{here}");
        }
        let elsewhere = [
            "http://bench.example.com/",
            "http://192.0.2.1/",
            "http://[2001:db8::1]/",
            "http://localhost.example.com/",
        ];
        for elsewhere in elsewhere {
            let error = refused(elsewhere, &careful).expect("refused");
            assert!(error.starts_with(elsewhere) && error.contains("--insecure-http"), "{error}");
            assert_eq!(refused(elsewhere, &Trust { plain: Plain::Anywhere, ..Trust::default() }), None);
        }
    }

    /// Starts a server that sends these responses one after the other; the task returns how many it sent.
    async fn serves(answers: Vec<String>) -> (reqwest::Url, tokio::task::JoinHandle<usize>) {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let serving = tokio::spawn(async move {
            for answer in &answers {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut read = [0; 4096];
                let _ = stream.read(&mut read).await;
                stream.write_all(answer.as_bytes()).await.expect("sent");
            }
            answers.len()
        });
        (format!("http://127.0.0.1:{port}/").parse().expect("an address"), serving)
    }

    fn answer(head: &str) -> String {
        format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}")
    }

    #[tokio::test]
    async fn an_overloaded_server_is_retried_when_it_asks_for_it() {
        let busy = || answer("503 Service Unavailable\r\nretry-after: 0");
        let (url, serving) = serves(vec![busy(), busy(), answer("200 OK")]).await;
        let client = Client::new(&url, None).expect("a client");
        client.post::<serde_json::Value>("x", &1).await.expect("done in the end");
        assert_eq!(serving.await.expect("no panic"), 3);

        for refusal in
            ["503 Service Unavailable", "503 Service Unavailable\r\nretry-after: 3600", "500 Oh\r\nretry-after: 0"]
        {
            let (url, serving) = serves(vec![answer(refusal)]).await;
            let client = Client::new(&url, None).expect("a client");
            client.post::<serde_json::Value>("x", &1).await.expect_err("refused at once");
            assert_eq!(serving.await.expect("no panic"), 1, "{refusal}");
        }

        let (url, serving) = serves(std::iter::repeat_with(busy).take(5).collect()).await;
        let client = Client::new(&url, None).expect("a client");
        client.post::<serde_json::Value>("x", &1).await.expect_err("an error in the end");
        assert_eq!(serving.await.expect("no panic"), 5);
    }

    #[test]
    fn the_error_names_a_ca_file_without_certificates() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let trust = Trust { ca_file: Some(file.path().to_owned()), ..Trust::default() };
        let error = refused("https://bench.example.com/", &trust).expect("refused");
        assert!(error.contains(&file.path().display().to_string()) && error.contains("no certificate"), "{error}");
    }
}
