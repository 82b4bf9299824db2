//! HTTP/2, with and without TLS.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use brewbench_load::plan::{Body, Expect, HttpVersion, Plan, Request, Tls};
use brewbench_load::tally::Failure;
use brewbench_wire::load::Load;
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

use super::{closed, open, run};

/// What a server does after this number of responses on a connection.
#[derive(Clone, Copy)]
enum Leaves {
    Never,
    /// GOAWAY, and responses to what was accepted.
    Gracefully(u64),
    /// The connection breaks.
    Abruptly(u64),
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    body: AtomicU64,
}

struct Server {
    port: u16,
    ca: Option<String>,
    counts: Arc<Counts>,
}

impl Server {
    fn start(leaves: Leaves, with_tls: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("an option");
        let port = listener.local_addr().expect("an address").port();
        let (ca, acceptor) = if with_tls {
            let (ca, config) = super::tls::certificate(&[b"h2", b"http/1.1"]);
            (Some(ca), Some(TlsAcceptor::from(config)))
        } else {
            (None, None)
        };
        let server = Self { port, ca, counts: Arc::default() };
        let counts = Arc::clone(&server.counts);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                while let Ok((stream, _)) = listener.accept().await {
                    stream.set_nodelay(true).expect("an option");
                    let (acceptor, counts) = (acceptor.clone(), Arc::clone(&counts));
                    tokio::spawn(async move {
                        match acceptor {
                            None => serve(stream, leaves, counts).await,
                            Some(acceptor) => serve(acceptor.accept(stream).await.ok()?, leaves, counts).await,
                        }
                    });
                }
            });
        });
        server
    }

    fn plan(&self, load: Load) -> Plan {
        let scheme = if self.ca.is_some() { "https" } else { "http" };
        let mut plan = Plan::get(&format!("{scheme}://localhost:{}", self.port), "/", load);
        plan.connect_to = Some(([127, 0, 0, 1], self.port).into());
        plan.threads = Some(1);
        plan.list.http = if self.ca.is_some() { HttpVersion::Auto } else { HttpVersion::Two };
        plan.list.tls = Tls { ca: self.ca.clone(), ..Tls::default() };
        if matches!(plan.load, Load::Closed(_)) {
            plan.list.think_time_ms = 2;
        }
        plan
    }

    fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(stream: S, leaves: Leaves, counts: Arc<Counts>) -> Option<()> {
    let mut connection = h2::server::handshake(stream).await.ok()?;
    counts.connections.fetch_add(1, Ordering::SeqCst);
    let mut served = 0;
    while let Some(request) = connection.accept().await {
        let (mut request, mut respond) = request.ok()?;
        if matches!(leaves, Leaves::Abruptly(most) if served == most) {
            return None;
        }
        counts.requests.fetch_add(1, Ordering::SeqCst);
        served += 1;
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Some(Ok(bytes)) = request.body_mut().data().await {
                counts.body.fetch_add(bytes.len() as u64, Ordering::SeqCst);
                let _ = request.body_mut().flow_control().release_capacity(bytes.len());
            }
            let mut stream = respond.send_response(http::Response::new(()), false).ok()?;
            stream.send_data(Bytes::from_static(b"hello, world"), true).ok()
        });
        if matches!(leaves, Leaves::Gracefully(most) if served == most) {
            connection.graceful_shutdown();
        }
    }
    Some(())
}

#[test]
fn what_the_server_counts_is_what_the_generator_reports() {
    let server = Server::start(Leaves::Never, false);
    let mut plan = server.plan(closed(3));
    plan.list.requests = vec![Request {
        method: "POST".to_owned(),
        body: Body(vec![b'x'; 100_000]),
        expect: Expect { length: Some(12), contains: Some("world".to_owned()), ..Expect::default() },
        ..Request::get("/")
    }];
    let (_, summary) = run(&plan);
    assert_eq!((summary.failed, summary.requests), (0, server.requests()), "{summary:?}");
    assert_eq!((summary.opened, server.counts.connections.load(Ordering::SeqCst)), (3, 3));
    assert_eq!(server.counts.body.load(Ordering::SeqCst), summary.requests * 100_000);
    assert!(summary.bytes_out > summary.requests * 100_000 && summary.bytes_in > summary.requests * 12);
    assert_eq!((summary.http.as_str(), summary.contents_checked), ("2", summary.requests.div_ceil(16)));
}

#[test]
fn a_rate_is_exact_and_tls_chooses_http_2() {
    let server = Server::start(Leaves::Never, true);
    let (_, summary) = run(&server.plan(open(200, 1, 10)));
    assert_eq!((summary.requests + summary.dropped, summary.failed), (200, 0), "{summary:?}");
    assert_eq!(summary.http, "2");
    assert_eq!((summary.requests, summary.scheduling.histogram.total()), (server.requests(), server.requests()));
}

#[test]
fn goaway_costs_connections_but_no_errors() {
    let server = Server::start(Leaves::Gracefully(5), false);
    let (_, summary) = run(&server.plan(closed(2)));
    assert_eq!((summary.failed, summary.requests), (0, server.requests()), "{summary:?}");
    assert!(summary.requests > 10 && summary.opened >= summary.requests / 5, "{summary:?}");
}

#[test]
fn a_broken_connection_is_a_read_error_if_the_request_can_not_be_repeated() {
    let server = Server::start(Leaves::Abruptly(3), false);
    let mut plan = server.plan(closed(2));
    plan.list.requests[0].method = "POST".to_owned();
    let (_, summary) = run(&plan);
    assert_eq!(summary.requests - summary.failed, server.requests(), "{summary:?}");
    assert!(summary.failed > 0 && summary.errors_of(Failure::Read) == summary.failed, "{:?}", summary.errors);
    plan.list.requests[0].method = "GET".to_owned();
    let (_, summary) = run(&plan);
    assert!(summary.failed == 0 && summary.resent > 0, "{summary:?}");
}
