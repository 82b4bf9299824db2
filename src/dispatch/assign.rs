//! Assigns queued runs to free agents, in queue order.

use std::collections::HashSet;

use brewbench_wire::{
    Phase,
    job::{Job, Partner, Role, Segment},
    now_ms,
};

use crate::{
    app::{
        error::{Error, Result},
        ids::{AgentId, RunId},
        state::AppState,
    },
    dispatch::{
        renewal::lease_end,
        store::{
            leases,
            queue::{self, PlacementRow, QueuedRun},
        },
    },
    distributed::coordinate::{give_up, publish_change},
    fleet::presence::{Connected, Presence},
    placement::{
        affinity::Affinity,
        feasibility::Needs,
        wait_reason::{WaitCode, generators_wait, ineligible},
    },
    results::store::endings,
    runs::store::retries::{self, HeldRun},
};

/// Assigns to each free agent the first queued run that it can do.
///
/// A distributed run is assigned to all its agents or to none. Agents that are already free are reserved for it:
/// otherwise single-agent runs could starve it forever.
pub async fn assign(state: &AppState, presence: &Presence) -> Result<()> {
    if !presence.any_free() {
        return Ok(());
    }
    // Each run is tried once: a run that an agent has just declined would be assigned to it again at once.
    let mut tried = HashSet::new();
    let queued = queue::queued(&state.db.read).await?;
    if queued.is_empty() {
        return Ok(());
    }
    let all_needs: Vec<Needs> = queued.iter().map(|QueuedRun { spec, place }| place.needs(spec)).collect();
    let waiting = queued.iter().map(|run| run.place.experiment_id.as_ref()).zip(all_needs.iter().copied());
    let mut connected = presence.list();
    let mut affinity = Affinity::new(waiting, &connected);
    let mut reserved = HashSet::new();
    for (run, needs) in queued.iter().zip(&all_needs) {
        let experiment = run.place.experiment_id.as_ref();
        let eligible = affinity.eligible(needs, experiment, run.place.home.as_deref(), &connected);
        let can =
            |needs: &Needs<'_>, name: &str, agent: &Connected| ineligible(needs, &eligible, name, agent).is_none();
        let fits = |name: &str, agent: &Connected| can(needs, name, agent);
        let Some(host) = find_host(needs, fits, &connected, &mut reserved) else { continue };
        let partner = match find_partner(state, run, &queued).await? {
            Pairing::None => None,
            // Where both fit is what `eligible` has, if there is such an agent.
            Pairing::With(place) if can(&all_needs[place], &host.0, &host.1) => Some(place),
            Pairing::With(_) | Pairing::Waits => continue,
        };
        let participants = Participants { host, generators: find_agents(&run.spec.generators, &connected) };
        let partner = partner.map(|place| &queued[place]);
        if tried.insert(run.place.id.clone()) && participants.start(state, presence, run, partner).await? {
            affinity.record_start(needs, experiment, &participants.host.0);
        }
        connected = presence.list();
        if !connected.iter().any(|(_, agent)| agent.is_free()) {
            break;
        }
    }
    Ok(())
}

/// The partner of a run in a duet.
enum Pairing {
    /// It is in no duet.
    None,
    /// Its place in the queue.
    With(usize),
    /// It is not queued yet, or again.
    Waits,
}

/// Finds the partner of a run in the queue. A run whose partner has ended is cancelled.
async fn find_partner(state: &AppState, run: &QueuedRun, queued: &[QueuedRun]) -> Result<Pairing> {
    if !run.spec.duet {
        return Ok(Pairing::None);
    }
    let mut connection = state.db.read.acquire().await?;
    let partner = retries::partner(&mut connection, &run.place.id).await?;
    if let Some(place) = queued.iter().position(|other| Some(&other.place.id) == partner.as_ref()) {
        return Ok(Pairing::With(place));
    }
    let phase = match &partner {
        Some(id) => retries::phase_and_agent(&mut connection, id).await?.map(|(phase, _)| phase),
        None => None,
    };
    if phase.is_none_or(Phase::is_final) {
        let why = "the other run of its duet has ended";
        for id in endings::cancel(&state.db.write, &run.place.id, why, now_ms()).await? {
            publish_change(state, &HeldRun { id, experiment_id: run.place.experiment_id.clone() });
        }
    }
    Ok(Pairing::Waits)
}

/// Returns the agent that fits and can run the target now.
///
/// If all participants of a distributed run are connected but some are busy, returns `None` and reserves all of them.
fn find_host(
    needs: &Needs<'_>,
    fits: impl Fn(&str, &Connected) -> bool,
    connected: &[(String, Connected)],
    reserved: &mut HashSet<String>,
) -> Option<(String, Connected)> {
    let can = |(name, agent): &&(String, Connected)| agent.takes_runs() && fits(name, agent);
    let is_free = |(name, agent): &&(String, Connected)| agent.is_free() && !reserved.contains(name);
    let free = connected.iter().filter(can).find(is_free);
    if needs.spec.generators.is_empty() {
        return free.cloned();
    }
    let generators = generators_wait(needs, connected, &[]);
    let all_free = generators.is_none() && !needs.spec.generators.iter().any(|name| reserved.contains(name));
    if let Some(free) = free.filter(|_| all_free) {
        return Some(free.clone());
    }
    if generators.is_none_or(|why| why.reason == WaitCode::Busy)
        && let Some((name, _)) = free.or_else(|| connected.iter().find(can))
    {
        reserved.insert(name.clone());
        reserved.extend(needs.spec.generators.iter().cloned());
    }
    None
}

fn find_agents(names: &[String], connected: &[(String, Connected)]) -> Vec<(String, Connected)> {
    names.iter().filter_map(|name| connected.iter().find(|(connected, _)| connected == name)).cloned().collect()
}

/// The agents that take part in one run.
struct Participants {
    host: (String, Connected),
    generators: Vec<(String, Connected)>,
}

impl Participants {
    /// Leases the run, with its partner in a duet, and sends it to all participants.
    ///
    /// Returns false if a run is no longer queued or a participant has disconnected.
    async fn start(
        &self,
        state: &AppState,
        presence: &Presence,
        run: &QueuedRun,
        partner: Option<&QueuedRun>,
    ) -> Result<bool> {
        let Self { host: (name, agent), generators } = self;
        let PlacementRow { id, experiment_id, .. } = &run.place;
        let ids: Vec<AgentId> = generators.iter().map(|(_, generator)| generator.id).collect();
        let job = job(state, run, partner).await?;
        let (now, expires) = (now_ms(), lease_end(state));
        let runs: Vec<&RunId> = [id].into_iter().chain(partner.map(|partner| &partner.place.id)).collect();
        if !leases::lease(&state.db.write, &runs, agent.id, &ids, (now, expires)).await? {
            return Ok(false);
        }
        let of = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let start = |(name, agent): &(String, Connected), role| {
            presence.start(name, agent.connection, Job { role, ..job.clone() })
        };
        let parts = (0..).zip(generators);
        let started = if generators.is_empty() {
            let started = presence.start(name, agent.connection, job.clone());
            if !started {
                // The agent may have reconnected before the lease was stored; that connection would never get the job.
                for id in &runs {
                    leases::give_back(&state.db.write, id, agent.id, now_ms()).await?;
                }
            }
            started
        } else {
            let started = start(&self.host, Role::Host)
                && parts.into_iter().all(|(index, part)| start(part, Role::Generator(Segment { index, of })));
            if !started {
                give_up(state, id, "one of its agents disconnected just as it started").await?;
            }
            started
        };
        for id in runs {
            publish_change(state, &HeldRun { id: id.clone(), experiment_id: experiment_id.clone() });
        }
        Ok(started)
    }
}

async fn job(state: &AppState, run: &QueuedRun, partner: Option<&QueuedRun>) -> Result<Job> {
    let QueuedRun { spec, place: PlacementRow { id, experiment_id, .. } } = run;
    let (Some(name), Some(sha256)) = (&spec.scenario, &spec.scenario_sha256) else {
        return Err(Error::NotFound(format!("scenario of run {id}")));
    };
    let scenario = crate::catalog::store::scenarios::revision(&state.db.read, name, sha256).await?;
    let mut spec = spec.clone();
    crate::runs::store::secrets::reveal(&state.db.read, &mut spec.parameters).await?;
    let partner = partner.map(|QueuedRun { spec, place }| {
        Ok::<_, Error>(Partner { run: place.id.to_wire().map_err(Error::internal)?, target: spec.target.clone() })
    });
    let targets = match experiment_id {
        Some(experiment) => queue::targets(&state.db.read, experiment).await?,
        None => Vec::new(),
    };
    Ok(Job {
        run: id.to_wire().map_err(Error::internal)?,
        experiment: experiment_id.as_ref().map(ToString::to_string),
        targets,
        spec,
        scenario: scenario.ok_or_else(|| Error::NotFound(format!("scenario of run {id}")))?.for_message(),
        role: Role::Alone,
        partner: partner.transpose()?,
    })
}
