//! The agents' channel: one WebSocket an agent, the conversation of [`brewbench_agent::wire::messages`].
//!
//! An agent that lost its connection may be back before the old one is found dead: then the newer counts. But a key
//! belongs to one process at a time: if another one comes with it, and the one that is connected gives a sign of life,
//! the other is refused, with a sentence, and nothing that the first does is touched.

use std::{collections::HashSet, str::FromStr, sync::Arc, time::Duration};

use axum::{
    Extension,
    extract::{
        State,
        ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code},
    },
    response::Response,
};
use brewbench_agent::wire::{
    PROTOCOL, Phase, RunId, apart,
    messages::{AgentMessage, Hello, ServerMessage},
    now_ms,
};
use tokio::{
    sync::{mpsc, watch as signs},
    time::{Instant, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{HEARTBEAT, lease_end, lose, tell, watch};
use crate::{
    catalog,
    error::Result,
    fleet::{self, Connected, Presence, Standing, api::AgentCaller},
    runs::queries::leases::{self, HeldRun},
    state::AppState,
};

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
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade.max_message_size(LARGEST_MESSAGE).read_buffer_size(BUFFER).on_upgrade(move |socket| {
        let tasks = state.tasks.clone();
        tasks.track_future(async move {
            if let Err(fault) = converse(socket, &caller.name, &state, &presence).await {
                tracing::error!(agent = caller.name, %fault, "channel");
            }
        })
    })
}

async fn converse(mut socket: WebSocket, name: &str, state: &AppState, presence: &Presence) -> Result<()> {
    let Ok(Some(AgentMessage::Hello(hello))) = timeout(INTRODUCTION, hear(&mut socket)).await else { return Ok(()) };
    if let Some(reason) = apart(hello.protocol, PROTOCOL) {
        say(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    if let Some(other) = presence.rival(name, hello.life)
        && is_alive(&other).await
    {
        let reason = format!(
            "another process is connected with this agent's key, on {}: end one of them, or give this one a key of its \
             own by `brewbench agent-key new NAME`",
            other.hello.machine.hostname
        );
        tracing::warn!(agent = name, reason, "refused");
        say(&mut socket, &ServerMessage::Refused { reason }).await;
        return Ok(());
    }
    let now = now_ms();
    // At once: many come together after the server was away, and each waits for the disk.
    let mut transaction = state.db.write.begin().await?;
    fleet::queries::keep_hello(&mut transaction, name, &hello, now).await?;
    catalog::queries::keep_targets(&mut transaction, &hello.targets, now).await?;
    transaction.commit().await?;
    let (outbox, inbox) = mpsc::unbounded_channel();
    let (connection, close) = (Uuid::new_v4(), state.shutdown.child_token());
    let busy = take_stock(state, name, &hello, &outbox).await?;
    let (heard, ears) = signs::channel(());
    let agent = Connected {
        // Unknown or revoked since it proved who it is: it gets nothing, and will be told.
        standing: fleet::queries::standing(&state.db.read, name).await?.unwrap_or(Standing::Disabled),
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
    tracing::info!(agent = name, k6 = agent.hello.k6_version, "agent connected");
    presence.enter(name, agent);
    let visit = Visit { name, connection, state, presence, heard };
    let done = visit.stay(socket, inbox, close).await;
    presence.leave(name, connection);
    state.events.agents_changed();
    fleet::queries::seen(&state.db.write, name, now_ms()).await?;
    tracing::info!(agent = name, "agent gone");
    give_up_of_who_was_cut_off(state, name).await?;
    done
}

/// Whether a connection's other side says something before it counts as silent.
async fn is_alive(other: &Connected) -> bool {
    let mut ears = other.ears.clone();
    ears.mark_unchanged();
    // An error: the connection has just ended.
    matches!(timeout(HEARTBEAT * 3, ears.changed()).await, Ok(Ok(())))
}

/// Nobody waits for an agent that was disabled, revoked or forgotten.
async fn give_up_of_who_was_cut_off(state: &AppState, name: &str) -> Result<()> {
    let why = match fleet::queries::standing(&state.db.read, name).await? {
        Some(Standing::Disabled) => "its agent was disabled",
        None => "its agent's key was revoked, or it was forgotten",
        Some(Standing::Enabled | Standing::Drained) => return Ok(()),
    };
    for run in &leases::held_by(&state.db.read, name).await? {
        lose(state, run, why).await?;
    }
    Ok(())
}

/// Compares our books with what an agent says that it holds: what it no longer holds is lost at once, and what we have
/// given up meanwhile is stopped there.
async fn take_stock(
    state: &AppState,
    name: &str,
    hello: &Hello,
    outbox: &mpsc::UnboundedSender<ServerMessage>,
) -> Result<Option<RunId>> {
    let held = leases::held_by(&state.db.read, name).await?;
    for run in &held {
        let still = RunId::from_str(&run.id).is_ok_and(|id| hello.holds.contains(&id));
        if still {
            leases::prolong(&state.db.write, &run.id, name, lease_end(state)).await?;
        } else {
            lose(state, run, "its agent was started anew and no longer holds it").await?;
        }
    }
    let given_up = |run: &RunId| !held.iter().any(|held| held.id == run.to_string());
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
    /// Tells others with its key that it is alive.
    heard: signs::Sender<()>,
}

impl Visit<'_> {
    async fn stay(
        &self,
        mut socket: WebSocket,
        inbox: mpsc::UnboundedReceiver<ServerMessage>,
        close: CancellationToken,
    ) -> Result<()> {
        let Self { name, state, presence, .. } = *self;
        // What somebody has said of it since it was asked: from now on that reaches who has entered.
        match fleet::queries::standing(&state.db.read, name).await? {
            Some(Standing::Disabled) | None => presence.cut(name),
            Some(standing) => presence.set_standing(name, standing),
        }
        state.events.agents_changed();
        state.work.notify_one();
        // Only now, so that who was welcomed is on every page. Jobs wait in the inbox meanwhile.
        let heartbeat_ms = u64::try_from(HEARTBEAT.as_millis()).unwrap_or(u64::MAX);
        say(&mut socket, &ServerMessage::Welcome { protocol: PROTOCOL, name: name.to_owned(), heartbeat_ms }).await;
        if fleet::queries::wants_key_change(&state.db.read, name).await? {
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
        let mut clock = tokio::time::interval(HEARTBEAT);
        let mut silent_at = Instant::now() + HEARTBEAT * 3;
        loop {
            tokio::select! {
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
                        silent_at = Instant::now() + HEARTBEAT * 3;
                        self.heard.send_replace(());
                        self.take(message).await?;
                    }
                    Ok(None) | Err(_) => return Ok(()),
                },
                Some(message) = inbox.recv() => say(&mut socket, &message).await,
                _ = clock.tick() => say(&mut socket, &ServerMessage::Heartbeat).await,
            }
        }
    }

    async fn take(&self, message: AgentMessage) -> Result<()> {
        match message {
            AgentMessage::Hello(_) => {}
            AgentMessage::Heartbeat { running } => {
                // What it holds apart from its work are results on their way: those are its own until they arrive.
                if let Some(run) = running {
                    leases::prolong(&self.state.db.write, &run.to_string(), self.name, lease_end(self.state)).await?;
                }
            }
            AgentMessage::Phase { run, phase } => {
                if !phase.is_final() && phase != Phase::Queued {
                    self.advance(run, phase).await?;
                }
            }
            AgentMessage::Series(portion) => watch::take(self.state, self.name, &portion).await?,
            AgentMessage::Done { run } => {
                leases::prolong(&self.state.db.write, &run.to_string(), self.name, lease_end(self.state)).await?;
                self.presence.set_busy(self.name, self.connection, None);
                self.state.work.notify_one();
            }
            AgentMessage::Inspected { id, finding } => self.presence.answer(id, finding),
            AgentMessage::Declined { run, reason } => self.declined(run, &reason).await?,
        }
        Ok(())
    }

    async fn advance(&self, run: RunId, phase: Phase) -> Result<()> {
        let id = run.to_string();
        let moved = leases::advance(&self.state.db.write, &id, self.name, phase.as_str(), now_ms()).await?;
        if moved {
            self.tell(&id).await?;
        } else {
            self.presence.send(self.name, ServerMessage::Cancel { run });
        }
        Ok(())
    }

    async fn declined(&self, run: RunId, reason: &str) -> Result<()> {
        tracing::warn!(agent = self.name, %run, reason, "run declined");
        self.presence.decline(self.name, self.connection, run);
        if leases::give_back(&self.state.db.write, &run.to_string(), self.name, now_ms()).await? {
            self.tell(&run.to_string()).await?;
        }
        self.state.work.notify_one();
        Ok(())
    }

    async fn tell(&self, id: &str) -> Result<()> {
        let run = crate::runs::queries::one(&self.state.db.read, id).await?;
        if let Some(run) = run {
            tell(self.state, &HeldRun { id: run.id, experiment_id: run.experiment });
        }
        Ok(())
    }
}

/// So many messages in a row that can't be read are another language, and not a newer one.
const MOST_UNREADABLE: usize = 20;

/// The next message that can be read; none when the other side is gone or speaks another language. An agent that is one
/// version ahead says things that are not known here: they are left out.
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
