//! Opens the WebSocket to the server, authenticates with the agent's key and sends `Hello`.

use std::time::Duration;

use brewbench_io::client::{Client, with_ca_hint};
use brewbench_wire::messages::{AgentMessage, Hello, ServerMessage};
use brewbench_wire::now_ms;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::Closed;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Longest wait for the server's response to `Hello`.
const ANSWER: Duration = Duration::from_secs(10);
/// Longest wait for the TCP and WebSocket handshake. TCP retransmits ever more rarely on a broken line, so reconnecting
/// is faster.
const HANDSHAKE: Duration = Duration::from_secs(4);

/// Why a connection failed.
pub(super) enum ConnectError {
    /// The server rejects this agent; retrying is pointless.
    Rejected(String),
    /// Retrying may help.
    Retry(String),
}

impl ConnectError {
    fn reason(self) -> String {
        let (Self::Rejected(reason) | Self::Retry(reason)) = self;
        reason
    }
}

/// Sends `Hello` once and disconnects. Fails with a sentence.
pub async fn announce(client: &Client, hello: Hello) -> Result<(), String> {
    let introduced = async {
        let mut socket = connect(client).await?;
        introduce(client, &mut socket, hello).await?;
        let _ = socket.close(None).await;
        Ok(())
    };
    introduced.await.map_err(ConnectError::reason)
}

/// Opens a connection and closes it again, before any message. Fails with a sentence.
pub async fn try_to_open(client: &Client) -> Result<(), String> {
    let mut socket = connect(client).await.map_err(ConnectError::reason)?;
    let _ = socket.close(None).await;
    Ok(())
}

/// Opens a connection, before any message.
pub(super) async fn connect(client: &Client) -> Result<Socket, ConnectError> {
    let request = request(client).map_err(|fault| ConnectError::Rejected(fault.to_string()))?;
    let connector = client.tls().map_or(Connector::Plain, Connector::Rustls);
    let connected = connect_async_tls_with_config(request, None, true, Some(connector));
    let connected = timeout(HANDSHAKE, connected).await.map_err(|_| ConnectError::Retry("no answer".to_owned()))?;
    let (socket, _) = connected.map_err(|fault| no_link(client, &fault))?;
    Ok(socket)
}

/// Sends `Hello`; returns the heartbeat interval that the server expects.
pub(super) async fn introduce(client: &Client, socket: &mut Socket, hello: Hello) -> Result<Duration, ConnectError> {
    let hello = Hello { now_ms: now_ms(), ..hello };
    send(socket, &AgentMessage::Hello(Box::new(hello))).await.map_err(|fault| no_link(client, &fault))?;
    match timeout(ANSWER, receive(socket)).await {
        Ok(Ok(ServerMessage::Welcome { heartbeat_ms, .. })) => {
            Ok(Duration::from_millis(heartbeat_ms.clamp(100, 60_000)))
        }
        Ok(Ok(ServerMessage::Refused { reason })) => Err(ConnectError::Rejected(reason)),
        _ => Err(ConnectError::Retry("the server closed the connection".to_owned())),
    }
}

fn request(client: &Client) -> Result<tungstenite::handshake::client::Request, tungstenite::Error> {
    let base = client.base().as_str().trim_end_matches('/');
    // http becomes ws, https becomes wss.
    let url = format!("ws{}/api/v1/agent/channel", base.strip_prefix("http").unwrap_or(base));
    let mut request = url.into_client_request()?;
    let mut key = HeaderValue::try_from(format!("Bearer {}", client.secret().unwrap_or_default()))
        .map_err(tungstenite::http::Error::from)?;
    key.set_sensitive(true);
    request.headers_mut().insert(header::AUTHORIZATION, key);
    Ok(request)
}

fn no_link(client: &Client, fault: &tungstenite::Error) -> ConnectError {
    match fault {
        tungstenite::Error::Http(response) if response.status() == StatusCode::UNAUTHORIZED => ConnectError::Rejected(
            format!("{} does not know this agent's key; create one with `brewbench agent-key new NAME`", client.base()),
        ),
        // For example a disabled agent, which may be enabled again; the message is the server's.
        tungstenite::Error::Http(response) => {
            let body = response.body().as_deref().and_then(|body| serde_json::from_slice(body).ok());
            let sentence = body.and_then(|body: serde_json::Value| Some(body["error"].as_str()?.to_owned()));
            ConnectError::Retry(sentence.unwrap_or_else(|| fault.to_string()))
        }
        other => ConnectError::Retry(with_ca_hint(other.to_string())),
    }
}

pub(super) async fn send(socket: &mut Socket, message: &AgentMessage) -> Result<(), tungstenite::Error> {
    let text = serde_json::to_string(message).map_err(|fault| tungstenite::Error::Io(fault.into()))?;
    socket.send(Message::text(text)).await
}

/// Returns the next message, or why the connection ended.
pub(super) async fn receive(socket: &mut Socket) -> Result<ServerMessage, Closed> {
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(message) => return Ok(message),
                Err(fault) => tracing::warn!(%fault, "failed to read a message of the server"),
            },
            Message::Close(_) => return Err(Closed::ByServer),
            _ => {}
        }
    }
    Err(Closed::Lost)
}
