//! Live data of runs in progress, as agents report it.

use brewbench_wire::series::Delta;

use crate::{
    app::{
        error::Result,
        ids::{AgentId, RunId},
        state::{AppState, RunChanged},
    },
    fleet::{self, model::NamedAgent},
    live::{feed::LiveFeed, participants::Participant},
    results::{
        clock::Clock,
        store::parts::{self, PartState},
    },
    runs::store::retries,
};

/// Adds live samples of a run. Samples of an agent that does not work on the run are ignored.
pub async fn add(state: &AppState, agent: &NamedAgent, delta: &Delta) -> Result<()> {
    let run = delta.run;
    if !is_open(state, agent, run).await? {
        return Ok(());
    }
    if let Err(fault) = state.memory::<LiveFeed>().receive(&agent.name, delta) {
        tracing::debug!(agent = agent.name, %run, %fault, "invalid live samples of a run");
    }
    Ok(())
}

/// Stores the current step of a long preparation, unless the agent does not work on it.
pub async fn set_step(state: &AppState, agent: &NamedAgent, run: brewbench_wire::RunId, step: &str) -> Result<()> {
    if is_open(state, agent, run).await? {
        state.memory::<LiveFeed>().set_step(run, step);
    }
    Ok(())
}

/// Opens the feed of a run unless it is open; returns whether it is now.
async fn is_open(state: &AppState, agent: &NamedAgent, run: brewbench_wire::RunId) -> Result<bool> {
    if state.memory::<LiveFeed>().is_open(run, &agent.name) {
        return Ok(true);
    }
    if !works_on(state, agent.id, run).await? {
        return Ok(false);
    }
    open(state, &agent.name, run).await?;
    // If it ended just before it was opened, no event would remove it later.
    if !works_on(state, agent.id, run).await? {
        state.memory::<LiveFeed>().forget(run);
    }
    Ok(true)
}

async fn open(state: &AppState, agent: &str, run: brewbench_wire::RunId) -> Result<()> {
    let mut participants = parts::states(&state.db.read, &run.into()).await?.into_iter().map(participant);
    match participants.next() {
        Some(host) => state.memory::<LiveFeed>().open_distributed(run, host, participants.collect()),
        None => state.memory::<LiveFeed>().open(run, agent),
    }
    Ok(())
}

fn participant(part: PartState) -> Participant {
    let PartState { agent, clock_offset_ms, clock_error_ms, .. } = part;
    let clock = clock_offset_ms.map(|offset_ms| Clock { offset_ms, error_ms: clock_error_ms.unwrap_or(0.0) });
    Participant { agent, clock }
}

/// Removes the feeds of runs whose agents no longer work on them.
pub async fn forget(state: &AppState, event: Option<&RunChanged>) -> Result<()> {
    // A missed event may have been about any run: check all.
    let affected = |run| event.is_none_or(|event| event.run == RunId::from(run));
    for (run, agent) in state.memory::<LiveFeed>().open_runs().into_iter().filter(|(run, _)| affected(*run)) {
        // An agent is renamed only while it is idle.
        let is_working = match fleet::store::find(&mut *state.db.read.acquire().await?, &agent).await? {
            Some(agent) => works_on(state, agent, run).await?,
            None => false,
        };
        if !is_working {
            state.memory::<LiveFeed>().forget(run);
        }
    }
    Ok(())
}

async fn works_on(state: &AppState, agent: AgentId, run: brewbench_wire::RunId) -> Result<bool> {
    let (id, mut connection) = (RunId::from(run), state.db.read.acquire().await?);
    let Some((phase, host)) = retries::phase_and_agent(&mut connection, &id).await? else { return Ok(false) };
    Ok(phase.is_held() && (host == Some(agent) || parts::is_generator(&mut connection, &id, agent).await?))
}
