//! Floods of connections and streams.

use std::{net::SocketAddr, time::Duration};

use brewbench::{
    app::{
        listener::{Timeouts, descriptors},
        rate_limit::streams::MAX_PER_CALLER,
    },
    auth::model::Role,
};
use brewbench_testing::skip;
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::harness::{App, PATIENCE};

/// Connections of each kind.
const MANY: usize = 2_000;

/// The attacker's address; others connect from 127.0.0.1.
const ATTACKER: [u8; 4] = [127, 0, 0, 2];

async fn connect(app: &App) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((ATTACKER, 0)))?;
    socket.connect(SocketAddr::from(([127, 0, 0, 1], app.url.port().expect("a port")))).await
}

/// Sends `beginning`, then `then` twice a second, until the server closes the connection.
async fn dawdle(mut stream: TcpStream, beginning: &'static [u8], then: &'static [u8]) {
    let (mut reader, mut writer) = stream.split();
    let mut read = Vec::new();
    let dripping = async {
        let mut sent = writer.write_all(beginning).await;
        while sent.is_ok() {
            sleep(Duration::from_millis(500)).await;
            sent = writer.write_all(then).await;
        }
        // There may be an answer left to read.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = reader.read_to_end(&mut read) => {}
        () = dripping => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_slow_connections_delay_no_request_and_are_closed_in_time() {
    descriptors::raise();
    // Each connection is two sockets of this process.
    if descriptors::room() < 3 * MANY {
        skip("too few file descriptors");
        return;
    }
    let soon = Duration::from_secs(5);
    let timeouts = Timeouts { handshake: soon, head: soon, progress: soon, ..Timeouts::default() };
    let app = App::with(|config| config.timeouts = timeouts).await;
    let (viewer, nobody) = (app.signed_in(Role::Viewer).await.in_browser(), app.anonymous());
    let kinds: [(&[u8], &[u8]); 3] = [
        (b"", b""),
        (b"GET / HTTP/1.1\r\n", b"a"),
        (b"POST /api/v1/auth/register/start HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n", b" "),
    ];
    for (beginning, then) in kinds {
        let mut bad = JoinSet::new();
        for _ in 0..MANY {
            bad.spawn(dawdle(connect(&app).await.expect("a connection"), beginning, then));
        }
        let requests = async {
            while !bad.is_empty() {
                assert_eq!(nobody.get("/healthz").await.ok().text(), "ok");
                viewer.get("/runs").await.ok();
                while bad.try_join_next().is_some() {}
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, requests).await.expect("all of them closed");
    }
}

#[tokio::test]
async fn connections_are_limited_for_each_address() {
    let app = App::with(|config| config.connections = Some(64)).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(connect(&app).await.expect("a connection"));
    }
    // Accepted connections stay idle for longer than this takes.
    let mut closed = JoinSet::new();
    for mut stream in streams {
        closed.spawn(async move {
            let _ = stream.read_u8().await;
        });
    }
    timeout(PATIENCE, async { while closed.len() > 32 && closed.join_next().await.is_some() {} })
        .await
        .expect("those above the limit closed");
    assert_eq!(app.anonymous().get("/healthz").await.ok().text(), "ok", "from another address");
    timeout(PATIENCE, closed.join_all()).await.expect("idle connections closed");
    let mut again = connect(&app).await.expect("a connection");
    again.write_all(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    again.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn streams_are_limited_for_each_caller() {
    let app = App::start().await;
    let (ada, grace) = (app.signed_in(Role::Viewer).await, app.reader().await);
    let mut open = Vec::new();
    for _ in 0..MAX_PER_CALLER {
        let stream = ada.request(&Method::GET, "/runs/live").send().await.expect("an answer");
        assert!(stream.status().is_success());
        open.push(stream);
    }
    let refused = ada.get("/runs/live").await;
    assert_eq!(refused.header("retry-after"), "5");
    assert!(refused.refused(503).contains("pages and commands with live updates open"));
    grace.request(&Method::GET, "/runs/live").send().await.expect("an answer").error_for_status().expect("a stream");
    drop(open);
    app.until("a stream again", async || {
        let answer = ada.request(&Method::GET, "/runs/live").send().await.expect("an answer");
        answer.status().is_success().then_some(())
    })
    .await;
}
