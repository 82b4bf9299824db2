//! Response times of a server while one address holds thousands of connections that send almost nothing.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use brewbench_io::client::Client;
use reqwest::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{figures::Figure, site::Site};

/// Returns the title of the table.
pub fn title() -> String {
    format!("while one address has {COUNT} connections open")
}

/// Connections of each kind.
const COUNT: usize = 2_000;

/// Pauses between two measured requests, and between two bytes of a slow connection.
const PAUSE: Duration = Duration::from_millis(20);
const DRIP: Duration = Duration::from_secs(1);

/// The server closes them after 30 s at most.
const PATIENCE: Duration = Duration::from_secs(90);

const BODY: &[u8] = b"POST /api/v1/auth/register/start HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9999\r\n\r\n";

/// Kinds of connections: what they send at once, and then once a second.
const KINDS: [(&str, &[u8], &[u8]); 3] =
    [("silent", b"", b""), ("slow header", b"GET / HTTP/1.1\r\n", b"a"), ("slow body", BODY, b" ")];

/// Measures one kind after another.
pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    eprintln!("connections: {COUNT} that send almost nothing, of each kind");
    // Each connection takes a file descriptor here and one in the server.
    brewbench::app::listener::descriptors::raise();
    let folder = tempfile::tempdir()?;
    let site = Site::start(&folder.path().join("site")).await?;
    let port = site.url.port().context("a port")?;
    let mut figures = Vec::new();
    for (kind, beginning, then) in KINDS {
        response_ms(&site.client, "runs").await?;
        figures.extend(timeout(PATIENCE, crowd(&site.client, port, kind, beginning, then)).await.context(kind)??);
    }
    site.process.stop().await?;
    Ok(figures)
}

async fn crowd(
    client: &Client,
    port: u16,
    kind: &'static str,
    beginning: &'static [u8],
    then: &'static [u8],
) -> anyhow::Result<[Figure; 3]> {
    let started = Instant::now();
    let mut slow = JoinSet::new();
    for _ in 0..COUNT {
        slow.spawn(dawdle(connect(port).await?, beginning, then));
    }
    let (mut health_ms, mut page_ms) = (Vec::new(), Vec::new());
    while !slow.is_empty() {
        health_ms.push(response_ms(client, "healthz").await?);
        page_ms.push(response_ms(client, "runs").await?);
        while slow.try_join_next().is_some() {}
        sleep(PAUSE).await;
    }
    Ok([
        Figure::from_values(format!("{kind}: `/healthz`"), "ms", &health_ms).at_most(100.0),
        Figure::from_values(format!("{kind}: `/runs`"), "ms", &page_ms).at_most(100.0),
        Figure::new(format!("{kind}: all closed after"), "s", started.elapsed().as_secs_f64()),
    ])
}

async fn response_ms(client: &Client, path: &str) -> anyhow::Result<f64> {
    let started = Instant::now();
    let answer = client.request(Method::GET, path).send().await?;
    ensure!(answer.status().is_success(), "{path}: {}", answer.status());
    answer.bytes().await?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

/// Connects from another address, so that it does not share limits with the measured client.
async fn connect(port: u16) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(SocketAddr::from(([127, 0, 0, 2], 0)))?;
    socket.connect(SocketAddr::from(([127, 0, 0, 1], port))).await
}

/// Sends as little as possible until the server closes the connection.
async fn dawdle(mut stream: TcpStream, beginning: &'static [u8], then: &'static [u8]) {
    let (mut reader, mut writer) = stream.split();
    let closed = async {
        let mut answer = [0; 512];
        while reader.read(&mut answer).await.is_ok_and(|read| read > 0) {}
    };
    let drip = async {
        let _ = writer.write_all(beginning).await;
        while !then.is_empty() && writer.write_all(then).await.is_ok() {
            sleep(DRIP).await;
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = closed => {}
        () = drip => {}
    }
}
