//! Thousands of connections that nobody needs.

use std::{net::SocketAddr, time::Duration};

use brewbench::{
    app::{
        listener::{Patience, descriptors},
        rate_limit::streams::MOST_OF_ONE,
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

/// So many of a kind.
const MANY: usize = 2_000;

/// Where those stand who mean harm; others come from 127.0.0.1.
const ELSEWHERE: [u8; 4] = [127, 0, 0, 2];

async fn connect(app: &App) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from((ELSEWHERE, 0)))?;
    socket.connect(SocketAddr::from(([127, 0, 0, 1], app.url.port().expect("a port")))).await
}

/// Sends a beginning, and then byte by byte until the server has closed the connection.
async fn dawdle(mut stream: TcpStream, beginning: &'static [u8], then: &'static [u8]) {
    let (mut reader, mut writer) = stream.split();
    let mut read = Vec::new();
    let dripping = async {
        let mut sent = writer.write_all(beginning).await;
        while sent.is_ok() {
            sleep(Duration::from_millis(500)).await;
            sent = writer.write_all(then).await;
        }
        // An answer may still be there to be read.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = reader.read_to_end(&mut read) => {}
        () = dripping => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_slow_connections_disturb_nobody_and_are_closed_in_time() {
    descriptors::raise();
    // Each of them is two sockets of this process.
    if descriptors::room() < 3 * MANY {
        skip("too few file descriptors");
        return;
    }
    let soon = Duration::from_secs(5);
    let patience = Patience { handshake: soon, head: soon, progress: soon, ..Patience::default() };
    let app = App::with(|config| config.patience = patience).await;
    let (person, nobody) = (app.person(Role::Viewer).await.at_pages(), app.nobody());
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
        let disturbed = async {
            while !bad.is_empty() {
                assert_eq!(nobody.get("/healthz").await.ok().text(), "ok");
                person.get("/runs").await.ok();
                while bad.try_join_next().is_some() {}
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(PATIENCE, disturbed).await.expect("all of them closed");
    }
}

#[tokio::test]
async fn an_address_with_too_many_connections_gets_no_more_and_others_do() {
    let app = App::with(|config| config.connections = Some(64)).await;
    let mut streams = Vec::new();
    for _ in 0..100 {
        streams.push(connect(&app).await.expect("a connection"));
    }
    // Those that were let in are silent for longer than this takes.
    let mut closed = JoinSet::new();
    for mut stream in streams {
        closed.spawn(async move {
            let _ = stream.read_u8().await;
        });
    }
    timeout(PATIENCE, async { while closed.len() > 32 && closed.join_next().await.is_some() {} })
        .await
        .expect("those above the limit closed");
    assert_eq!(app.nobody().get("/healthz").await.ok().text(), "ok", "from another address");
    timeout(PATIENCE, closed.join_all()).await.expect("the others closed for their silence");
    let mut again = connect(&app).await.expect("a connection");
    again.write_all(b"GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n").await.expect("sent");
    let mut answer = String::new();
    again.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.ends_with("ok"), "{answer}");
}

#[tokio::test]
async fn a_caller_follows_with_so_many_pages_and_no_more() {
    let app = App::start().await;
    let (ada, grace) = (app.person(Role::Viewer).await, app.reader().await);
    let mut open = Vec::new();
    for _ in 0..MOST_OF_ONE {
        let followed = ada.request(&Method::GET, "/runs/live").send().await.expect("an answer");
        assert!(followed.status().is_success());
        open.push(followed);
    }
    let refused = ada.get("/runs/live").await;
    assert_eq!(refused.header("retry-after"), "5");
    assert!(refused.refused(503).contains("pages and commands follow for you already"));
    grace.request(&Method::GET, "/runs/live").send().await.expect("an answer").error_for_status().expect("a stream");
    drop(open);
    app.until("a stream again", async || {
        let answer = ada.request(&Method::GET, "/runs/live").send().await.expect("an answer");
        answer.status().is_success().then_some(())
    })
    .await;
}
