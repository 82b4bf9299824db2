//! Renews leases, and gives up runs whose lease has expired.

use std::time::Duration;

use brewbench_agent::wire::now_ms;

use crate::{
    app::{error::Result, ids::RunId, state::AppState},
    dispatch::store::leases::{self, Lease},
    distributed::coordinate::{self, tell},
    runs::store::retries::HeldRun,
};

/// How often both sides of the agents' channel say that they are alive: three missed ones are silence.
pub(crate) fn heartbeat(state: &AppState) -> Duration {
    state.config.silence / 3
}

/// Nobody can be blamed for silence until now.
pub(crate) async fn prolong_all(state: &AppState) -> Result<()> {
    Ok(leases::prolong_all(&state.db.write, lease_end(state)).await?)
}

/// An agent works on this: prolongs what it has of it; false if it has nothing of it by our books.
pub(crate) async fn prolong(state: &AppState, run: &RunId, agent: &str) -> Result<bool> {
    Ok(leases::prolong(&state.db.write, run, agent, lease_end(state)).await?)
}

pub(crate) fn lease_end(state: &AppState) -> i64 {
    now_ms() + i64::try_from(state.config.lease.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) async fn give_up_expired(state: &AppState) -> Result<()> {
    let seconds = state.config.lease.as_secs();
    for lease in leases::expired(&state.db.read, now_ms()).await? {
        give_up(state, &lease, &format!("was silent for more than {seconds} s")).await?;
    }
    Ok(())
}

/// Gives up a run because of what became of an agent that worked on it: the end of a sentence about the agent. Its
/// repetition is queued again if it may be tried once more.
pub(crate) async fn give_up(state: &AppState, lease: &Lease, fate: &str) -> Result<()> {
    let Lease { run, experiment, agent, is_generator } = lease;
    if *is_generator {
        return coordinate::give_up(state, run, &format!("{agent}, which generated load, {fate}")).await;
    }
    let held = HeldRun { id: run.clone(), experiment_id: experiment.clone() };
    lose(state, &held, &format!("its agent {fate}")).await
}

async fn lose(state: &AppState, held: &HeldRun, why: &str) -> Result<()> {
    if leases::lose(&state.db.write, &held.id, &RunId::now(), why, now_ms()).await? {
        tracing::warn!(run = held.id.as_str(), why, "run lost");
        tell(state, held);
        state.work.notify_one();
    }
    Ok(())
}
