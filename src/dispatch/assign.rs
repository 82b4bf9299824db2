//! Hands queued runs to free agents, in the order of the queue.

use std::collections::HashSet;

use brewbench_agent::{
    scenarios,
    wire::{
        RunId,
        job::{Job, Scenario, Size},
        messages::ServerMessage,
        now_ms,
    },
};

use super::{
    lease_end,
    queue::why::{Needs, lack},
    tell,
};
use crate::{
    catalog,
    error::{Error, Result},
    experiments::fits::Source,
    fleet::Presence,
    runs::{
        load,
        queries::leases::{self, HeldRun, QueuedRun},
    },
    state::AppState,
};

/// Gives each free agent the first queued run that it can do.
pub async fn assign(state: &AppState, presence: &Presence) -> Result<()> {
    let free = || presence.list().into_iter().any(|(_, agent)| agent.is_free());
    if !free() {
        return Ok(());
    }
    // A run that one agent just declined would come straight back to it.
    let mut tried = HashSet::new();
    for run in leases::queued(&state.db.read).await? {
        let needs = needs(&run)?;
        let able =
            presence.list().into_iter().find(|(name, agent)| agent.is_free() && lack(&needs, name, agent).is_none());
        let Some((name, agent)) = able else { continue };
        let job = job(state, &run).await?;
        if tried.insert(run.id.clone())
            && leases::lease(&state.db.write, &run.id, &name, now_ms(), lease_end(state)).await?
        {
            presence.set_busy(&name, agent.connection, Some(job.run));
            // If the socket has just closed, the agent's leaving gives the run back.
            let _ = agent.outbox.send(ServerMessage::Start(Box::new(job)));
            tell(state, &HeldRun { id: run.id, experiment_id: run.experiment_id });
        }
        if !free() {
            break;
        }
    }
    Ok(())
}

fn needs(run: &QueuedRun) -> Result<Needs<'_>> {
    let is_bundled = scenarios::comes_along(&run.scenario_sha256);
    Ok(Needs {
        run: run.id.parse().map_err(Error::internal)?,
        target: &run.target,
        size: &run.size_name,
        vcpus: run.vcpus,
        memory_bytes: run.memory_bytes.cast_unsigned(),
        source: if is_bundled { Source::Bundled } else { Source::User },
        agent: run.wanted_agent.as_deref(),
    })
}

async fn job(state: &AppState, run: &QueuedRun) -> Result<Job> {
    let scenario = catalog::queries::revision(&state.db.read, &run.scenario, &run.scenario_sha256).await?;
    let scenario: Scenario = scenario.ok_or_else(|| Error::NotFound(format!("scenario of run {}", run.id)))?;
    let mut parameters = scenario.defaults.clone();
    parameters
        .extend(serde_json::from_str::<std::collections::BTreeMap<_, _>>(&run.parameters).map_err(Error::internal)?);
    Ok(Job {
        run: run.id.parse::<RunId>().map_err(Error::internal)?,
        target: run.target.clone(),
        size: Size { name: run.size_name.clone(), vcpus: run.vcpus, memory_bytes: run.memory_bytes.cast_unsigned() },
        scenario,
        parameters,
        load: load::read(&run.load).map_err(Error::internal)?,
        warm_up_ms: run.warm_up_ms.cast_unsigned(),
    })
}
