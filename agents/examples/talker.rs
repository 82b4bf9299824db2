//! A target for tests that speaks HTTP/1.1, WebSocket and gRPC at one port.
//!
//! `talker HOST:PORT`: every HTTP request is answered with `hello`, every WebSocket message with itself, and every gRPC
//! call with an empty message; each tenth call fails.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::{SinkExt, StreamExt};
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};

/// How an HTTP/2 connection begins.
const PREFACE: &[u8] = b"PRI ";

/// An empty gRPC message: not compressed, of length zero.
const EMPTY: &[u8] = &[0, 0, 0, 0, 0];

static CALLS: AtomicU64 = AtomicU64::new(0);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).ok_or("usage: talker HOST:PORT")?;
    let listener = TcpListener::bind(address).await?;
    loop {
        let (socket, _) = listener.accept().await?;
        tokio::spawn(async move {
            let _ = talk(socket).await;
        });
    }
}

async fn talk(mut socket: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    loop {
        let mut start = [0; 4096];
        let length = socket.peek(&mut start).await?;
        let start = &start[..length];
        if start.starts_with(PREFACE) {
            return calls(socket).await;
        }
        if start.to_ascii_lowercase().windows(18).any(|text| text == b"upgrade: websocket") {
            return echo(socket).await;
        }
        if length == 0 {
            return Ok(());
        }
        socket.readable().await?;
        socket.try_read(&mut [0; 4096])?;
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await?;
    }
}

async fn echo(socket: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut socket = tokio_tungstenite::accept_async(socket).await?;
    while let Some(message) = socket.next().await {
        let message = message?;
        if message.is_text() {
            socket.send(message).await?;
        }
    }
    Ok(())
}

async fn calls(socket: TcpStream) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut connection = h2::server::handshake(socket).await?;
    while let Some(call) = connection.accept().await {
        let (request, response) = call?;
        tokio::spawn(answer(request, response));
    }
    Ok(())
}

async fn answer(
    mut request: Request<h2::RecvStream>,
    mut response: SendResponse<hyper::body::Bytes>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    while let Some(part) = request.body_mut().data().await {
        let length = part?.len();
        request.body_mut().flow_control().release_capacity(length)?;
    }
    let head = Response::builder().header("content-type", "application/grpc").body(())?;
    let mut body = response.send_response(head, false)?;
    body.send_data(EMPTY.into(), false)?;
    let is_failed = CALLS.fetch_add(1, Ordering::Relaxed) % 10 == 9;
    let mut end = HeaderMap::new();
    end.insert("grpc-status", if is_failed { "13".parse()? } else { "0".parse()? });
    body.send_trailers(end)?;
    Ok(())
}
