//! Renews leases, and gives up runs whose lease has expired.

use std::time::Duration;

use brewbench_agent::wire::{RunId, now_ms};

use crate::{
    app::{error::Result, state::AppState},
    dispatch::store::leases,
    distributed::{
        coordinate::{self, tell},
        store::participants::{self, HeldPart},
    },
    runs::store::retries::HeldRun,
};

/// How often both sides of the agents' channel say that they are alive: three missed ones are silence.
pub(crate) fn heartbeat(state: &AppState) -> Duration {
    state.config.silence / 3
}

/// Nobody can be blamed for silence until now.
pub(crate) async fn prolong_all(state: &AppState) -> Result<()> {
    leases::prolong_all(&state.db.write, lease_end(state)).await?;
    Ok(participants::prolong_all(&state.db.write, lease_end(state)).await?)
}

/// An agent works on this: prolongs what it has of it; false if it has nothing of it by our books.
pub(crate) async fn prolong(state: &AppState, run: &str, agent: &str) -> Result<bool> {
    let expires = lease_end(state);
    Ok(leases::prolong(&state.db.write, run, agent, expires).await?
        || participants::prolong(&state.db.write, run, agent, expires).await?)
}

pub(crate) fn lease_end(state: &AppState) -> i64 {
    now_ms() + i64::try_from(state.config.lease.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) async fn give_up_expired(state: &AppState) -> Result<()> {
    for held in leases::expired(&state.db.read, now_ms()).await? {
        let seconds = state.config.lease.as_secs();
        lose(state, &held, &format!("its agent was silent for more than {seconds} s")).await?;
    }
    for HeldPart { run, agent } in participants::expired(&state.db.read, now_ms()).await? {
        let seconds = state.config.lease.as_secs();
        coordinate::give_up(state, &run, &format!("{agent}, which made load, was silent for more than {seconds} s"))
            .await?;
    }
    Ok(())
}

/// Gives a run up; its repetition is queued anew if it may be tried once more.
pub(crate) async fn lose(state: &AppState, held: &HeldRun, why: &str) -> Result<()> {
    if leases::lose(&state.db.write, &held.id, &RunId::now().to_string(), why, now_ms()).await? {
        tracing::warn!(run = held.id, why, "run lost");
        tell(state, held);
        state.work.notify_one();
    }
    Ok(())
}
