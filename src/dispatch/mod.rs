//! Who does which run, and what happens when they fall silent.
//!
//! Connected agents take the first queued run that they can do, one at a time; what somebody has put first goes before the
//! rest, who is drained takes nothing, and an experiment stays on one machine, or each of its repetitions does ([`homes`]);
//! [`queue`] says what waits for whom. A run is *leased*: each sign of life of
//! its agent prolongs the lease, silence past it makes the run `lost` and queues its repetition anew, as often as its plan
//! says. A run whose load comes from other agents is given to all of them at once or to nobody, so that two of them never
//! wait for each other; [`together`] lets them begin at one moment. What a late result counts for is settled by the rule in [`crate::runs::ingest`]. Runs of an experiment that is
//! paused are not handed out.

pub mod api;
pub mod assign;
pub mod channel;
pub mod homes;
pub mod meeting;
pub mod queue;
pub mod rename;
mod silence;
pub mod together;
pub mod watch;

use std::time::Duration;

use axum::{Extension, Router, extract::DefaultBodyLimit, routing::get};
use brewbench_agent::wire::{RunId, messages::ServerMessage, now_ms};
use tokio::time::MissedTickBehavior;
use utoipa_axum::{router::OpenApiRouter, routes};
use uuid::Uuid;

use together::Meetings;

use crate::{
    error::Result,
    fleet::Presence,
    runs::queries::{
        crew::{self, HeldPart},
        leases::{self, HeldRun},
    },
    state::{AppState, RunChanged},
};

/// The agents' channel and the way home of results.
pub fn api(presence: Presence, meetings: Meetings, largest_body: usize) -> OpenApiRouter<AppState> {
    let limit = DefaultBodyLimit::max(largest_body);
    OpenApiRouter::new()
        .routes(routes!(api::result))
        .layer(limit)
        .routes(routes!(queue::api::list))
        .routes(routes!(queue::api::put_first))
        .routes(routes!(queue::api::put_experiment_first))
        .routes(routes!(rename::rename))
        .layer(Extension(presence))
        .layer(Extension(meetings))
}

/// Pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    queue::pages::router().merge(rename::pages()).layer(Extension(presence))
}

/// The agents' channel: a WebSocket, so it is no part of the JSON API.
pub fn channel(presence: Presence, meetings: Meetings) -> Router<AppState> {
    let channel = Router::new().route("/api/v1/agent/channel", get(channel::open));
    channel.layer(Extension(presence)).layer(Extension(meetings))
}

/// Hands runs out and gives up what is lost, until the server ends.
pub async fn work(state: AppState, presence: Presence, meetings: Meetings) {
    if let Err(fault) = prolong_all(&state).await {
        tracing::error!(%fault, "leases could not be prolonged");
    }
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut events, mut look) = (state.events.listen(), silence::Look::now());
    loop {
        let done = tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.work.notified() => assign::assign(&state, &presence).await,
            event = events.recv() => hear(&state, &presence, &meetings, event.ok()).await,
            _ = clock.tick() => look.again(&state).await,
        };
        if let Err(fault) = done {
            tracing::error!(%fault, "dispatch");
        }
    }
}

/// How often both sides of the agents' channel say that they are alive: three missed ones are silence.
fn heartbeat(state: &AppState) -> Duration {
    state.config.silence / 3
}

/// Nobody can be blamed for silence until now.
async fn prolong_all(state: &AppState) -> Result<()> {
    leases::prolong_all(&state.db.write, lease_end(state)).await?;
    Ok(crew::prolong_all(&state.db.write, lease_end(state)).await?)
}

/// An agent works on this: prolongs what it has of it; false if it has nothing of it by our books.
async fn prolong(state: &AppState, run: &str, agent: &str) -> Result<bool> {
    let expires = lease_end(state);
    Ok(leases::prolong(&state.db.write, run, agent, expires).await?
        || crew::prolong(&state.db.write, run, agent, expires).await?)
}

fn lease_end(state: &AppState) -> i64 {
    now_ms() + i64::try_from(state.config.lease.as_millis()).unwrap_or(i64::MAX)
}

/// A run has changed; or some, if the event was missed.
async fn hear(state: &AppState, presence: &Presence, meetings: &Meetings, event: Option<RunChanged>) -> Result<()> {
    watch::forget(state, event).await?;
    meetings.forget_ended(state, event).await?;
    pass_cancellation_on(state, presence, event).await
}

/// A run that ended on the server's side while its agent works on it is stopped there.
async fn pass_cancellation_on(state: &AppState, presence: &Presence, event: Option<RunChanged>) -> Result<()> {
    let working = presence.working().into_iter();
    // A missed event may have been any: then all are looked at.
    for (name, run) in working.filter(|(_, run)| event.is_none_or(|event| event.run == run.0)) {
        let standing = leases::standing(&mut *state.db.read.acquire().await?, &run.to_string()).await?;
        if standing.is_none_or(|(phase, _)| matches!(phase.as_str(), "cancelled" | "lost" | "failed")) {
            presence.send(&name, ServerMessage::Cancel { run });
        }
    }
    Ok(())
}

async fn give_up_expired(state: &AppState) -> Result<()> {
    for held in leases::expired(&state.db.read, now_ms()).await? {
        let seconds = state.config.lease.as_secs();
        lose(state, &held, &format!("its agent was silent for more than {seconds} s")).await?;
    }
    for HeldPart { run, agent } in crew::expired(&state.db.read, now_ms()).await? {
        let seconds = state.config.lease.as_secs();
        together::give_up(state, &run, &format!("{agent}, which made load, was silent for more than {seconds} s"))
            .await?;
    }
    Ok(())
}

/// Gives a run up; its repetition is queued anew if it may be tried once more.
async fn lose(state: &AppState, held: &HeldRun, why: &str) -> Result<()> {
    if leases::lose(&state.db.write, &held.id, &RunId::now().to_string(), why, now_ms()).await? {
        tracing::warn!(run = held.id, why, "run lost");
        tell(state, held);
        state.work.notify_one();
    }
    Ok(())
}

fn tell(state: &AppState, held: &HeldRun) {
    let experiment = held.experiment_id.as_deref().and_then(|id| Uuid::parse_str(id).ok());
    if let Ok(run) = Uuid::parse_str(&held.id) {
        state.events.tell(RunChanged { run, experiment });
    }
}
