//! The connection to the server: dialled, kept, dialled again. Nothing listens on the agent.
//!
//! It lives on a thread of its own, and its signs of life come from there: whatever the agent's work does to the other
//! threads, waiting for a disk say, it does not make the agent look dead.

mod dial;

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

pub use dial::announce;
use dial::{NoLink, Socket, connect, hear, introduce, say};

use crate::connection::client::Client;
use crate::connection::uploader::Courier;
use crate::series::live::{Live, Told};
use crate::wire::RunId;
use crate::wire::messages::{AgentMessage, Hello, ServerMessage};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where an agent stands when it introduces itself: everything that it was told before is in it, and what it says after
/// that comes through the outbox. So nothing is said twice, and nothing is left unsaid.
#[derive(Debug)]
pub struct Standing {
    /// The run in work.
    pub running: Option<RunId>,
    /// That one, and those whose outcomes wait to be sent.
    pub holds: Vec<RunId>,
    /// What is said from now on.
    pub outbox: mpsc::UnboundedReceiver<AgentMessage>,
}

/// What the daemon hears of its connection.
#[derive(Debug)]
pub enum Heard {
    /// A server is there: who are we?
    Dialled(oneshot::Sender<Standing>),
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
    /// Brings outcomes home as soon as there is a server.
    pub courier: Courier,
    /// The run in work.
    pub running: watch::Receiver<Option<RunId>>,
    /// What the run in work comes to.
    pub live: Live,
}

impl Link {
    /// Keeps connected until told to end, on a thread of its own; the end of that is told. Fails where there can be no
    /// more threads.
    pub fn keep_apart(
        self,
        heard: mpsc::UnboundedSender<Heard>,
        end: CancellationToken,
    ) -> std::io::Result<oneshot::Receiver<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (over, ended) = oneshot::channel();
        let live = move || {
            runtime.block_on(self.keep(&heard, &end));
            let _ = over.send(());
        };
        std::thread::Builder::new().name("link".to_owned()).spawn(live)?;
        Ok(ended)
    }

    /// Keeps connected until told to end. What is heard ends with that.
    pub async fn keep(&self, heard: &mpsc::UnboundedSender<Heard>, end: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        let mut told = false;
        loop {
            let connected = tokio::select! {
                () = end.cancelled() => return,
                connected = self.dial(heard) => connected,
            };
            match connected {
                Ok((socket, heartbeat, mut outbox)) => {
                    tracing::info!(server = %self.server(), "connected");
                    (pause, told) = (FIRST_PAUSE, false);
                    self.courier.hurry();
                    let own = (&self.running, &self.live);
                    match converse(socket, heartbeat * 3, &mut outbox, heard, own, end).await {
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

    /// A connection, how often the server wants to hear, and what is to be said from now on.
    async fn dial(
        &self,
        heard: &mpsc::UnboundedSender<Heard>,
    ) -> Result<(Socket, Duration, mpsc::UnboundedReceiver<AgentMessage>), NoLink> {
        let mut socket = connect(&self.client).await?;
        let (asks, answer) = oneshot::channel();
        let _ = heard.send(Heard::Dialled(asks));
        let gone = |_| NoLink::Later("the agent ends".to_owned());
        let Standing { running, holds, outbox } = answer.await.map_err(gone)?;
        let hello = Hello { running, holds, ..self.hello.clone() };
        let heartbeat = introduce(&self.client, &mut socket, hello).await?;
        Ok((socket, heartbeat, outbox))
    }
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
    (running, live): (&watch::Receiver<Option<RunId>>, &Live),
    end: &CancellationToken,
) -> Parting {
    // A little more often than the server expects it.
    let beat = silence / 4;
    let mut clock = interval_at(Instant::now() + beat, beat);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A server that was started anew knows nothing of what went before.
    let (mut told, mut news) = (Told::default(), live.listen());
    let mut silent_at = Instant::now() + silence;
    loop {
        let message = tokio::select! {
            biased;
            _ = clock.tick() => AgentMessage::Heartbeat { running: *running.borrow() },
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

#[cfg(test)]
mod tests {
    use futures_util::{SinkExt, StreamExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::{WebSocketStream, accept_async, connect_async};

    use super::*;
    use crate::connection::spool::Spool;
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
        let (own, heard) = ((&watch::channel(None).1, &Live::default()), mpsc::unbounded_channel().0);
        converse(socket, silence, &mut outbox, &heard, own, end).await
    }

    #[tokio::test]
    async fn an_agent_that_ends_says_goodbye_and_has_lost_nothing() {
        let (ours, mut theirs) = connection().await;
        let (outbox, mut to_send) = mpsc::unbounded_channel();
        // As the daemon does: it drops its end before it tells the link to end.
        drop(outbox);
        let end = CancellationToken::new();
        let (own, heard) = ((&watch::channel(None).1, &Live::default()), mpsc::unbounded_channel().0);
        assert_eq!(converse(ours, LONG, &mut to_send, &heard, own, &end).await, Parting::Ours);
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
            let own = (&watch::channel(None).1, &live);
            let (_, told) = tokio::join!(converse(ours, LONG, &mut outbox, &heard, own, &end), told);
            let AgentMessage::Series(portion) = told else { panic!("{told:?}") };
            assert_eq!((portion.seconds_after_ms, portion.usage_after_ms), (0, i32::MAX));
            let seconds = portion.points.unpack().expect("our own").measured.expect("a stretch").seconds;
            assert_eq!(seconds.iter().map(|second| second.iterations).collect::<Vec<_>>(), [7]);
        }
    }

    /// A server on a thread of its own, which says how often it wants signs of life, and when it has heard one.
    fn listening(heartbeat: Duration) -> (reqwest::Url, std::sync::mpsc::Receiver<Instant>) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound")).parse().expect("an address");
        let (heard, signs) = std::sync::mpsc::channel();
        let serve = async move {
            listener.set_nonblocking(true).expect("set");
            let (stream, _) = TcpListener::from_std(listener).expect("a listener").accept().await.expect("a guest");
            let mut socket = accept_async(stream).await.expect("a handshake");
            socket.next().await.expect("a hello").expect("a message");
            let heartbeat_ms = heartbeat.as_millis().try_into().expect("small");
            let welcome = ServerMessage::Welcome { protocol: 4, name: "rack".to_owned(), heartbeat_ms };
            let mut clock = tokio::time::interval(heartbeat);
            socket.send(Message::text(serde_json::to_string(&welcome).expect("JSON"))).await.expect("said");
            let beat = serde_json::to_string(&ServerMessage::Heartbeat).expect("JSON");
            loop {
                tokio::select! {
                    _ = clock.tick() => drop(socket.send(Message::text(beat.clone())).await),
                    message = socket.next() => {
                        if !matches!(message, Some(Ok(Message::Text(_)))) || heard.send(Instant::now()).is_err() {
                            return;
                        }
                    }
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || runtime.block_on(serve));
        (url, signs)
    }

    #[test]
    fn signs_of_life_do_not_wait_for_the_agents_work_nor_for_a_core() {
        const LONGEST: Duration = Duration::from_secs(5);
        let (url, signs) = listening(LONGEST / 3);
        let folder = tempfile::tempdir().expect("a folder");
        let client = Client::new(&url, Some("bba_key".to_owned())).expect("a client");
        let spool = Spool::open(folder.path()).expect("a spool");
        let (courier, running) = (Courier::new(client.clone(), spool), watch::channel(None).1);
        let link =
            Link { client, hello: crate::wire::messages::tests::hello(), courier, running, live: Live::default() };
        let (hear, mut heard) = mpsc::unbounded_channel();
        let end = CancellationToken::new();
        link.keep_apart(hear, end.clone()).expect("a thread");
        let Some(Heard::Dialled(asks)) = heard.blocking_recv() else { panic!("it dials first") };
        // From now on the agent itself does nothing any more: its work has taken all threads and all cores.
        let (_kept, outbox) = mpsc::unbounded_channel();
        asks.send(Standing { running: None, holds: Vec::new(), outbox }).expect("it waits");
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let busy = end.clone();
        let burners: Vec<_> = (0..cores * 4)
            .map(|_| {
                let (busy, mut count) = (busy.clone(), 0_u64);
                std::thread::spawn(move || {
                    while !busy.is_cancelled() {
                        count = std::hint::black_box(count.wrapping_mul(31).wrapping_add(7));
                    }
                })
            })
            .collect();
        let begun = Instant::now();
        let (mut last, mut longest, mut count) = (begun, Duration::ZERO, 0);
        while begun.elapsed() < Duration::from_secs(4) {
            let at = signs.recv_timeout(LONGEST).expect("a sign of life within the silence that is allowed");
            (longest, last, count) = (longest.max(at - last), at, count + 1);
        }
        end.cancel();
        for burner in burners {
            burner.join().expect("an end");
        }
        println!(
            "{} busy threads on {cores} cores: {count} signs of life in 4 s, the longest silence {longest:?}",
            cores * 4
        );
        assert!(longest < LONGEST);
    }
}
