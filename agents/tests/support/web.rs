//! A server that already runs, whose answers a test decides.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

/// Answers until dropped: `/` and `/api/` with a greeting, `/moved` with a redirect, `/metrics` with those of a process
/// that uses 10 ms of CPU per request.
pub struct Web {
    pub at: SocketAddr,
    state: Arc<State>,
    accepting: AbortHandle,
}

struct State {
    requests: AtomicU64,
    /// How often it was restarted.
    restarts: AtomicU64,
    /// Where `/moved` leads.
    moved_to: String,
}

impl Web {
    /// Serves HTTP on an address.
    pub async fn start(address: &str) -> Self {
        Self::start_with(address, None, "/").await
    }

    /// Serves HTTP on loopback; `/moved` leads to another place.
    pub async fn moved_to(place: &str) -> Self {
        Self::start_with("127.0.0.1:0", None, place).await
    }

    /// Serves HTTPS with a certificate that nobody trusts.
    pub async fn untrusted() -> Self {
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = signed.signing_key.serialize_der().try_into().expect("a key");
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![signed.cert.into()], key).expect("a configuration");
        Self::start_with("127.0.0.1:0", Some(TlsAcceptor::from(Arc::new(config))), "/").await
    }

    async fn start_with(address: &str, tls: Option<TlsAcceptor>, moved_to: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let (requests, restarts, moved_to) = (AtomicU64::new(0), AtomicU64::new(0), moved_to.to_owned());
        let state = Arc::new(State { requests, restarts, moved_to });
        let accepting: JoinHandle<()> = tokio::spawn(accept(listener, tls, Arc::clone(&state)));
        Self { at, state, accepting: accepting.abort_handle() }
    }

    /// Pretends that the server was restarted.
    pub fn restart(&self) {
        self.state.restarts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how many requests it has answered.
    pub fn requests(&self) -> u64 {
        self.state.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (tls, state) = (tls.clone(), Arc::clone(&state));
        tokio::spawn(async move {
            match tls {
                None => answer_all(stream, state).await,
                Some(tls) => {
                    if let Ok(stream) = tls.accept(stream).await {
                        answer_all(stream, state).await;
                    }
                }
            }
        });
    }
}

async fn answer_all(stream: impl AsyncRead + AsyncWrite + Unpin, state: Arc<State>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response = answer(request.uri().path(), &state);
        async move { Ok::<_, hyper::Error>(response) }
    });
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
}

fn answer(path: &str, state: &State) -> Response<Full<Bytes>> {
    let requests = state.requests.fetch_add(1, Ordering::Relaxed);
    let (status, body) = match path {
        "/" | "/api/" => (StatusCode::OK, "hello".to_owned()),
        "/moved" => (StatusCode::FOUND, String::new()),
        "/metrics" => {
            let (cpu_s, started) =
                (1_000.0 + requests as f64 / 100.0, 1_760_000_000 + 60 * state.restarts.load(Ordering::Relaxed));
            let text = format!(
                "process_cpu_seconds_total {cpu_s}\nprocess_resident_memory_bytes 5e7\nprocess_start_time_seconds {started}\n"
            );
            (StatusCode::OK, text)
        }
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let builder = Response::builder().status(status);
    let builder = if status == StatusCode::FOUND { builder.header("location", &state.moved_to) } else { builder };
    builder.body(Full::new(Bytes::from(body))).expect("a response")
}
