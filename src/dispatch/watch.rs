//! What agents tell of the runs that they work on, for whoever watches.

use brewbench_agent::wire::{self, series::Portion};

use crate::{
    app::{
        error::Result,
        ids::RunId,
        state::{AppState, RunChanged},
    },
    live::participants::Teller,
    results::{
        clock::Clock,
        store::parts::{self, PartState},
    },
    runs::store::retries,
};

/// Takes points of a run. An agent is heard only about the run that it works on, alone or with others.
pub async fn take(state: &AppState, agent: &str, portion: &Portion) -> Result<()> {
    let run = portion.run;
    if !state.underway.is_open(run, agent) {
        if !works_on(state, agent, run).await? {
            return Ok(());
        }
        open(state, agent, run).await?;
        // It may have ended right before that, and nobody would forget it any more.
        if !works_on(state, agent, run).await? {
            state.underway.forget(run);
        }
    }
    if let Err(fault) = state.underway.take(agent, portion) {
        tracing::debug!(agent, %run, %fault, "points of a run that make no sense");
    }
    Ok(())
}

async fn open(state: &AppState, agent: &str, run: wire::RunId) -> Result<()> {
    let mut tellers = parts::states(&state.db.read, &run.into()).await?.into_iter().map(teller);
    match tellers.next() {
        Some(host) => state.underway.open_together(run, host, tellers.collect()),
        None => state.underway.open(run, agent),
    }
    Ok(())
}

fn teller(part: PartState) -> Teller {
    let PartState { agent, clock_offset_ms, clock_error_ms, .. } = part;
    let clock = clock_offset_ms.map(|offset_ms| Clock { offset_ms, error_ms: clock_error_ms.unwrap_or(0.0) });
    Teller { agent, clock }
}

/// Forgets what is no longer worked on by who tells of it.
pub async fn forget(state: &AppState, event: Option<&RunChanged>) -> Result<()> {
    // A missed event may have been any: then all are looked at.
    for (run, agent) in state.underway.open_runs() {
        if event.is_none_or(|event| event.run == RunId::from(run)) && !works_on(state, &agent, run).await? {
            state.underway.forget(run);
        }
    }
    Ok(())
}

async fn works_on(state: &AppState, agent: &str, run: wire::RunId) -> Result<bool> {
    let (id, mut connection) = (RunId::from(run), state.db.read.acquire().await?);
    let Some((phase, whose)) = retries::standing(&mut connection, &id).await? else { return Ok(false) };
    let working = matches!(phase.as_str(), "leased" | "preparing" | "warming_up" | "measuring" | "collecting");
    Ok(working && (whose.as_deref() == Some(agent) || parts::generates(&mut connection, &id, agent).await?))
}
