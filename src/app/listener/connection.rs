//! One connection from its first byte to its end.

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
    Door, Patience, Place,
    body::{self, Answer},
    pace::Stage,
    stream::Timed,
};
use crate::web::request::Peer;

/// A head with an address that names a thousand runs stays below this; each connection may have such a buffer.
const LARGEST_HEAD: usize = 128 * 1024;

/// What the requests of one connection have in common.
#[derive(Clone)]
struct Conversation {
    app: Router,
    peer: SocketAddr,
    place: Arc<Place>,
    stage: Stage,
    patience: Patience,
}

/// Shakes hands where the server speaks TLS, and answers requests until the connection ends.
pub async fn serve<T>(
    socket: T,
    peer: SocketAddr,
    place: Arc<Place>,
    door: Door,
    end: CancellationToken,
) -> io::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Door { app, patience, tls, .. } = door;
    let stage = Stage::new(patience.head.max(patience.handshake));
    let stream = Timed::new(socket, stage.clone(), patience, Arc::clone(&place));
    let conversation = Conversation { app, peer, place, stage, patience };
    let Some(certificate) = tls else { return conversation.hold(stream, end).await };
    let shaking = timeout(patience.handshake, certificate.acceptor().accept(stream));
    let stream = tokio::select! {
        () = end.cancelled() => return Ok(()),
        shaken = shaking => shaken??,
    };
    conversation.hold(stream, end).await
}

impl Conversation {
    async fn hold<T>(self, stream: T, end: CancellationToken) -> io::Result<()>
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let idle = self.patience.idle;
        self.stage.restart(self.patience.head);
        let service = service_fn(move |request| self.clone().answer(request));
        let mut http = http1::Builder::new();
        // hyper's time for a head begins with the answer before, so it is the time for the next request to come.
        http.timer(TokioTimer::new()).header_read_timeout(idle).max_buf_size(LARGEST_HEAD);
        let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
        tokio::select! {
            done = connection.as_mut() => return done.map_err(io::Error::other),
            () = end.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        connection.await.map_err(io::Error::other)
    }

    async fn answer(self, request: Request<Incoming>) -> Result<axum::http::Response<Answer>, Infallible> {
        let Self { app, peer, place, stage, patience } = self;
        let exchange = stage.begin();
        let mut request = request.map(|body| Body::new(body::Timed::new(body, patience.progress)));
        request.extensions_mut().insert(ConnectInfo(Peer(peer)));
        request.extensions_mut().insert(place);
        let response = app.oneshot(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            stage.upgrade();
        }
        Ok(response.map(|body| Answer::new(body, exchange)))
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
        listener::{Caps, caps::Most, is_stalled},
        networks::Networks,
    };

    const ASKED: &[u8] = b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n";

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

    /// The other side of a connection, at virtual time.
    struct Client {
        io: DuplexStream,
        caps: Caps,
        begun: Instant,
        served: JoinHandle<io::Result<()>>,
    }

    impl Client {
        fn new() -> Self {
            let (io, socket) = duplex(4 * 1024);
            let caps = Caps::new(Most::of(64), Networks::default());
            let peer = SocketAddr::from(([192, 0, 2, 1], 9));
            let place = caps.admit(peer.ip()).expect("a place");
            let door = Door { app: app(), caps: caps.clone(), patience: Patience::default(), tls: None };
            let served = tokio::spawn(serve(socket, peer, place, door, CancellationToken::new()));
            Self { io, caps, begun: Instant::now(), served }
        }

        async fn send(&mut self, bytes: &[u8]) {
            self.io.write_all(bytes).await.expect("an open connection");
        }

        /// What is sent within so many seconds.
        async fn read_for(&mut self, seconds: u64) -> String {
            let mut read = Vec::new();
            let _ = timeout(Duration::from_secs(seconds), self.io.read_to_end(&mut read)).await;
            String::from_utf8_lossy(&read).into_owned()
        }

        /// Sends these bytes again and again until nobody takes them any more.
        async fn drip(&mut self, bytes: &[u8], every: Duration) {
            while self.io.write_all(bytes).await.is_ok() {
                sleep(every).await;
            }
        }

        /// After how many seconds it was closed, and its place given back.
        async fn closed_after(self) -> u64 {
            let _ = self.served.await.expect("no panic");
            assert_eq!(self.caps.count(), 0);
            self.begun.elapsed().as_secs()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_says_nothing_or_says_it_byte_by_byte_is_gone_after_ten_seconds() {
        let silent = Client::new();
        assert_eq!(silent.closed_after().await, 10);
        let mut slow = Client::new();
        slow.send(b"GET /hello HTTP/1.1\r\n").await;
        slow.drip(b"a", Duration::from_millis(300)).await;
        assert_eq!(slow.closed_after().await, 10);
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_there_is_more_time_until_the_next_begins() {
        let mut idle = Client::new();
        idle.send(ASKED).await;
        assert!(idle.read_for(70).await.ends_with("hello"));
        assert!(!idle.served.is_finished());
        idle.send(ASKED).await;
        assert!(idle.read_for(1).await.ends_with("hello"), "it was still there");
        assert_eq!(idle.closed_after().await, 70 + 75);

        let mut slow = Client::new();
        slow.send(ASKED).await;
        slow.read_for(30).await;
        slow.drip(b"G", Duration::from_millis(300)).await;
        assert_eq!(slow.closed_after().await, 30 + 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_makes_no_progress_ends() {
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
    async fn a_large_body_over_a_slow_line_comes_whole() {
        let mut slow = Client::new();
        slow.send(b"POST /length HTTP/1.1\r\ncontent-length: 81920\r\n\r\n").await;
        for _ in 0..20 {
            slow.send(&[b'x'; 4096]).await;
            sleep(Duration::from_secs(20)).await;
        }
        assert!(slow.read_for(1).await.ends_with("81920"));
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_take_an_answer_does_not_keep_its_place() {
        let mut deaf = Client::new();
        deaf.send(b"GET /large HTTP/1.1\r\n\r\n").await;
        assert_eq!(deaf.closed_after().await, 30);
        let mut slow = Client::new();
        slow.send(b"GET /large HTTP/1.1\r\n\r\n").await;
        let mut some = [0; 1024];
        for _ in 0..100 {
            sleep(Duration::from_secs(2)).await;
            slow.io.read_exact(&mut some).await.expect("it goes on");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_an_answer_may_be_silent() {
        let mut waiting = Client::new();
        waiting.send(b"GET /slow HTTP/1.1\r\n\r\n").await;
        assert!(waiting.read_for(301).await.ends_with("at last"));
        let mut following = Client::new();
        following.send(b"GET /beats HTTP/1.1\r\n\r\n").await;
        assert!(following.read_for(301).await.contains("data: 19"));
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_after_an_upgrade_keeps_its_place_and_its_own_time() {
        let mut upgraded = Client::new();
        upgraded.send(b"GET /upgraded HTTP/1.1\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n").await;
        assert!(upgraded.read_for(600).await.starts_with("HTTP/1.1 101"));
        assert_eq!(upgraded.caps.count(), 1);
        upgraded.send(b"x").await;
        assert_eq!(upgraded.read_for(600).await, "still here");
        assert_eq!(upgraded.caps.count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_is_waited_for_where_something_is_asked_and_not_where_nothing_is() {
        for (asked, ends_after) in [(&b"GET /slow HTTP/1.1\r\n\r\n"[..], 300), (ASKED, 1)] {
            let (mut io, socket) = duplex(4 * 1024);
            let caps = Caps::new(Most::of(64), Networks::default());
            let peer = SocketAddr::from(([192, 0, 2, 1], 9));
            let place = caps.admit(peer.ip()).expect("a place");
            let door = Door { app: app(), caps, patience: Patience::default(), tls: None };
            let (end, begun) = (CancellationToken::new(), Instant::now());
            let served = tokio::spawn(serve(socket, peer, place, door, end.clone()));
            io.write_all(asked).await.expect("an open connection");
            sleep(Duration::from_secs(1)).await;
            end.cancel();
            served.await.expect("no panic").expect("a good end");
            assert_eq!(begun.elapsed().as_secs(), ends_after);
        }
    }
}
