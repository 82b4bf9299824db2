//! The agents' channel: one WebSocket an agent, the conversation of [`brewbench_agent::wire::messages`].
//!
//! An agent that lost its connection may be back before the old one is found dead: then the newer counts. But a key
//! belongs to one process at a time: if another one comes with it, and the one that is connected gives a sign of life,
//! the other is refused, with a sentence, and nothing that the first does is touched.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{
    Extension,
    extract::{
        State,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use brewbench_agent::wire::{
    self, PROTOCOL, Phase,
    messages::{AgentMessage, Hello, ServerMessage, protocol_of},
    now_ms,
    offer::hello_fault,
    version_mismatch,
};
use tokio::{
    sync::{mpsc, watch as signs},
    time::{Instant, MissedTickBehavior, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::watch;
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        listener::Place,
        state::AppState,
    },
    dispatch::{
        renewal::{give_up, heartbeat, lease_end, prolong},
        store::leases::{self, Advance},
    },
    distributed::{
        coordinate::{self, Meetings, Together, tell},
        store::participants,
    },
    fleet::{
        api::AgentCaller,
        model::Standing,
        presence::{Connected, Presence},
    },
    runs::store::retries::HeldRun,
};

#[cfg(test)]
mod simulation;

/// How long an agent may take to introduce itself.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// An introduction with many targets stays far below this.
const LARGEST_MESSAGE: usize = 1024 * 1024;
/// Most of what is said is a few bytes, and every connection has such a buffer.
const BUFFER: usize = 4 * 1024;

/// Opens an agent's channel.
pub async fn open(
    caller: AgentCaller,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(meetings): Extension<Meetings>,
    place: Option<Extension<Arc<Place>>>,
    upgrade: WebSocketUpgrade,
) -> Result<Response> {
    if place.is_some_and(|Extension(place)| !place.becomes_agents(&caller.name)) {
        let why =
            "this agent is connected several times already; they are ended when nothing is heard of them".to_owned();
        return Err(Error::Busy { why, wait_s: state.config.silence.as_secs().max(1) });
    }
    let channel = upgrade.max_message_size(LARGEST_MESSAGE).read_buffer_size(BUFFER).on_upgrade(move |socket| {
        let tasks = state.tasks.clone();
        tasks.track_future(async move {
            if let Err(fault) = converse(socket, &caller.name, &state, &presence, &meetings).await {
                tracing::error!(agent = caller.name, %fault, "channel");
            }
        })
    });
    Ok(channel)
}

async fn converse(
    mut socket: WebSocket,
    name: &str,
    state: &AppState,
    presence: &Presence,
    meetings: &Meetings,
) -> Result<()> {
    let hello = match timeout(INTRODUCTION, introduction(&mut socket)).await {
        Ok(Some(Ok(hello))) => hello,
        Ok(Some(Err(reason))) => {
            tracing::warn!(agent = name, reason, "refused");
            say(&mut socket, &ServerMessage::Refused { reason }).await;
            return Ok(());
        }
        Ok(None) | Err(_) => return Ok(()),
    };
    if let Some(reason) = refusal(name, &hello, state, presence).await? {
        tracing::warn!(agent = name, reason, "refused");
        say(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    if let Some(reason) = crate::fleet::model::engine_fault(&hello) {
        tracing::warn!(agent = name, reason, "refused");
        crate::fleet::store::keep_hello(&mut *state.db.write.acquire().await?, name, &hello, now_ms()).await?;
        state.events.agents_changed();
        say(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    let (visit, inbox, close) = Visit::enter(name, hello, state, presence, meetings).await?;
    let done = visit.stay(socket, inbox, close).await;
    visit.leave().await?;
    done
}

/// Why an agent can't stay, whatever it could do: a sentence for its owner.
async fn refusal(name: &str, hello: &Hello, state: &AppState, presence: &Presence) -> Result<Option<String>> {
    if let Some(reason) = hello_fault(hello) {
        return Ok(Some(reason));
    }
    let offered = hello.targets.iter().map(|offer| offer.name.as_str());
    let fault = crate::catalog::store::names::target_fault(&mut *state.db.read.acquire().await?, offered).await?;
    if let Some(fault) = fault {
        return Ok(Some(format!("this agent offers a target that can be taken for another: {fault}")));
    }
    match presence.rival(name, hello.life) {
        Some(other) if is_alive(&other, state.config.silence).await => Ok(Some(format!(
            "another process is connected with this agent's key, on {}: end one of them, or give this one a key of its \
             own by `brewbench agent-key new NAME`",
            other.hello.machine.hostname
        ))),
        _ => Ok(None),
    }
}

/// Whether a connection's other side says something before it counts as silent.
async fn is_alive(other: &Connected, silence: Duration) -> bool {
    let mut ears = other.ears.clone();
    ears.mark_unchanged();
    // An error: the connection has just ended.
    matches!(timeout(silence, ears.changed()).await, Ok(Ok(())))
}

/// Nobody waits for an agent that was disabled, revoked or forgotten.
async fn give_up_of_who_was_cut_off(state: &AppState, name: &str) -> Result<()> {
    let fate = match crate::fleet::store::standing(&state.db.read, name).await? {
        Some(Standing::Disabled) => "was disabled",
        None => "was revoked or forgotten",
        Some(Standing::Enabled | Standing::Drained) => return Ok(()),
    };
    for lease in &leases::held_by(&state.db.read, name).await? {
        give_up(state, lease, fate).await?;
    }
    Ok(())
}

/// Compares our books with what an agent says that it holds: what it no longer holds is lost at once; what was given up
/// meanwhile is its own again as long as nobody has begun to measure it anew, and else is stopped there.
async fn take_stock(
    state: &AppState,
    name: &str,
    hello: &Hello,
    outbox: &mpsc::UnboundedSender<ServerMessage>,
) -> Result<Option<wire::RunId>> {
    let holds: BTreeSet<RunId> = hello.holds.iter().copied().map(RunId::from).collect();
    for run in leases::lost_by(&state.db.read, name, &holds).await? {
        if leases::revive(&state.db.write, &run.id, name, now_ms(), lease_end(state)).await? {
            tracing::info!(run = run.id.as_str(), agent = name, "a lost run is there again");
            tell(state, &run);
        }
    }
    let held = leases::held_by(&state.db.read, name).await?;
    for lease in &held {
        if holds.contains(&lease.run) {
            leases::prolong(&state.db.write, &lease.run, name, lease_end(state)).await?;
        } else {
            give_up(state, lease, "was restarted and no longer holds the run").await?;
        }
    }
    let is_held = |id: &RunId| held.iter().any(|lease| lease.run == *id);
    let given_up = |run: &wire::RunId| !is_held(&RunId::from(*run));
    if let Some(run) = hello.running.filter(given_up) {
        let _ = outbox.send(ServerMessage::Cancel { run });
    }
    Ok(hello.running)
}

/// One connection of one agent.
struct Visit<'a> {
    name: &'a str,
    connection: Uuid,
    state: &'a AppState,
    presence: &'a Presence,
    meetings: &'a Meetings,
    /// Tells others with its key that it is alive.
    heard: signs::Sender<()>,
}

impl<'a> Visit<'a> {
    /// From now on it is connected: what it is told goes through the inbox, and it goes when it is told to close.
    async fn enter(
        name: &'a str,
        hello: Box<Hello>,
        state: &'a AppState,
        presence: &'a Presence,
        meetings: &'a Meetings,
    ) -> Result<(Self, mpsc::UnboundedReceiver<ServerMessage>, CancellationToken)> {
        let now = now_ms();
        // At once: many come together after the server was away, and each waits for the disk.
        let mut transaction = state.db.write.begin().await?;
        crate::fleet::store::keep_hello(&mut transaction, name, &hello, now).await?;
        crate::catalog::store::keep_targets(&mut transaction, name, &hello.targets, now).await?;
        transaction.commit().await?;
        let (outbox, inbox) = mpsc::unbounded_channel();
        let (connection, close) = (Uuid::new_v4(), state.shutdown.child_token());
        let busy = take_stock(state, name, &hello, &outbox).await?;
        let (heard, ears) = signs::channel(());
        let agent = Connected {
            // Unknown or revoked since it proved who it is: it gets nothing, and will be told.
            standing: crate::fleet::store::standing(&state.db.read, name).await?.unwrap_or(Standing::Disabled),
            labels: crate::fleet::store::labels(&state.db.read, name).await?.into(),
            ears,
            connection,
            clock_offset_ms: hello.now_ms - now,
            hello: Arc::from(hello),
            busy,
            inspecting: None,
            declined: HashSet::new(),
            outbox,
            close: close.clone(),
        };
        tracing::info!(agent = name, engine = %agent.hello.engines.iter().map(|engine| engine.version().to_string()).collect::<Vec<_>>().join(", "), "agent connected");
        presence.enter(name, agent);
        Ok((Self { name, connection, state, presence, meetings, heard }, inbox, close))
    }

    /// It is gone, unless it has connected anew meanwhile.
    async fn leave(&self) -> Result<()> {
        let Self { name, connection, state, presence, .. } = *self;
        presence.leave(name, connection);
        state.events.agents_changed();
        crate::fleet::store::seen(&state.db.write, name, now_ms()).await?;
        tracing::info!(agent = name, "agent gone");
        give_up_of_who_was_cut_off(state, name).await
    }

    async fn stay(
        &self,
        mut socket: WebSocket,
        inbox: mpsc::UnboundedReceiver<ServerMessage>,
        close: CancellationToken,
    ) -> Result<()> {
        let Self { name, state, presence, .. } = *self;
        // What somebody has said of it since it was asked: from now on that reaches who has entered.
        match crate::fleet::store::standing(&state.db.read, name).await? {
            Some(Standing::Disabled) | None => presence.cut(name),
            Some(standing) => presence.set_standing(name, standing),
        }
        presence.set_labels(name, &crate::fleet::store::labels(&state.db.read, name).await?);
        state.events.agents_changed();
        state.work.notify_one();
        // Only now, so that who was welcomed is on every page. Jobs wait in the inbox meanwhile.
        let heartbeat_ms = u64::try_from(heartbeat(state).as_millis()).unwrap_or(u64::MAX);
        say(&mut socket, &ServerMessage::Welcome { protocol: PROTOCOL, name: name.to_owned(), heartbeat_ms }).await;
        if crate::fleet::store::wants_key_change(&state.db.read, name).await? {
            say(&mut socket, &ServerMessage::ChangeKey).await;
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
        let silence = self.state.config.silence;
        let mut silent_at = Instant::now() + silence;
        loop {
            let message = tokio::select! {
                () = close.cancelled() => {
                    while let Ok(message) = inbox.try_recv() {
                        say(&mut socket, &message).await;
                    }
                    // A goodbye: the agent shall not take it for a broken line.
                    let goodbye = CloseFrame { code: close_code::AWAY, reason: "".into() };
                    let _ = socket.send(Message::Close(Some(goodbye))).await;
                    return Ok(());
                }
                message = timeout_at(silent_at, hear(&mut socket)) => match message {
                    Ok(Some(message)) => {
                        silent_at = Instant::now() + silence;
                        self.heard.send_replace(());
                        self.take(message).await?;
                        continue;
                    }
                    Ok(None) | Err(_) => return Ok(()),
                },
                Some(message) = inbox.recv() => message,
                _ = clock.tick() => ServerMessage::Heartbeat,
            };
            // Who takes nothing is as gone as who says nothing.
            if timeout(silence, say(&mut socket, &message)).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn take(&self, message: AgentMessage) -> Result<()> {
        match message {
            AgentMessage::Hello(_) => {}
            AgentMessage::Heartbeat { running } => {
                // What it holds apart from its work are results on their way: those are its own until they arrive.
                if let Some(run) = running
                    && !prolong(self.state, &run.into(), self.name).await?
                {
                    // It ended here while nobody could tell the agent, or is none of its own.
                    self.presence.send(self.name, ServerMessage::Cancel { run });
                }
            }
            AgentMessage::Phase { run, phase } => {
                if !phase.is_final() && phase != Phase::Queued {
                    self.advance(run, phase).await?;
                }
            }
            AgentMessage::Series(portion) => watch::take(self.state, self.name, &portion).await?,
            AgentMessage::Done { run } => {
                prolong(self.state, &run.into(), self.name).await?;
                self.presence.done(self.name, self.connection, run);
                self.state.work.notify_one();
            }
            AgentMessage::At { run, gate, base_url } => self.together().arrive(self.name, run, gate, base_url).await?,
            AgentMessage::Clock { asked_ms, now_ms } => self.together().clock(self.name, asked_ms, now_ms).await?,
            AgentMessage::Inspected { id, finding } => self.presence.answer(id, finding),
            AgentMessage::Declined { run, reason } => self.declined(run, &reason).await?,
        }
        Ok(())
    }

    fn together(&self) -> Together<'_> {
        let Self { state, presence, meetings, .. } = *self;
        Together { state, presence, meetings }
    }

    async fn advance(&self, run: wire::RunId, phase: Phase) -> Result<()> {
        let id = RunId::from(run);
        match leases::advance(&self.state.db.write, &id, self.name, phase, now_ms()).await? {
            Advance::Moved => self.tell(&id).await?,
            // Said in an earlier connection, and heard after what was said in this one.
            Advance::Behind => {}
            Advance::NotHeld => drop(self.presence.send(self.name, ServerMessage::Cancel { run })),
        }
        Ok(())
    }

    async fn declined(&self, run: wire::RunId, reason: &str) -> Result<()> {
        tracing::warn!(agent = self.name, %run, reason, "run declined");
        self.presence.decline(self.name, self.connection, run);
        let id = RunId::from(run);
        if !participants::of(&self.state.db.read, &id).await?.is_empty() {
            // The others have begun: what comes of that under this id would be taken for what comes of the next try.
            coordinate::give_up(self.state, &id, &format!("{} would not go on: {reason}", self.name)).await?;
        } else if leases::give_back(&self.state.db.write, &id, self.name, now_ms()).await? {
            self.tell(&id).await?;
        }
        self.state.work.notify_one();
        Ok(())
    }

    async fn tell(&self, id: &RunId) -> Result<()> {
        let run = crate::runs::store::one(&self.state.db.rows, id).await?;
        if let Some(run) = run {
            tell(self.state, &HeldRun { id: run.id, experiment_id: run.experiment });
        }
        Ok(())
    }
}

/// So many messages in a row that can't be read are another language, and not a newer one.
const MOST_UNREADABLE: usize = 20;

/// An agent's introduction, or a sentence that says why it can't work with this server; none when the other side is gone or
/// says something else.
async fn introduction(socket: &mut WebSocket) -> Option<Result<Box<Hello>, String>> {
    let text = text(socket).await?;
    if let Some(reason) = version_mismatch(protocol_of(&text)?, PROTOCOL) {
        return Some(Err(reason));
    }
    match serde_json::from_str(&text) {
        Ok(AgentMessage::Hello(hello)) => Some(Ok(hello)),
        Ok(_) => None,
        Err(fault) => Some(Err(format!("this agent's introduction can't be read: {fault}"))),
    }
}

/// The next message that can be read; none when the other side is gone or speaks another language.
async fn hear(socket: &mut WebSocket) -> Option<AgentMessage> {
    for _ in 0..MOST_UNREADABLE {
        match serde_json::from_str(&text(socket).await?) {
            Ok(message) => return Some(message),
            Err(fault) => tracing::warn!(%fault, "an agent's message can't be read"),
        }
    }
    None
}

async fn text(socket: &mut WebSocket) -> Option<Utf8Bytes> {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(text) = message {
            return Some(text);
        }
    }
    None
}

/// Says something. A socket that is gone shows when it is listened to.
async fn say(socket: &mut WebSocket, message: &ServerMessage) {
    if let Ok(text) = serde_json::to_string(message) {
        let _ = socket.send(Message::text(text)).await;
    }
}
