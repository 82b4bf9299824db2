//! Renews leases, and gives up runs whose lease has expired.

use std::time::Duration;

use brewbench_wire::now_ms;

use crate::{
    app::{
        error::Result,
        ids::{AgentId, RunId},
        state::AppState,
    },
    dispatch::store::leases::{self, Lease},
    distributed::coordinate::{self, publish_change},
    runs::store::retries::HeldRun,
};

/// Returns how often both sides of a channel send a heartbeat: three missed ones count as silence.
pub(crate) fn heartbeat(state: &AppState) -> Duration {
    state.config.silence / 3
}

/// Renews all leases, after a time in which agents could not renew them.
pub(crate) async fn renew_all(state: &AppState) -> Result<()> {
    Ok(leases::renew_all(&state.db.write, lease_end(state)).await?)
}

/// Renews an agent's lease on a run. Returns false if it has none.
pub(crate) async fn renew(state: &AppState, run: &RunId, agent: AgentId) -> Result<bool> {
    Ok(leases::renew(&state.db.write, run, agent, lease_end(state)).await?)
}

pub(crate) fn lease_end(state: &AppState) -> i64 {
    now_ms() + i64::try_from(state.config.lease.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) async fn give_up_expired(state: &AppState) -> Result<()> {
    let seconds = state.config.lease.as_secs();
    for lease in leases::expired(&state.db.read, now_ms()).await? {
        give_up(state, &lease, &format!("sent no heartbeat for more than {seconds} s")).await?;
    }
    Ok(())
}

/// Gives up a run because of one of its agents, and queues a retry if one is left.
///
/// `reason` is the end of a sentence about the agent.
pub(crate) async fn give_up(state: &AppState, lease: &Lease, reason: &str) -> Result<()> {
    let Lease { run, experiment, agent, is_generator } = lease;
    if *is_generator {
        return coordinate::give_up(state, run, &format!("{agent}, which generated load, {reason}")).await;
    }
    let held = HeldRun { id: run.clone(), experiment_id: experiment.clone() };
    lose(state, &held, &format!("its agent {reason}")).await
}

async fn lose(state: &AppState, held: &HeldRun, why: &str) -> Result<()> {
    if leases::lose(&state.db.write, &held.id, &RunId::now(), why, now_ms()).await? {
        tracing::warn!(run = held.id.as_str(), why, "run lost");
        publish_change(state, held);
        state.work.notify_one();
    }
    Ok(())
}
