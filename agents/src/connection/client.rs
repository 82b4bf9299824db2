//! HTTP to a server: JSON in and out, errors as sentences. Used by the daemon and by the commands.

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

use crate::sanitize::plain;

/// How often a request is sent to a server that has its hands full.
const TRIES: u32 = 5;

/// Nobody waits for longer than this by itself.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Speaks to one server with one secret, which its copies share.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: reqwest::Url,
    secret: Option<Arc<RwLock<String>>>,
    tls: Option<Arc<ClientConfig>>,
}

/// Whom a client trusts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// PEM: CAs besides those of this machine.
    pub ca_file: Option<PathBuf>,
    /// Where it does without TLS.
    pub plain: Plain,
}

/// Where plain HTTP will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Within this machine.
    #[default]
    Loopback,
    /// Everywhere: somebody said so.
    Anywhere,
}

/// Why a request was not done.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The server answered, but did not do it.
    #[error("{sentence}")]
    Refused {
        /// HTTP status.
        status: StatusCode,
        /// The server's own words.
        sentence: String,
    },
    /// No answer came.
    #[error("{url} can't be reached: {cause}")]
    Unreachable {
        /// The server.
        url: String,
        /// The innermost cause.
        cause: String,
    },
    /// The secret would be read by whoever stands between.
    #[error(
        "{url} is another machine, and plain HTTP shows secrets and results to whoever stands between; use https, or say \
         --insecure-http if nobody can"
    )]
    Plain {
        /// The server.
        url: String,
    },
    /// The CA's file.
    #[error("the CA's file {file} can't be used: {cause}")]
    CaFile {
        /// Which file.
        file: String,
        /// Why.
        cause: String,
    },
    /// No certificate could be checked here.
    #[error(
        "{url} can't be trusted: this machine has no CA certificates; install them (Debian: ca-certificates), or name \
         a file with your own in SSL_CERT_FILE or by --ca-file"
    )]
    NoTrust {
        /// The server.
        url: String,
    },
    /// The answer makes no sense.
    #[error("{url} is no brewbench server, or of another version: {cause}")]
    Garbled {
        /// The server.
        url: String,
        /// What was wrong.
        cause: String,
    },
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret: this may end up in a log.
        f.debug_struct("Client").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// Makes TLS work for whoever connects; harmless when called again.
pub fn prepare_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

impl Client {
    /// For the server at an address, trusting the CAs of this machine and nothing without TLS but this machine.
    pub fn new(base: &reqwest::Url, secret: Option<String>) -> Result<Self, Fault> {
        Self::trusting(base, secret, &Trust::default())
    }

    /// For the server at an address, trusting whom one is told to.
    pub fn trusting(base: &reqwest::Url, secret: Option<String>, trust: &Trust) -> Result<Self, Fault> {
        prepare_tls();
        if base.scheme() != "https" && trust.plain == Plain::Loopback && !is_here(base) {
            return Err(Fault::Plain { url: base.to_string() });
        }
        let tls = if base.scheme() == "https" { Some(trusted(base, trust.ca_file.as_deref())?) } else { None };
        let builder = reqwest::Client::builder();
        let builder = match &tls {
            Some(tls) => builder.tls_backend_preconfigured(ClientConfig::clone(tls)),
            // Otherwise a machine without any CA certificates could not even speak plain HTTP.
            None => builder.tls_certs_only([]),
        };
        let http = builder
            .connect_timeout(Duration::from_secs(5))
            .user_agent(concat!("brewbench/", env!("CARGO_PKG_VERSION")))
            // Proxies of the environment are for the world outside; a server of this kind stands in the same house.
            .no_proxy()
            .build()
            .map_err(|fault| unreachable(base, &fault))?;
        Ok(Self { http, base: base.clone(), secret: secret.map(|secret| Arc::new(RwLock::new(secret))), tls })
    }

    /// The server's address.
    pub fn base(&self) -> &reqwest::Url {
        &self.base
    }

    /// Whom it trusts, for whoever connects to the same server by other means; none where no TLS is spoken.
    pub fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// The secret that it speaks with now, if it has one.
    pub fn secret(&self) -> Option<String> {
        let secret = self.secret.as_ref()?;
        Some(secret.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Another secret from now on, for all copies; nothing happens where there was none.
    pub fn change_secret(&self, new: &str) {
        if let Some(secret) = &self.secret {
            new.clone_into(&mut secret.write().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// A request to a path such as `api/v1/runs`, still to be sent.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut url = self.base.clone();
        url.set_path(&format!("{}/{path}", self.base.path().trim_end_matches('/')));
        let request = self.http.request(method, url);
        match self.secret() {
            Some(secret) => request.bearer_auth(secret),
            None => request,
        }
    }

    /// Sends a request; an answer that is no success becomes the server's sentence. Where the server has its hands full and
    /// says when to come again, it is sent again.
    pub async fn send(&self, mut request: RequestBuilder) -> Result<Response, Fault> {
        let mut tries = 1;
        let response = loop {
            let again = request.try_clone().filter(|_| tries < TRIES);
            let response = request.send().await.map_err(|fault| unreachable(&self.base, &fault))?;
            match (again, come_again(&response)) {
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
        let text = response.text().await.unwrap_or_default();
        let said = serde_json::from_str::<serde_json::Value>(&text).ok();
        let field = |name: &str| said.as_ref().and_then(|body| body[name].as_str()).map(str::to_owned);
        let sentence = match (field("error"), field("request_id")) {
            // So that it can be found in the server's log.
            (Some(sentence), Some(id)) if status.is_server_error() => Some(format!("{sentence} (request {id})")),
            (sentence, _) => sentence,
        };
        // It is printed as it is, and a server may have been taken over.
        let sentence = sentence.map_or_else(|| format!("{} answered {status}", self.base), |sentence| plain(&sentence));
        Err(Fault::Refused { status, sentence })
    }

    /// Sends a request and reads its JSON answer.
    pub async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Fault> {
        let response = self.send(request).await?;
        response.json().await.map_err(|fault| Fault::Garbled { url: self.base.to_string(), cause: innermost(&fault) })
    }

    /// Reads something.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Fault> {
        self.json(self.request(Method::GET, path)).await
    }

    /// Posts something and reads the answer.
    pub async fn post<T: DeserializeOwned>(&self, path: &str, body: &(impl Serialize + Sync)) -> Result<T, Fault> {
        self.json(self.request(Method::POST, path).json(body)).await
    }

    /// Deletes something.
    pub async fn delete(&self, path: &str) -> Result<(), Fault> {
        self.send(self.request(Method::DELETE, path)).await.map(drop)
    }
}

/// When to ask again, where the server did nothing because others kept it busy.
fn come_again(response: &Response) -> Option<Duration> {
    if response.status() != StatusCode::SERVICE_UNAVAILABLE {
        return None;
    }
    let wait = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_secs(wait)).filter(|wait| *wait <= LONGEST_WAIT)
}

/// Whether an address is on this machine, by what it says.
fn is_here(base: &reqwest::Url) -> bool {
    let host = base.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    address.map_or_else(|_| host == "localhost" || host.ends_with(".localhost"), |ip| ip.to_canonical().is_loopback())
}

/// Trusts the CAs of this machine, or those in the file that `SSL_CERT_FILE` names, and those in a file that somebody
/// named besides: a team's own may be in any of them.
fn trusted(base: &reqwest::Url, ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = ca_file {
        add_all(&mut roots, file).map_err(|cause| Fault::CaFile { file: file.display().to_string(), cause })?;
    }
    // Of the many on a machine one or the other may be of a kind that nobody reads any more.
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
    if roots.is_empty() { Err("there is no certificate in it".to_owned()) } else { Ok(()) }
}

/// What went wrong, with the way out where the other side showed a certificate of a CA that is not known here.
pub(crate) fn with_way_out(cause: String) -> String {
    // The latter where the CA is another one of the same name.
    if cause.contains("UnknownIssuer") || cause.contains("BadSignature") {
        format!("{cause}; if its CA is your own, name the CA's file in SSL_CERT_FILE or by --ca-file")
    } else {
        cause
    }
}

fn unreachable(base: &reqwest::Url, fault: &reqwest::Error) -> Fault {
    Fault::Unreachable { url: base.to_string(), cause: with_way_out(innermost(fault)) }
}

/// reqwest wraps what really happened in several layers of "error sending request".
fn innermost(fault: &dyn std::error::Error) -> String {
    let mut fault = fault;
    while let Some(source) = fault.source() {
        fault = source;
    }
    fault.to_string()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn refused(url: &str, trust: &Trust) -> Option<String> {
        let url = url.parse().expect("an address");
        Client::trusting(&url, None, trust).err().map(|fault| fault.to_string())
    }

    #[test]
    fn plain_http_is_for_this_machine_unless_somebody_says_otherwise() {
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
            let told = refused(elsewhere, &careful).expect("refused");
            assert!(told.starts_with(elsewhere) && told.contains("--insecure-http"), "{told}");
            assert_eq!(refused(elsewhere, &Trust { plain: Plain::Anywhere, ..Trust::default() }), None);
        }
    }

    /// A server that answers one request after the other like this; gives how many there were.
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
    async fn a_server_that_has_its_hands_full_is_asked_again_when_it_says() {
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
        client.post::<serde_json::Value>("x", &1).await.expect_err("not for ever");
        assert_eq!(serving.await.expect("no panic"), 5);
    }

    #[test]
    fn a_cas_file_that_is_none_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let trust = Trust { ca_file: Some(file.path().to_owned()), ..Trust::default() };
        let told = refused("https://bench.example.com/", &trust).expect("refused");
        assert!(told.contains(&file.path().display().to_string()) && told.contains("no certificate in it"), "{told}");
    }
}
