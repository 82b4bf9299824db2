//! How an agent reaches its server: a WebSocket with its key, and an introduction.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode, header};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};

use super::Parting;
use crate::connection::client::{Client, with_way_out};
use crate::wire::messages::{AgentMessage, Hello, ServerMessage};
use crate::wire::now_ms;

pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How long a server may take to answer an introduction.
const ANSWER: Duration = Duration::from_secs(10);
/// How long it may take until a server's machine answers at all. What is asked of a line that is cut is asked again ever
/// more rarely, so it is better to reconnect.
const DIALLING: Duration = Duration::from_secs(4);

/// Why there is no connection.
pub(super) enum NoLink {
    /// The server does not want this agent; dialling again is no use.
    Unwanted(String),
    /// There may be one later.
    Later(String),
}

/// Introduces an agent once and hangs up. Fails with a sentence.
pub async fn announce(client: &Client, hello: Hello) -> Result<(), String> {
    let introduced = async {
        let mut socket = connect(client).await?;
        introduce(client, &mut socket, hello).await?;
        let _ = socket.close(None).await;
        Ok(())
    };
    introduced.await.map_err(|(NoLink::Unwanted(reason) | NoLink::Later(reason))| reason)
}

/// A connection to the server, on which nothing was said yet.
pub(super) async fn connect(client: &Client) -> Result<Socket, NoLink> {
    let request = request(client).map_err(|fault| NoLink::Unwanted(fault.to_string()))?;
    let connector = client.tls().map_or(Connector::Plain, Connector::Rustls);
    let dialled = connect_async_tls_with_config(request, None, true, Some(connector));
    let dialled = timeout(DIALLING, dialled).await.map_err(|_| NoLink::Later("no answer".to_owned()))?;
    let (socket, _) = dialled.map_err(|fault| no_link(client, &fault))?;
    Ok(socket)
}

/// Says who we are; returns how often the server wants to hear.
pub(super) async fn introduce(client: &Client, socket: &mut Socket, hello: Hello) -> Result<Duration, NoLink> {
    let hello = Hello { now_ms: now_ms(), ..hello };
    say(socket, &AgentMessage::Hello(Box::new(hello))).await.map_err(|fault| no_link(client, &fault))?;
    match timeout(ANSWER, hear(socket)).await {
        Ok(Ok(ServerMessage::Welcome { heartbeat_ms, .. })) => {
            Ok(Duration::from_millis(heartbeat_ms.clamp(100, 60_000)))
        }
        Ok(Ok(ServerMessage::Refused { reason })) => Err(NoLink::Unwanted(reason)),
        _ => Err(NoLink::Later("the server closed the connection".to_owned())),
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

fn no_link(client: &Client, fault: &tungstenite::Error) -> NoLink {
    match fault {
        tungstenite::Error::Http(response) if response.status() == StatusCode::UNAUTHORIZED => NoLink::Unwanted(
            format!("{} does not know this agent's key; `brewbench agent-key new NAME` makes one", client.base()),
        ),
        // The server's own words: it is disabled, say, and may be let in again.
        tungstenite::Error::Http(response) => {
            let said = response.body().as_deref().and_then(|body| serde_json::from_slice(body).ok());
            let sentence = said.and_then(|body: serde_json::Value| Some(body["error"].as_str()?.to_owned()));
            NoLink::Later(sentence.unwrap_or_else(|| fault.to_string()))
        }
        other => NoLink::Later(with_way_out(other.to_string())),
    }
}

pub(super) async fn say(socket: &mut Socket, message: &AgentMessage) -> Result<(), tungstenite::Error> {
    let text = serde_json::to_string(message).map_err(|fault| tungstenite::Error::Io(fault.into()))?;
    socket.send(Message::text(text)).await
}

/// The next message, or how it ended.
pub(super) async fn hear(socket: &mut Socket) -> Result<ServerMessage, Parting> {
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Text(text) => match serde_json::from_str(&text) {
                Ok(message) => return Ok(message),
                Err(fault) => tracing::warn!(%fault, "a message of the server can't be read"),
            },
            Message::Close(_) => return Err(Parting::Theirs),
            _ => {}
        }
    }
    Err(Parting::Lost)
}
