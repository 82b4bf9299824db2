//! The connection to the server, opened by the agent and reopened when it breaks. Nothing listens on the agent.
//!
//! It has its own thread, which also sends the heartbeats. So an agent whose other threads are busy, for example with
//! a slow disk, does not look dead.

mod dial;

use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use dial::{ConnectError, Socket, connect, introduce, receive, send};
pub use dial::{announce, try_to_open};

use brewbench_io::client::Client;
use brewbench_wire::RunId;
use brewbench_wire::messages::{AgentMessage, Hello, ServerMessage, TargetOffer};

use crate::connection::uploader::Uploader;
use crate::series::live::{Live, Sent};

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The agent's state at `Hello`. It covers everything up to then; later messages come through the outbox. So nothing is
/// reported twice or lost.
#[derive(Debug)]
pub struct State {
    /// The current run.
    pub running: Option<RunId>,
    /// The current run, and those with outcomes in the spool.
    pub holds: Vec<RunId>,
    /// Messages from now on.
    pub outbox: mpsc::UnboundedReceiver<AgentMessage>,
}

/// What happened on the connection.
#[derive(Debug)]
pub enum LinkEvent {
    /// The connection is open and needs the agent's state for `Hello`.
    Connected(oneshot::Sender<State>),
    /// The server sent a message.
    Message(ServerMessage),
    /// The server rejects this agent; retrying is pointless.
    Rejected(String),
}

/// What a heartbeat reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The current run, or both of a duet.
    pub running: Vec<RunId>,
    /// Why the agent takes no runs; `None` if it does.
    pub fault: Option<String>,
}

/// The connection of one agent.
#[derive(Debug)]
pub struct Link {
    /// Client of the server, with its address, trust and key.
    pub client: Client,
    /// Describes the agent; targets, run and spool are filled in at each connection.
    pub hello: Hello,
    /// The targets. While no run is in progress, a change reconnects the agent, so that the server learns of it.
    pub targets: watch::Receiver<Vec<TargetOffer>>,
    /// Uploads outcomes as soon as the server is reachable.
    pub uploader: Uploader,
    /// What its heartbeats report.
    pub condition: watch::Receiver<Condition>,
    /// Live data of the current run.
    pub live: Live,
}

impl Link {
    /// Keeps connected until `end`, on its own thread; the receiver fires when that has ended. Fails if no thread can
    /// be started.
    pub fn spawn_thread(
        self,
        events: mpsc::UnboundedSender<LinkEvent>,
        end: CancellationToken,
    ) -> std::io::Result<oneshot::Receiver<()>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (over, ended) = oneshot::channel();
        let live = move || {
            runtime.block_on(self.keep(&events, &end));
            let _ = over.send(());
        };
        std::thread::Builder::new().name("link".to_owned()).spawn(live)?;
        Ok(ended)
    }

    /// Keeps connected until `end`.
    pub async fn keep(&self, events: &mpsc::UnboundedSender<LinkEvent>, end: &CancellationToken) {
        let mut pause = FIRST_PAUSE;
        let mut warned = false;
        let mut watched = self.targets.clone();
        let (mut targets, mut accepted) = (watched.borrow_and_update().clone(), None);
        loop {
            if watched.has_changed().unwrap_or(false) {
                targets.clone_from(&watched.borrow_and_update());
            }
            let connected = tokio::select! {
                () = end.cancelled() => return,
                connected = self.connect(events, targets.clone()) => connected,
            };
            match connected {
                Ok((socket, heartbeat, mut outbox)) => {
                    tracing::info!(server = %self.server(), "connected");
                    (pause, warned, accepted) = (FIRST_PAUSE, false, Some(targets.clone()));
                    self.uploader.hurry();
                    let own = (&self.condition, &self.live, &mut watched);
                    match converse(socket, heartbeat * 3, &mut outbox, events, own, end).await {
                        Closed::ByUs => return,
                        Closed::ForTargets => {
                            targets.clone_from(&watched.borrow());
                            continue;
                        }
                        Closed::ByServer => tracing::info!(server = %self.server(), "the server closed the connection"),
                        Closed::Lost => tracing::warn!(server = %self.server(), "connection lost"),
                    }
                }
                Err(ConnectError::Rejected(reason)) if accepted.as_ref().is_some_and(|earlier| *earlier != targets) => {
                    tracing::error!(reason, "the server refuses the changed targets; the earlier ones stay");
                    targets = accepted.take().unwrap_or_default();
                    continue;
                }
                Err(ConnectError::Rejected(reason)) => {
                    let _ = events.send(LinkEvent::Rejected(reason));
                    return;
                }
                Err(ConnectError::Retry(cause)) if !warned => {
                    warned = true;
                    tracing::warn!(server = %self.server(), cause, "failed to connect; retrying");
                }
                Err(ConnectError::Retry(_)) => {}
            }
            tokio::select! {
                () = end.cancelled() => return,
                () = sleep(pause) => pause = (pause * 2).min(MAX_PAUSE),
            }
        }
    }

    fn server(&self) -> &reqwest::Url {
        self.client.base()
    }

    /// Returns a connection, the heartbeat interval that the server expects, and the messages to send.
    async fn connect(
        &self,
        events: &mpsc::UnboundedSender<LinkEvent>,
        targets: Vec<TargetOffer>,
    ) -> Result<(Socket, Duration, mpsc::UnboundedReceiver<AgentMessage>), ConnectError> {
        let mut socket = connect(&self.client).await?;
        let (reply, state) = oneshot::channel();
        let _ = events.send(LinkEvent::Connected(reply));
        let gone = |_| ConnectError::Retry("the agent is stopping".to_owned());
        let State { running, holds, outbox } = state.await.map_err(gone)?;
        let hello = Hello { targets, running, holds, ..self.hello.clone() };
        let heartbeat = introduce(&self.client, &mut socket, hello).await?;
        Ok((socket, heartbeat, outbox))
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closed {
    /// The agent stops.
    ByUs,
    /// The agent introduces itself again, with other targets.
    ForTargets,
    /// The server closed it.
    ByServer,
    /// It broke or timed out.
    Lost,
}

/// What a connection reports: the agent's condition, live data of its run, and the targets.
type Own<'a> = (&'a watch::Receiver<Condition>, &'a Live, &'a mut watch::Receiver<Vec<TargetOffer>>);

/// Sends and receives until one side closes, or nothing was received or could be sent for `silence`.
async fn converse(
    mut socket: Socket,
    silence: Duration,
    outbox: &mut mpsc::UnboundedReceiver<AgentMessage>,
    events: &mpsc::UnboundedSender<LinkEvent>,
    (condition, live, targets): Own<'_>,
    end: &CancellationToken,
) -> Closed {
    // A little more often than the server expects.
    let interval = silence / 4;
    let mut clock = interval_at(Instant::now() + interval, interval);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // A restarted server has lost what was sent before.
    let (mut sent, mut news) = (Sent::default(), live.listen());
    let mut silent_at = Instant::now() + silence;
    loop {
        let message = tokio::select! {
            biased;
            _ = clock.tick() => {
                let Condition { running, fault } = condition.borrow().clone();
                AgentMessage::Heartbeat { running, fault }
            },
            // The daemon drops its end before it cancels `end`; there is nothing left to send.
            next = outbox.recv() => match next {
                Some(message) => message,
                None => break,
            },
            () = end.cancelled() => break,
            Ok(()) = targets.changed(), if condition.borrow().running.is_empty() => {
                let _ = socket.close(None).await;
                // What the server sent before it learned of this still counts, such as a job.
                while let Ok(Ok(message)) = timeout(silence, receive(&mut socket)).await {
                    let _ = events.send(LinkEvent::Message(message));
                }
                return Closed::ForTargets;
            }
            message = timeout_at(silent_at, receive(&mut socket)) => match message {
                Ok(Ok(message)) => {
                    silent_at = Instant::now() + silence;
                    let _ = events.send(LinkEvent::Message(message));
                    continue;
                }
                Ok(Err(closed)) => return closed,
                Err(_) => return Closed::Lost,
            },
            Ok(()) = news.changed() => {
                let step = live.step(&mut sent).map(|(run, step)| AgentMessage::Step { run, step });
                let next = step.or_else(|| live.delta(&mut sent).map(|delta| AgentMessage::Series(Box::new(delta))));
                let Some(message) = next else { continue };
                // There may be more: a long past is sent in pieces, with other messages in between.
                news.mark_changed();
                message
            }
        };
        match timeout(silence, send(&mut socket, &message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return Closed::Lost,
        }
    }
    let _ = socket.close(None).await;
    Closed::ByUs
}

#[cfg(test)]
mod tests {
    use brewbench_wire::series::{Second, Window, WindowKind};
    use futures_util::{SinkExt, StreamExt};
    use tokio::net::{TcpListener, TcpStream};
    use tokio_tungstenite::tungstenite::Message;
    use tokio_tungstenite::{WebSocketStream, accept_async, connect_async};

    use super::*;
    use crate::connection::spool::Spool;

    const LONG: Duration = Duration::from_mins(1);

    /// Returns both ends of a connection.
    async fn connection() -> (Socket, WebSocketStream<TcpStream>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let url = format!("ws://{}/", listener.local_addr().expect("bound"));
        let accept = async { accept_async(listener.accept().await.expect("a client").0).await.expect("a handshake") };
        let (client, accepted) = tokio::join!(connect_async(url), accept);
        (client.expect("a connection").0, accepted)
    }

    async fn closing(socket: Socket, silence: Duration, end: &CancellationToken) -> Closed {
        let (_outbox, mut to_send) = mpsc::unbounded_channel();
        let (running, live, mut targets) =
            (watch::channel(Condition::default()).1, Live::default(), watch::channel(Vec::new()).1);
        let events = mpsc::unbounded_channel().0;
        converse(socket, silence, &mut to_send, &events, (&running, &live, &mut targets), end).await
    }

    #[tokio::test]
    async fn a_stopping_agent_closes_the_connection() {
        let (ours, mut theirs) = connection().await;
        let (outbox, mut to_send) = mpsc::unbounded_channel();
        // As the daemon does: it drops its end before it cancels the link.
        drop(outbox);
        let end = CancellationToken::new();
        let (running, live, mut targets) =
            (watch::channel(Condition::default()).1, Live::default(), watch::channel(Vec::new()).1);
        let (own, events) = ((&running, &live, &mut targets), mpsc::unbounded_channel().0);
        assert_eq!(converse(ours, LONG, &mut to_send, &events, own, &end).await, Closed::ByUs);
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));

        let (ours, mut theirs) = connection().await;
        end.cancel();
        assert_eq!(closing(ours, LONG, &end).await, Closed::ByUs);
        assert!(matches!(theirs.next().await, Some(Ok(Message::Close(_)))));
    }

    #[tokio::test]
    async fn a_closed_connection_differs_from_a_lost_one() {
        let end = CancellationToken::new();
        let (ours, mut theirs) = connection().await;
        theirs.close(None).await.expect("closed");
        assert_eq!(closing(ours, LONG, &end).await, Closed::ByServer);
        let (ours, theirs) = connection().await;
        drop(theirs);
        assert_eq!(closing(ours, LONG, &end).await, Closed::Lost);
        let (ours, _silent) = connection().await;
        assert_eq!(closing(ours, Duration::from_millis(1), &end).await, Closed::Lost);
    }

    #[tokio::test]
    async fn changed_targets_reconnect_an_idle_agent_without_losing_a_message() {
        for running in [Vec::new(), vec![RunId::now()]] {
            let (ours, mut theirs) = connection().await;
            let (events, mut received) = mpsc::unbounded_channel();
            let (_outbox, mut to_send) = mpsc::unbounded_channel();
            let (change, mut targets) = watch::channel(Vec::new());
            change.send_replace(brewbench_wire::samples::hello().targets);
            let (running_of_link, live, end) = (
                watch::channel(Condition { running: running.clone(), fault: None }).1,
                Live::default(),
                CancellationToken::new(),
            );
            let own = (&running_of_link, &live, &mut targets);
            let serve = async {
                let heartbeat = serde_json::to_string(&ServerMessage::Heartbeat).expect("JSON");
                theirs.send(Message::text(heartbeat)).await.expect("sent");
                assert!(matches!(received.recv().await, Some(LinkEvent::Message(ServerMessage::Heartbeat))));
                if !running.is_empty() {
                    end.cancel();
                }
                // Reads until the closing handshake is complete.
                while theirs.next().await.is_some_and(|message| message.is_ok()) {}
            };
            let (closed, ()) = tokio::join!(converse(ours, LONG, &mut to_send, &events, own, &end), serve);
            assert_eq!(closed, if running.is_empty() { Closed::ForTargets } else { Closed::ByUs });
        }
    }

    #[tokio::test]
    async fn every_new_connection_receives_the_series_from_its_start() {
        let live = Live::default();
        let second = Second { until_ms: 1_000, iterations: 7, ..Second::default() };
        live.begin(RunId::now());
        live.store(WindowKind::Measured, Window { seconds: vec![second], ..Window::default() });
        let events = mpsc::unbounded_channel().0;
        for _ in 0..2 {
            let (ours, mut theirs) = connection().await;
            let (end, (_outbox, mut to_send)) = (CancellationToken::new(), mpsc::unbounded_channel());
            let received = async {
                let Some(Ok(Message::Text(text))) = theirs.next().await else { panic!("no message") };
                end.cancel();
                serde_json::from_str::<AgentMessage>(&text).expect("a message")
            };
            let (running, mut targets) = (watch::channel(Condition::default()).1, watch::channel(Vec::new()).1);
            let own = (&running, &live, &mut targets);
            let (_, received) = tokio::join!(converse(ours, LONG, &mut to_send, &events, own, &end), received);
            let AgentMessage::Series(delta) = received else { panic!("{received:?}") };
            assert_eq!((delta.seconds_after_ms, delta.usage_after_ms), (0, i32::MAX));
            let seconds = delta.points.unpack().expect("unpacked").measured.expect("a window").seconds;
            assert_eq!(seconds.iter().map(|second| second.iterations).collect::<Vec<_>>(), [7]);
        }
    }

    /// Starts a server on its own thread, which expects heartbeats at this interval and reports when one arrives.
    fn listening(heartbeat: Duration) -> (reqwest::Url, std::sync::mpsc::Receiver<Instant>) {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("bound")).parse().expect("an address");
        let (seen, heartbeats) = std::sync::mpsc::channel();
        let serve = async move {
            listener.set_nonblocking(true).expect("set");
            let (stream, _) = TcpListener::from_std(listener).expect("a listener").accept().await.expect("a client");
            let mut socket = accept_async(stream).await.expect("a handshake");
            socket.next().await.expect("a message").expect("a hello");
            let heartbeat_ms = heartbeat.as_millis().try_into().expect("small");
            let welcome = ServerMessage::Welcome { protocol: 4, name: "rack".to_owned(), heartbeat_ms };
            let mut clock = tokio::time::interval(heartbeat);
            socket.send(Message::text(serde_json::to_string(&welcome).expect("JSON"))).await.expect("sent");
            let heartbeat = serde_json::to_string(&ServerMessage::Heartbeat).expect("JSON");
            loop {
                tokio::select! {
                    _ = clock.tick() => drop(socket.send(Message::text(heartbeat.clone())).await),
                    message = socket.next() => {
                        if !matches!(message, Some(Ok(Message::Text(_)))) || seen.send(Instant::now()).is_err() {
                            return;
                        }
                    }
                }
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        std::thread::spawn(move || runtime.block_on(serve));
        (url, heartbeats)
    }

    #[test]
    fn heartbeats_continue_while_all_cores_and_threads_are_busy() {
        const MAX_GAP: Duration = Duration::from_secs(5);
        let (url, heartbeats) = listening(MAX_GAP / 3);
        let folder = tempfile::tempdir().expect("a folder");
        let client = Client::new(&url, Some("bba_key".to_owned())).expect("a client");
        let spool = Spool::open(folder.path()).expect("a spool");
        let (uploader, condition) = (Uploader::new(client.clone(), spool), watch::channel(Condition::default()).1);
        let targets = watch::channel(Vec::new()).1;
        let link = Link {
            client,
            hello: brewbench_wire::samples::hello(),
            targets,
            uploader,
            condition,
            live: Live::default(),
        };
        let (receive, mut events) = mpsc::unbounded_channel();
        let end = CancellationToken::new();
        link.spawn_thread(receive, end.clone()).expect("a thread");
        let Some(LinkEvent::Connected(reply)) = events.blocking_recv() else { panic!("it connects first") };
        // From now on the agent does nothing: its work has taken all threads and all cores.
        let (_outbox, to_send) = mpsc::unbounded_channel();
        reply.send(State { running: None, holds: Vec::new(), outbox: to_send }).expect("the link waits");
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
            let at = heartbeats.recv_timeout(MAX_GAP).expect("a heartbeat within the timeout");
            (longest, last, count) = (longest.max(at - last), at, count + 1);
        }
        end.cancel();
        for burner in burners {
            burner.join().expect("an end");
        }
        println!("{} busy threads on {cores} cores: {count} heartbeats in 4 s, the longest gap {longest:?}", cores * 4);
        assert!(longest < MAX_GAP);
    }
}
