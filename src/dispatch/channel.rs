//! The agents' channel: one WebSocket per agent, with the messages of [`brewbench_wire::messages`].
//!
//! An agent may reconnect before the server notices that its old connection is dead: then the newer one counts. But a
//! key belongs to one process at a time. If a second process connects with it while the first is alive, the second is
//! refused with an explanation, and the first is not disturbed.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension,
    extract::{
        State,
        ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use brewbench_wire::{
    PROTOCOL, Phase,
    messages::{AgentMessage, Hello, ServerMessage},
    now_ms,
    offer::hello_fault,
};
use tokio::{
    sync::{mpsc, watch as signal},
    time::{Instant, MissedTickBehavior, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::{
    log::{AgentLog, shortened},
    socket::{receive, receive_hello, send},
};
use super::watch;
use crate::{
    app::{
        error::{Error, Result},
        ids::{AgentId, RunId},
        listener::Slot,
        state::AppState,
    },
    dispatch::{
        renewal::{give_up, heartbeat, lease_end, renew},
        store::leases::{self, Advance},
    },
    distributed::{
        coordinate::{self, Barriers, Coordinator, publish_change},
        store::participants,
    },
    fleet::{
        api::AgentCaller,
        model::{Availability, NamedAgent},
        presence::{Connected, Presence},
    },
    runs::store::retries::HeldRun,
};

mod log;
mod socket;

#[cfg(test)]
mod simulation;

/// How long an agent may take to send its `Hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Even a `Hello` with many targets stays far below this.
const MAX_MESSAGE: usize = 1024 * 1024;
/// Each connection has such a buffer, and most messages are a few bytes.
const BUFFER: usize = 4 * 1024;

/// Opens an agent's channel.
pub async fn open(
    AgentCaller(agent): AgentCaller,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(barriers): Extension<Barriers>,
    slot: Option<Extension<Arc<Slot>>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response> {
    if slot.is_some_and(|Extension(slot)| !slot.assign_to_agent(&agent.name)) {
        let why = "this agent already has several connections; silent ones are closed, try again later".to_owned();
        return Err(Error::Busy { why, wait_s: state.config.silence.as_secs().max(1) });
    }
    let channel = upgrade.max_message_size(MAX_MESSAGE).read_buffer_size(BUFFER).on_upgrade(move |socket| {
        let tasks = state.tasks.clone();
        tasks.track_future(async move {
            if let Err(fault) = run_channel(socket, &agent, &state, &presence, &barriers).await {
                tracing::error!(agent = agent.name, %fault, "agent channel failed");
            }
        })
    });
    Ok(channel)
}

async fn run_channel(
    mut socket: WebSocket,
    agent: &NamedAgent,
    state: &AppState,
    presence: &Presence,
    barriers: &Barriers,
) -> Result<()> {
    let name = agent.name.as_str();
    let hello = match timeout(HELLO_TIMEOUT, receive_hello(&mut socket)).await {
        Ok(Some(Ok(hello))) => hello,
        Ok(Some(Err(reason))) => {
            AgentLog { name }.warn(&reason, "agent refused");
            send(&mut socket, &ServerMessage::Refused { reason }).await;
            return Ok(());
        }
        Ok(None) | Err(_) => return Ok(()),
    };
    if let Some(reason) = refusal(name, &hello, state, presence).await? {
        AgentLog { name }.warn(&reason, "agent refused");
        send(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    if let Some(reason) = crate::fleet::model::engine_fault(&hello) {
        AgentLog { name }.warn(&reason, "agent refused");
        crate::fleet::store::store_hello(&mut *state.db.write.acquire().await?, agent.id, &hello, now_ms()).await?;
        state.events.agents_changed();
        send(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    let (connection, inbox, close) = AgentConnection::enter(agent, hello, state, presence, barriers).await?;
    let outcome = connection.welcome(socket, inbox, close).await;
    connection.leave().await?;
    outcome
}

/// Returns why an agent must not connect: a sentence for its owner.
async fn refusal(name: &str, hello: &Hello, state: &AppState, presence: &Presence) -> Result<Option<String>> {
    if let Some(reason) = hello_fault(hello) {
        return Ok(Some(reason));
    }
    let offered = hello.targets.iter().map(|offer| offer.name.as_str());
    let fault = crate::catalog::store::names::target_fault(&mut *state.db.read.acquire().await?, offered).await?;
    if let Some(fault) = fault {
        return Ok(Some(format!("this agent offers a target with a confusable name: {fault}")));
    }
    match presence.rival(name, hello.life) {
        Some(other) if is_alive(&other, state.config.silence).await => Ok(Some(format!(
            "another process is connected with this agent's key, on {}: stop one of them, or create a key for this one \
            with `brewbench agent-key new NAME`",
            other.hello.machine.hostname
        ))),
        _ => Ok(None),
    }
}

/// Whether an agent sends a message before its connection counts as silent.
async fn is_alive(other: &Connected, silence: Duration) -> bool {
    let mut heard = other.activity.clone();
    heard.mark_unchanged();
    // An error means that the connection has just ended.
    matches!(timeout(silence, heard.changed()).await, Ok(Ok(())))
}

/// Gives up the runs of an agent that was disabled, revoked or removed.
async fn give_up_if_cut_off(state: &AppState, agent: AgentId) -> Result<()> {
    let fate = match crate::fleet::store::availability(&state.db.read, agent).await? {
        Some(Availability::Disabled) => "was disabled",
        None => "was revoked or removed",
        Some(Availability::Enabled | Availability::Drained) => return Ok(()),
    };
    for lease in &leases::held_by(&state.db.read, agent).await? {
        give_up(state, lease, fate).await?;
    }
    Ok(())
}

/// Compares the leases of an agent with the runs that it reports to hold.
///
/// A run that it no longer holds is lost at once. A run that was given up is revived if its retry has not started, and
/// is otherwise cancelled on the agent.
async fn reconcile(
    state: &AppState,
    agent: &NamedAgent,
    hello: &Hello,
    outbox: &mpsc::UnboundedSender<ServerMessage>,
) -> Result<Option<brewbench_wire::RunId>> {
    let holds: BTreeSet<RunId> = hello.holds.iter().copied().map(RunId::from).collect();
    for run in leases::lost_by(&state.db.read, agent.id, &holds).await? {
        if leases::revive(&state.db.write, &run.id, agent.id, now_ms(), lease_end(state)).await? {
            tracing::info!(run = run.id.as_str(), agent = agent.name, "lost run revived");
            publish_change(state, &run);
        }
    }
    let held = leases::held_by(&state.db.read, agent.id).await?;
    for lease in &held {
        if holds.contains(&lease.run) {
            leases::renew(&state.db.write, &lease.run, agent.id, lease_end(state)).await?;
        } else {
            give_up(state, lease, "was restarted and no longer holds the run").await?;
        }
    }
    let is_held = |id: &RunId| held.iter().any(|lease| lease.run == *id);
    let given_up = |run: &brewbench_wire::RunId| !is_held(&RunId::from(*run));
    if let Some(run) = hello.running.filter(given_up) {
        let _ = outbox.send(ServerMessage::Cancel { run });
    }
    Ok(hello.running)
}

/// One connection of one agent.
struct AgentConnection<'a> {
    agent: &'a NamedAgent,
    connection: Uuid,
    state: &'a AppState,
    presence: &'a Presence,
    barriers: &'a Barriers,
    /// Signals each message, as a sign of life, to other connections with the same key.
    heard: signal::Sender<()>,
}

impl<'a> AgentConnection<'a> {
    /// Registers the agent as connected. Returns the messages to send to it, and the token that closes the connection.
    async fn enter(
        agent: &'a NamedAgent,
        hello: Box<Hello>,
        state: &'a AppState,
        presence: &'a Presence,
        barriers: &'a Barriers,
    ) -> Result<(Self, mpsc::UnboundedReceiver<ServerMessage>, CancellationToken)> {
        let (now, name) = (now_ms(), agent.name.as_str());
        // One transaction, because many agents reconnect together after a restart and each commit waits for the disk.
        let mut transaction = state.db.write.begin().await?;
        crate::fleet::store::store_hello(&mut transaction, agent.id, &hello, now).await?;
        crate::catalog::store::keep_targets(&mut transaction, agent.id, &hello.targets, now).await?;
        transaction.commit().await?;
        let (outbox, inbox) = mpsc::unbounded_channel();
        let (connection, close) = (Uuid::new_v4(), state.shutdown.child_token());
        let busy = reconcile(state, agent, &hello, &outbox).await?;
        let (heard, ears) = signal::channel(());
        let connected = Connected {
            id: agent.id,
            // Removed or revoked since it authenticated: it gets no runs, and is cut off below.
            availability: crate::fleet::store::availability(&state.db.read, agent.id)
                .await?
                .unwrap_or(Availability::Disabled),
            labels: crate::fleet::store::labels(&state.db.read, agent.id).await?.into(),
            activity: ears,
            connection,
            clock_offset_ms: hello.now_ms - now,
            hello: Arc::from(hello),
            busy,
            fault: None,
            inspecting: None,
            declined: HashSet::new(),
            outbox,
            close: close.clone(),
        };
        tracing::info!(agent = name, engine = %connected.hello.engines.iter().map(|engine| engine.version().to_string()).collect::<Vec<_>>().join(", "), "agent connected");
        presence.enter(name, connected);
        Ok((Self { agent, connection, state, presence, barriers, heard }, inbox, close))
    }

    /// Registers the agent as gone, unless it has reconnected.
    async fn leave(&self) -> Result<()> {
        let Self { agent, connection, state, presence, .. } = *self;
        presence.leave(&agent.name, connection);
        state.events.agents_changed();
        crate::fleet::store::seen(&state.db.write, agent.id, now_ms()).await?;
        tracing::info!(agent = agent.name, "agent disconnected");
        give_up_if_cut_off(state, agent.id).await
    }

    /// Welcomes the agent, then serves it until it disconnects.
    async fn welcome(
        &self,
        mut socket: WebSocket,
        inbox: mpsc::UnboundedReceiver<ServerMessage>,
        close: CancellationToken,
    ) -> Result<()> {
        let Self { agent, state, presence, .. } = *self;
        let name = agent.name.as_str();
        // Read again what may have changed before it was registered; later changes reach it through `Presence`.
        match crate::fleet::store::availability(&state.db.read, agent.id).await? {
            Some(Availability::Disabled) | None => presence.disconnect(name),
            Some(availability) => presence.set_availability(name, availability),
        }
        presence.set_labels(name, &crate::fleet::store::labels(&state.db.read, agent.id).await?);
        state.events.agents_changed();
        state.work.notify_one();
        // Welcome it only now, so that a welcomed agent is on every page. Until then, jobs wait in the inbox.
        let heartbeat_ms = u64::try_from(heartbeat(state).as_millis()).unwrap_or(u64::MAX);
        send(&mut socket, &ServerMessage::Welcome { protocol: PROTOCOL, name: name.to_owned(), heartbeat_ms }).await;
        if crate::fleet::store::wants_key_change(&state.db.read, agent.id).await? {
            send(&mut socket, &ServerMessage::ChangeKey).await;
        }
        self.serve(socket, inbox, close).await
    }

    async fn serve(
        &self,
        mut socket: WebSocket,
        mut inbox: mpsc::UnboundedReceiver<ServerMessage>,
        close: CancellationToken,
    ) -> Result<()> {
        let mut clock = tokio::time::interval(heartbeat(self.state));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (silence, log) = (self.state.config.silence, AgentLog { name: &self.agent.name });
        let mut silent_at = Instant::now() + silence;
        loop {
            let message = tokio::select! {
                () = close.cancelled() => {
                    while let Ok(message) = inbox.try_recv() {
                        send(&mut socket, &message).await;
                    }
                    // The agent must not mistake this for a broken connection.
                    let close_frame = CloseFrame { code: close_code::AWAY, reason: "".into() };
                    let _ = socket.send(Message::Close(Some(close_frame))).await;
                    return Ok(());
                }
                message = timeout_at(silent_at, receive(&mut socket, &log)) => match message {
                    Ok(Some(message)) => {
                        silent_at = Instant::now() + silence;
                        self.heard.send_replace(());
                        self.handle(message).await?;
                        continue;
                    }
                    Ok(None) | Err(_) => return Ok(()),
                },
                Some(message) = inbox.recv() => message,
                _ = clock.tick() => ServerMessage::Heartbeat,
            };
            // An agent that stops reading counts as disconnected.
            if timeout(silence, send(&mut socket, &message)).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn handle(&self, message: AgentMessage) -> Result<()> {
        match message {
            AgentMessage::Hello(_) => {}
            AgentMessage::Heartbeat { running, fault } => {
                self.note_fault(fault);
                // Other runs that it holds are results to upload: those are its own until they arrive.
                for run in running {
                    if !renew(self.state, &run.into(), self.agent.id).await? {
                        // The run ended while the agent was unreachable, or belongs to another agent.
                        self.presence.send(&self.agent.name, ServerMessage::Cancel { run });
                    }
                }
            }
            AgentMessage::Phase { run, phase } => {
                if !phase.is_final() && phase != Phase::Queued {
                    self.advance(run, phase).await?;
                }
            }
            AgentMessage::Step { run, step } => {
                watch::set_step(self.state, self.agent, run, &step).await?;
                self.publish(&run.into()).await?;
            }
            AgentMessage::Series(delta) => watch::add(self.state, self.agent, &delta).await?,
            AgentMessage::Done { run } => {
                renew(self.state, &run.into(), self.agent.id).await?;
                self.presence.done(&self.agent.name, self.connection, run);
                self.state.work.notify_one();
            }
            AgentMessage::At { run, gate, base_url } => {
                self.coordinator().arrive(&self.agent.name, run, gate, base_url).await?;
            }
            AgentMessage::Clock { sent_ms, now_ms } => {
                self.coordinator().clock(&self.agent.name, sent_ms, now_ms).await?;
            }
            AgentMessage::Inspected { id, finding } => self.presence.deliver_finding(id, finding),
            AgentMessage::Declined { run, reason } => self.declined(run, &reason).await?,
        }
        Ok(())
    }

    fn coordinator(&self) -> Coordinator<'_> {
        let Self { state, presence, barriers, .. } = *self;
        Coordinator { state, presence, barriers }
    }

    async fn advance(&self, run: brewbench_wire::RunId, phase: Phase) -> Result<()> {
        let id = RunId::from(run);
        match leases::advance(&self.state.db.write, &id, self.agent.id, phase, now_ms()).await? {
            Advance::Moved => self.publish(&id).await?,
            // Sent over an earlier connection, and received after newer messages.
            Advance::Behind => {}
            Advance::NotHeld => drop(self.presence.send(&self.agent.name, ServerMessage::Cancel { run })),
        }
        Ok(())
    }

    /// Notes why the agent takes no runs. Once it does again, it may be the agent that a run waits for.
    fn note_fault(&self, fault: Option<String>) {
        let fault = fault.map(|fault| shortened(&fault));
        if self.presence.set_fault(&self.agent.name, self.connection, fault) {
            self.state.events.agents_changed();
            self.state.work.notify_one();
        }
    }

    async fn declined(&self, run: brewbench_wire::RunId, reason: &str) -> Result<()> {
        let reason = &shortened(reason);
        AgentLog { name: &self.agent.name }.warn(&format!("{run}: {reason}"), "run declined");
        self.presence.decline(&self.agent.name, self.connection, run);
        let id = RunId::from(run);
        if !participants::of(&self.state.db.read, &id).await?.is_empty() {
            // The other participants have started: their results must not count for a new attempt with this id.
            coordinate::give_up(self.state, &id, &format!("{} declined: {reason}", self.agent.name)).await?;
        } else if leases::give_back(&self.state.db.write, &id, self.agent.id, now_ms()).await? {
            self.publish(&id).await?;
        }
        self.state.work.notify_one();
        Ok(())
    }

    async fn publish(&self, id: &RunId) -> Result<()> {
        let run = crate::runs::store::find(&self.state.db.rows, id).await?;
        if let Some(run) = run {
            publish_change(self.state, &HeldRun { id: run.id, experiment_id: run.experiment });
        }
        Ok(())
    }
}
