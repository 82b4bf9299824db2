//! What agents tell of the runs that they work on, for whoever watches.

use brewbench_agent::wire::{RunId, series::Portion};

use crate::{
    error::Result,
    runs::queries::leases,
    state::{AppState, RunChanged},
};

/// Takes points of a run. An agent is heard only about the run that it works on.
pub async fn take(state: &AppState, agent: &str, portion: &Portion) -> Result<()> {
    let run = portion.run;
    if !state.underway.is_open(run, agent) {
        if !works_on(state, agent, run).await? {
            return Ok(());
        }
        state.underway.open(run, agent);
        // It may have ended right before that, and nobody would forget it any more.
        if !works_on(state, agent, run).await? {
            state.underway.forget(run);
        }
    }
    if let Err(fault) = state.underway.take(portion) {
        tracing::debug!(agent, %run, %fault, "points of a run that make no sense");
    }
    Ok(())
}

/// Forgets what is no longer worked on by who tells of it.
pub async fn forget(state: &AppState, event: Option<RunChanged>) -> Result<()> {
    // A missed event may have been any: then all are looked at.
    for (run, agent) in state.underway.open_runs() {
        if event.is_none_or(|event| event.run == run.0) && !works_on(state, &agent, run).await? {
            state.underway.forget(run);
        }
    }
    Ok(())
}

async fn works_on(state: &AppState, agent: &str, run: RunId) -> Result<bool> {
    let standing = leases::standing(&mut *state.db.read.acquire().await?, &run.to_string()).await?;
    Ok(standing.is_some_and(|(phase, whose)| {
        let working = matches!(phase.as_str(), "leased" | "preparing" | "warming_up" | "measuring" | "collecting");
        working && whose.as_deref() == Some(agent)
    }))
}
