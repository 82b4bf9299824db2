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
    homes::Homes,
    lease_end,
    queue::why::{Needs, lack},
    tell,
};
use crate::{
    catalog,
    error::{Error, Result},
    experiments::fits::Source,
    fleet::{Connected, Presence},
    runs::{
        load,
        queries::leases::{self, HeldRun, QueuedRun},
    },
    state::AppState,
};

/// Gives each free agent the first queued run that it can do.
pub async fn assign(state: &AppState, presence: &Presence) -> Result<()> {
    if !presence.any_free() {
        return Ok(());
    }
    // A run that one agent just declined would come straight back to it.
    let mut tried = HashSet::new();
    let queued = leases::queued(&state.db.read).await?;
    if queued.is_empty() {
        return Ok(());
    }
    let all: Vec<Needs> = queued.iter().map(needs).collect::<Result<_>>()?;
    let waiting = queued.iter().map(|run| run.experiment_id.as_deref()).zip(all.iter().copied());
    let mut connected = presence.list();
    let mut homes = Homes::of(waiting, &connected);
    for (run, needs) in queued.iter().zip(&all) {
        let experiment = run.experiment_id.as_deref();
        let at = homes.at(needs, experiment, run.home.as_deref(), &connected);
        let able = |(name, agent): &(String, Connected)| agent.is_free() && lack(needs, &at, name, agent).is_none();
        let Some((name, agent)) = connected.iter().find(|agent| able(agent)).cloned() else { continue };
        let job = job(state, run).await?;
        if tried.insert(run.id.clone())
            && leases::lease(&state.db.write, &run.id, &name, now_ms(), lease_end(state)).await?
        {
            homes.begin(experiment, &name);
            presence.set_busy(&name, agent.connection, Some(job.run));
            // If the socket has just closed, the agent's leaving gives the run back.
            let _ = agent.outbox.send(ServerMessage::Start(Box::new(job)));
            tell(state, &HeldRun { id: run.id.clone(), experiment_id: run.experiment_id.clone() });
        }
        connected = presence.list();
        if !connected.iter().any(|(_, agent)| agent.is_free()) {
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
