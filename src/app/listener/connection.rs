//! Serves one connection from its first byte to its end.

use std::{convert::Infallible, io, net::SocketAddr, pin::pin, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::ConnectInfo,
    http::{Request, StatusCode},
};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::{
    Listener, Slot, Timeouts,
    body::{self, ResponseBody},
    pace::Stage,
    stream::Timed,
};
use crate::web::request::Peer;

/// The maximum size of a request head; a URL with a thousand run ids fits. Each connection may need such a buffer.
const MAX_HEAD: usize = 128 * 1024;

/// State shared by the requests of one connection.
#[derive(Clone)]
struct Connection {
    app: Router,
    peer: SocketAddr,
    slot: Arc<Slot>,
    stage: Stage,
    timeouts: Timeouts,
}

/// Performs the TLS handshake, if any, and serves requests until the connection ends.
pub async fn serve<T>(
    socket: T,
    peer: SocketAddr,
    slot: Arc<Slot>,
    listener: Listener,
    end: CancellationToken,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Listener { app, timeouts, tls, .. } = listener;
    let stage = Stage::new(timeouts.head.max(timeouts.handshake));
    let stream = Timed::new(socket, stage.clone(), timeouts, Arc::clone(&slot));
    let connection = Connection { app, peer, slot, stage, timeouts };
    let Some(certificate) = tls else { return connection.serve_requests(stream, end).await };
    let handshake = timeout(timeouts.handshake, certificate.acceptor().accept(stream));
    let stream = tokio::select! {
        () = end.cancelled() => return Ok(()),
        done = handshake => done??,
    };
    connection.serve_requests(stream, end).await
}

impl Connection {
    async fn serve_requests<T>(self, stream: T, end: CancellationToken) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let idle = self.timeouts.idle;
        self.stage.restart(self.timeouts.head);
        let service = service_fn(move |request| self.clone().respond(request));
        let mut http = http1::Builder::new();
        // hyper starts its header timeout after the previous response, so it serves as the idle timeout.
        http.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(MAX_HEAD);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
        tokio::select! {
            done = connection.as_mut() => return done.map_err(io::Error::other),
            () = end.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(io::Error::other)
    }

    async fn respond(self, request: Request<Incoming>) -> Result<axum::http::Response<ResponseBody>, Infallible> {
        let Self { app, peer, slot, stage, timeouts } = self;
        let exchange = stage.begin();
        let mut request = request.map(|body| Body::new(body::Timed::new(body, timeouts.progress)));
        request.extensions_mut().insert(ConnectInfo(Peer(peer)));
        request.extensions_mut().insert(slot);
        let response = app.oneshot(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            stage.upgrade();
        }
        Ok(response.map(|body| ResponseBody::new(body, exchange)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::{
        body::Bytes,
        extract::rejection::BytesRejection,
        response::{Sse, sse::Event},
        routing::{get, post},
    };
    use futures_util::{StreamExt, stream};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
        task::JoinHandle,
        time::{Instant, sleep},
    };

    use super::*;
    use crate::app::{
        listener::{Caps, caps::ConnectionLimits, is_stalled},
        networks::Networks,
    };

    const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

    async fn length(body: Result<Bytes, BytesRejection>) -> String {
        match body {
            Ok(body) => body.len().to_string(),
            Err(fault) if is_stalled(&fault) => "stalled".to_owned(),
            Err(fault) => fault.to_string(),
        }
    }

    fn app() -> Router {
        let slow = async || {
            sleep(Duration::from_mins(5)).await;
            "at last"
        };
        let beats = async || {
            Sse::new(stream::iter(0..20).then(async |n| {
                sleep(Duration::from_secs(15)).await;
                Ok::<_, Infallible>(Event::default().data(n.to_string()))
            }))
        };
        let upgraded = async |request: axum::extract::Request| {
            let upgrade = hyper::upgrade::on(request);
            tokio::spawn(async move {
                let mut io = TokioIo::new(upgrade.await.expect("an upgrade"));
                let _ = io.read_u8().await;
                let _ = io.write_all(b"still here").await;
            });
            (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "x")])
        };
        Router::new()
            .route("/hello", get(async || "hello"))
            .route("/length", post(length))
            .route("/large", get(async || vec![b'x'; 1 << 20]))
            .route("/slow", get(slow))
            .route("/beats", get(beats))
            .route("/upgraded", get(upgraded))
    }

    /// The client side of a connection, in virtual time.
    struct Client {
        io: DuplexStream,
        caps: Caps,
        begun: Instant,
        served: JoinHandle<io::Result<()>>,
    }

    impl Client {
        fn new() -> Self {
            let (io, socket) = duplex(4 * 1024);
            let caps = Caps::new(ConnectionLimits::from_total(64), Networks::default());
            let peer = SocketAddr::from(([192, 0, 2, 1], 9));
            let slot = caps.admit(peer.ip()).expect("a slot");
            let listener = Listener { app: app(), caps: caps.clone(), timeouts: Timeouts::default(), tls: None };
            let served = tokio::spawn(serve(socket, peer, slot, listener, CancellationToken::new()));
            Self { io, caps, begun: Instant::now(), served }
        }

        async fn send(&mut self, bytes: &[u8]) {
            self.io.write_all(bytes).await.expect("an open connection");
        }

        /// Returns what the server sends within this many seconds.
        async fn read_for(&mut self, seconds: u64) -> String {
            let mut read = Vec::new();
            let _ = timeout(Duration::from_secs(seconds), self.io.read_to_end(&mut read)).await;
            String::from_utf8_lossy(&read).into_owned()
        }

        /// Sends these bytes repeatedly until the connection is closed.
        async fn drip(&mut self, bytes: &[u8], every: Duration) {
            while self.io.write_all(bytes).await.is_ok() {
                sleep(every).await;
            }
        }

        /// Waits until the connection is closed and its slot released; returns the seconds since its start.
        async fn closed_after(self) -> u64 {
            let _ = self.served.await.expect("no panic");
            assert_eq!(self.caps.count(), 0);
            self.begun.elapsed().as_secs()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn incomplete_heads_close_the_connection_after_ten_seconds() {
        let silent = Client::new();
        assert_eq!(silent.closed_after().await, 10);
        let mut slow = Client::new();
        slow.send(b"GET /hello HTTP/1.1\r\n").await;
        slow.drip(b"a", Duration::from_millis(300)).await;
        assert_eq!(slow.closed_after().await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_have_more_time_until_the_next_request_begins() {
        let mut idle = Client::new();
        idle.send(REQUEST).await;
        assert!(idle.read_for(70).await.ends_with("hello"));
        assert!(!idle.served.is_finished());
        idle.send(REQUEST).await;
        assert!(idle.read_for(1).await.ends_with("hello"), "the connection was still open");
        assert_eq!(idle.closed_after().await, 70 + 75);

        let mut slow = Client::new();
        slow.send(REQUEST).await;
        slow.read_for(30).await;
        slow.drip(b"G", Duration::from_millis(300)).await;
        assert_eq!(slow.closed_after().await, 30 + 10);
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_bodies_close_the_connection() {
        let mut stalled = Client::new();
        stalled.send(b"POST /length HTTP/1.1\r\ncontent-length: 99\r\n\r\nx").await;
        assert!(stalled.read_for(99).await.ends_with("stalled"));
        assert_eq!(stalled.closed_after().await, 30);

        let mut dripping = Client::new();
        dripping.send(b"POST /length HTTP/1.1\r\ncontent-length: 9999\r\n\r\n").await;
        dripping.drip(b"x", Duration::from_millis(300)).await;
        assert_eq!(dripping.closed_after().await, 30);
    }

    #[tokio::test(start_paused = true)]
    async fn a_large_body_over_a_slow_line_arrives_completely() {
        let mut slow = Client::new();
        slow.send(b"POST /length HTTP/1.1\r\ncontent-length: 81920\r\n\r\n").await;
        for _ in 0..20 {
            slow.send(&[b'x'; 4096]).await;
            sleep(Duration::from_secs(20)).await;
        }
        assert!(slow.read_for(1).await.ends_with("81920"));
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_do_not_read_responses_are_disconnected() {
        let mut stuck = Client::new();
        stuck.send(b"GET /large HTTP/1.1\r\n\r\n").await;
        assert_eq!(stuck.closed_after().await, 30);
        let mut slow = Client::new();
        slow.send(b"GET /large HTTP/1.1\r\n\r\n").await;
        let mut some = [0; 1024];
        for _ in 0..100 {
            sleep(Duration::from_secs(2)).await;
            slow.io.read_exact(&mut some).await.expect("the response continues");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn clients_may_be_silent_while_they_wait_for_a_response() {
        let mut waiting = Client::new();
        waiting.send(b"GET /slow HTTP/1.1\r\n\r\n").await;
        assert!(waiting.read_for(301).await.ends_with("at last"));
        let mut following = Client::new();
        following.send(b"GET /beats HTTP/1.1\r\n\r\n").await;
        assert!(following.read_for(301).await.contains("data: 19"));
    }

    #[tokio::test(start_paused = true)]
    async fn upgraded_connections_keep_their_slot_and_have_no_timeouts() {
        let mut upgraded = Client::new();
        upgraded.send(b"GET /upgraded HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await;
        assert!(upgraded.read_for(600).await.starts_with("HTTP/1.1 101"));
        assert_eq!(upgraded.caps.count(), 1);
        upgraded.send(b"x").await;
        assert_eq!(upgraded.read_for(600).await, "still here");
        assert_eq!(upgraded.caps.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn shutdown_waits_for_open_requests_only() {
        for (request, ends_after) in [(&b"GET /slow HTTP/1.1\r\n\r\n"[..], 300), (REQUEST, 1)] {
            let (mut io, socket) = duplex(4 * 1024);
            let caps = Caps::new(ConnectionLimits::from_total(64), Networks::default());
            let peer = SocketAddr::from(([192, 0, 2, 1], 9));
            let slot = caps.admit(peer.ip()).expect("a slot");
            let listener = Listener { app: app(), caps, timeouts: Timeouts::default(), tls: None };
            let (end, begun) = (CancellationToken::new(), Instant::now());
            let served = tokio::spawn(serve(socket, peer, slot, listener, end.clone()));
            io.write_all(request).await.expect("an open connection");
            sleep(Duration::from_secs(1)).await;
            end.cancel();
            served.await.expect("no panic").expect("a clean shutdown");
            assert_eq!(begun.elapsed().as_secs(), ends_after);
        }
    }
}
