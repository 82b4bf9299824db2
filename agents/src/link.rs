//! The connection to the server: dialled, kept, dialled again. Nothing listens on the agent.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use rustls::ClientConfig;
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config,
    tungstenite::{
        self, Message,
        client::IntoClientRequest,
        http::{HeaderValue, StatusCode, header},
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
    client::with_way_out,
    spool::Spool,
    wire::{
        RunId,
        messages::{AgentMessage, Hello, ServerMessage},
        now_ms,
    },
};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How long a server may take to answer an introduction.
const ANSWER: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What the daemon hears of its connection.
#[derive(Debug)]
pub enum Heard {
    /// The server said something.
    Said(ServerMessage),
    /// The server does not want this agent; dialling again is no use.
    Unwanted(String),
}

/// One agent's connection.
#[derive(Debug)]
pub struct Link {
    /// The server's address, http or https.
    pub server: reqwest::Url,
    /// Whom it trusts where the address is https.
    pub tls: Option<Arc<ClientConfig>>,
    /// The agent's key.
    pub key: String,
    /// What the agent is; what it holds is filled in at each connection.
    pub hello: Hello,
    /// What waits to be sent home.
    pub spool: Spool,
    /// The run in work.
    pub running: watch::Receiver<Option<RunId>>,
}

impl Link {
    /// Keeps connected until told to end. What is said while there is no connection is dropped: the next introduction
    /// says where the agent stands.
    pub async fn keep(
        self,
        mut outbox: mpsc::UnboundedReceiver<AgentMessage>,
        heard: mpsc::UnboundedSender<Heard>,
        end: CancellationToken,
    ) {
        let mut pause = FIRST_PAUSE;
        let mut told = false;
        loop {
            let connected = tokio::select! {
                () = end.cancelled() => return,
                connected = self.dial() => connected,
            };
            match connected {
                Ok((socket, heartbeat)) => {
                    tracing::info!(server = %self.server, "connected");
                    (pause, told) = (FIRST_PAUSE, false);
                    while outbox.try_recv().is_ok() {}
                    match converse(socket, heartbeat, &mut outbox, &heard, &end).await {
                        Parting::Ours => return,
                        Parting::Theirs => tracing::info!(server = %self.server, "the server ended the connection"),
                        Parting::Lost => tracing::warn!(server = %self.server, "connection lost"),
                    }
                }
                Err(NoLink::Unwanted(reason)) => {
                    let _ = heard.send(Heard::Unwanted(reason));
                    return;
                }
                Err(NoLink::Later(cause)) if !told => {
                    told = true;
                    tracing::warn!(server = %self.server, cause, "no connection; dialling until there is one");
                }
                Err(NoLink::Later(_)) => {}
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    async fn dial(&self) -> Result<(Socket, Duration), NoLink> {
        let request = self.request().map_err(|fault| NoLink::Unwanted(fault.to_string()))?;
        let connector = self.tls.clone().map_or(Connector::Plain, Connector::Rustls);
        let dialled = connect_async_tls_with_config(request, None, true, Some(connector));
        let dialled = timeout(ANSWER, dialled).await.map_err(|_| NoLink::Later("no answer".to_owned()))?;
        let (mut socket, _) = dialled.map_err(|fault| self.no_link(&fault))?;
        let hello = self.introduction();
        say(&mut socket, &AgentMessage::Hello(Box::new(hello))).await.map_err(|fault| self.no_link(&fault))?;
        match timeout(ANSWER, hear(&mut socket)).await {
            Ok(Ok(ServerMessage::Welcome { heartbeat_ms, .. })) => {
                Ok((socket, Duration::from_millis(heartbeat_ms.clamp(100, 60_000))))
            }
            Ok(Ok(ServerMessage::Refused { reason })) => Err(NoLink::Unwanted(reason)),
            _ => Err(NoLink::Later("the server closed the connection".to_owned())),
        }
    }

    fn request(&self) -> Result<tungstenite::handshake::client::Request, tungstenite::Error> {
        let base = self.server.as_str().trim_end_matches('/');
        // http becomes ws, https becomes wss.
        let url = format!("ws{}/api/v1/agent/channel", base.strip_prefix("http").unwrap_or(base));
        let mut request = url.into_client_request()?;
        let mut key = HeaderValue::try_from(format!("Bearer {}", self.key)).map_err(tungstenite::http::Error::from)?;
        key.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, key);
        Ok(request)
    }

    fn introduction(&self) -> Hello {
        let running = *self.running.borrow();
        let mut holds = self.spool.waiting().unwrap_or_default();
        holds.extend(running);
        Hello { now_ms: now_ms(), running, holds, ..self.hello.clone() }
    }

    fn no_link(&self, fault: &tungstenite::Error) -> NoLink {
        match fault {
            tungstenite::Error::Http(response) if response.status() == StatusCode::UNAUTHORIZED => NoLink::Unwanted(
                format!("{} does not know this agent's key; `brewbench agent-key new NAME` makes one", self.server),
            ),
            other => NoLink::Later(with_way_out(other.to_string())),
        }
    }
}

enum NoLink {
    Unwanted(String),
    Later(String),
}

/// How a conversation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parting {
    /// The agent ends.
    Ours,
    /// The server said goodbye.
    Theirs,
    /// It broke, or there was silence.
    Lost,
}

async fn converse(
    mut socket: Socket,
    heartbeat: Duration,
    outbox: &mut mpsc::UnboundedReceiver<AgentMessage>,
    heard: &mpsc::UnboundedSender<Heard>,
    end: &CancellationToken,
) -> Parting {
    loop {
        tokio::select! {
            biased;
            // The daemon is gone before it says that it is: nobody has anything to say any more.
            said = outbox.recv() => match said {
                Some(message) if say(&mut socket, &message).await.is_ok() => {}
                Some(_) => return Parting::Lost,
                None => break,
            },
            () = end.cancelled() => break,
            message = timeout(heartbeat * 3, hear(&mut socket)) => match message {
                Ok(Ok(message)) => {
                    let _ = heard.send(Heard::Said(message));
                }
                Ok(Err(parting)) => return parting,
                Err(_) => return Parting::Lost,
            },
        }
    }
    let _ = socket.close(None).await;
    Parting::Ours
}

async fn say(socket: &mut Socket, message: &AgentMessage) -> Result<(), tungstenite::Error> {
    let text = serde_json::to_string(message).map_err(|fault| tungstenite::Error::Io(fault.into()))?;
    socket.send(Message::text(text)).await
}

/// The next message, or how it ended.
async fn hear(socket: &mut Socket) -> Result<ServerMessage, Parting> {
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

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio_tungstenite::{accept_async, connect_async};

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    /// Both ends of a connection.
    async fn connection() -> (Socket, WebSocketStream<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("ws://{}/", listener.local_addr().expect("bound"));
        let accept = async { accept_async(listener.accept().await.expect("a guest").0).await.expect("a handshake") };
        let (dialled, accepted) = tokio::join!(connect_async(url), accept);
        (dialled.expect("a connection").0, accepted)
    }

    async fn parting(socket: Socket, silence: Duration, end: &CancellationToken) -> Parting {
        let (_kept, mut outbox) = mpsc::unbounded_channel();
        converse(socket, silence, &mut outbox, &mpsc::unbounded_channel().0, end).await
    }

    #[tokio::test]
    async fn an_agent_that_ends_says_goodbye_and_has_lost_nothing() {
        let (ours, mut theirs) = connection().await;
        let (outbox, mut to_send) = mpsc::unbounded_channel();
        // As the daemon does: it drops its end before it tells the link to end.
        drop(outbox);
        let end = CancellationToken::new();
        let heard = mpsc::unbounded_channel().0;
        assert_eq!(converse(ours, LONG, &mut to_send, &heard, &end).await, Parting::Ours);
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));

        let (ours, mut theirs) = connection().await;
        end.cancel();
        assert_eq!(parting(ours, LONG, &end).await, Parting::Ours);
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));
    }

    #[tokio::test]
    async fn a_server_that_says_goodbye_is_not_a_lost_connection_and_one_that_vanishes_is() {
        let end = CancellationToken::new();
        let (ours, mut theirs) = connection().await;
        theirs.close(None).await.expect("a goodbye");
        assert_eq!(parting(ours, LONG, &end).await, Parting::Theirs);
        let (ours, theirs) = connection().await;
        drop(theirs);
        assert_eq!(parting(ours, LONG, &end).await, Parting::Lost);
        let (ours, _silent) = connection().await;
        assert_eq!(parting(ours, Duration::from_millis(1), &end).await, Parting::Lost);
    }
}
