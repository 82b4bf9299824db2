//! The connection to the server: dialled, kept, dialled again. Nothing listens on the agent.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        self, Message,
        client::IntoClientRequest,
        http::{HeaderValue, StatusCode, header},
    },
};
use tokio_util::sync::CancellationToken;

use crate::{
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
                    converse(socket, heartbeat, &mut outbox, &heard, &end).await;
                    if end.is_cancelled() {
                        return;
                    }
                    tracing::warn!(server = %self.server, "connection lost");
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
        let dialled =
            timeout(ANSWER, connect_async(request)).await.map_err(|_| NoLink::Later("no answer".to_owned()))?;
        let (mut socket, _) = dialled.map_err(|fault| self.no_link(&fault))?;
        let hello = self.introduction();
        say(&mut socket, &AgentMessage::Hello(Box::new(hello))).await.map_err(|fault| self.no_link(&fault))?;
        match timeout(ANSWER, hear(&mut socket)).await {
            Ok(Some(ServerMessage::Welcome { heartbeat_ms, .. })) => {
                Ok((socket, Duration::from_millis(heartbeat_ms.clamp(100, 60_000))))
            }
            Ok(Some(ServerMessage::Refused { reason })) => Err(NoLink::Unwanted(reason)),
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
            other => NoLink::Later(other.to_string()),
        }
    }
}

enum NoLink {
    Unwanted(String),
    Later(String),
}

async fn converse(
    mut socket: Socket,
    heartbeat: Duration,
    outbox: &mut mpsc::UnboundedReceiver<AgentMessage>,
    heard: &mpsc::UnboundedSender<Heard>,
    end: &CancellationToken,
) {
    loop {
        tokio::select! {
            biased;
            said = outbox.recv() => match said {
                Some(message) if say(&mut socket, &message).await.is_ok() => {}
                _ => return,
            },
            () = end.cancelled() => {
                let _ = socket.close(None).await;
                return;
            }
            message = timeout(heartbeat * 3, hear(&mut socket)) => match message {
                Ok(Some(message)) => {
                    let _ = heard.send(Heard::Said(message));
                }
                _ => return,
            },
        }
    }
}

async fn say(socket: &mut Socket, message: &AgentMessage) -> Result<(), tungstenite::Error> {
    let text = serde_json::to_string(message).map_err(|fault| tungstenite::Error::Io(fault.into()))?;
    socket.send(Message::text(text)).await
}

async fn hear(socket: &mut Socket) -> Option<ServerMessage> {
    while let Some(Ok(message)) = socket.next().await {
        if let Message::Text(text) = message {
            match serde_json::from_str(&text) {
                Ok(message) => return Some(message),
                Err(fault) => tracing::warn!(%fault, "a message of the server can't be read"),
            }
        }
    }
    None
}
