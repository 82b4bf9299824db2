//! The connection to the server: dialled, kept, dialled again. Nothing listens on the agent.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::{Instant, sleep, timeout, timeout_at},
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
    client::{Client, with_way_out},
    series::live::{Live, Told},
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
    /// There is a new connection; what was said before it may not have been heard.
    Connected,
    /// The server said something.
    Said(ServerMessage),
    /// The server does not want this agent; dialling again is no use.
    Unwanted(String),
}

/// One agent's connection.
#[derive(Debug)]
pub struct Link {
    /// To the server: its address, whom the agent trusts, and its key.
    pub client: Client,
    /// What the agent is; what it holds is filled in at each connection.
    pub hello: Hello,
    /// What waits to be sent home.
    pub spool: Spool,
    /// The run in work.
    pub running: watch::Receiver<Option<RunId>>,
    /// What the run in work comes to.
    pub live: Live,
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
                    tracing::info!(server = %self.server(), "connected");
                    (pause, told) = (FIRST_PAUSE, false);
                    while outbox.try_recv().is_ok() {}
                    let _ = heard.send(Heard::Connected);
                    let silence = heartbeat * 3;
                    match converse(socket, silence, &mut outbox, &heard, &self.live, &end).await {
                        Parting::Ours => return,
                        Parting::Theirs => tracing::info!(server = %self.server(), "the server ended the connection"),
                        Parting::Lost => tracing::warn!(server = %self.server(), "connection lost"),
                    }
                }
                Err(NoLink::Unwanted(reason)) => {
                    let _ = heard.send(Heard::Unwanted(reason));
                    return;
                }
                Err(NoLink::Later(cause)) if !told => {
                    told = true;
                    tracing::warn!(server = %self.server(), cause, "no connection; dialling until there is one");
                }
                Err(NoLink::Later(_)) => {}
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
    }

    fn server(&self) -> &reqwest::Url {
        self.client.base()
    }

    async fn dial(&self) -> Result<(Socket, Duration), NoLink> {
        let request = self.request().map_err(|fault| NoLink::Unwanted(fault.to_string()))?;
        let connector = self.client.tls().map_or(Connector::Plain, Connector::Rustls);
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
        let base = self.server().as_str().trim_end_matches('/');
        // http becomes ws, https becomes wss.
        let url = format!("ws{}/api/v1/agent/channel", base.strip_prefix("http").unwrap_or(base));
        let mut request = url.into_client_request()?;
        let mut key = HeaderValue::try_from(format!("Bearer {}", self.client.secret().unwrap_or_default()))
            .map_err(tungstenite::http::Error::from)?;
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
                format!("{} does not know this agent's key; `brewbench agent-key new NAME` makes one", self.server()),
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

/// Speaks and listens until one side ends it, or the other has been silent, or has taken nothing, for so long.
async fn converse(
    mut socket: Socket,
    silence: Duration,
    outbox: &mut mpsc::UnboundedReceiver<AgentMessage>,
    heard: &mpsc::UnboundedSender<Heard>,
    live: &Live,
    end: &CancellationToken,
) -> Parting {
    // A server that was started anew knows nothing of what went before.
    let (mut told, mut news) = (Told::default(), live.listen());
    let mut silent_at = Instant::now() + silence;
    loop {
        let message = tokio::select! {
            biased;
            // The daemon is gone before it says that it is: nobody has anything to say any more.
            said = outbox.recv() => match said {
                Some(message) => message,
                None => break,
            },
            () = end.cancelled() => break,
            message = timeout_at(silent_at, hear(&mut socket)) => match message {
                Ok(Ok(message)) => {
                    silent_at = Instant::now() + silence;
                    let _ = heard.send(Heard::Said(message));
                    continue;
                }
                Ok(Err(parting)) => return parting,
                Err(_) => return Parting::Lost,
            },
            Ok(()) = news.changed() => match live.portion(&mut told) {
                Some(portion) => {
                    // There may be more: a long past comes bit by bit, and what else is to be said comes in between.
                    news.mark_changed();
                    AgentMessage::Series(Box::new(portion))
                }
                None => continue,
            },
        };
        match timeout(silence, say(&mut socket, &message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Parting::Lost,
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
    use crate::wire::series::{Part, Second, Stretch};

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
        converse(socket, silence, &mut outbox, &mpsc::unbounded_channel().0, &Live::default(), end).await
    }

    #[tokio::test]
    async fn an_agent_that_ends_says_goodbye_and_has_lost_nothing() {
        let (ours, mut theirs) = connection().await;
        let (outbox, mut to_send) = mpsc::unbounded_channel();
        // As the daemon does: it drops its end before it tells the link to end.
        drop(outbox);
        let end = CancellationToken::new();
        let heard = mpsc::unbounded_channel().0;
        assert_eq!(converse(ours, LONG, &mut to_send, &heard, &Live::default(), &end).await, Parting::Ours);
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

    #[tokio::test]
    async fn every_new_connection_is_told_the_whole_past_of_the_run() {
        let live = Live::default();
        let second = Second { until_ms: 1_000, iterations: 7, ..Second::default() };
        live.begin(RunId::now());
        live.keep(Part::Measured, Stretch { seconds: vec![second], ..Stretch::default() });
        let heard = mpsc::unbounded_channel().0;
        for _ in 0..2 {
            let (ours, mut theirs) = connection().await;
            let (end, (_kept, mut outbox)) = (CancellationToken::new(), mpsc::unbounded_channel());
            let told = async {
                let Some(Ok(Message::Text(text))) = theirs.next().await else { panic!("silence") };
                end.cancel();
                serde_json::from_str::<AgentMessage>(&text).expect("a message")
            };
            let (_, told) = tokio::join!(converse(ours, LONG, &mut outbox, &heard, &live, &end), told);
            let AgentMessage::Series(portion) = told else { panic!("{told:?}") };
            assert_eq!((portion.seconds_after_ms, portion.usage_after_ms), (0, i32::MAX));
            let seconds = portion.points.unpack().expect("our own").measured.expect("a stretch").seconds;
            assert_eq!(seconds.iter().map(|second| second.iterations).collect::<Vec<_>>(), [7]);
        }
    }
}
