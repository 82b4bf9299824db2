//! Hands queued runs to free agents, in the order of the queue.

use std::collections::HashSet;

use brewbench_agent::{
    scenarios,
    wire::{
        job::{Job, Role, Scenario, Segment, Size},
        now_ms,
    },
};

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    dispatch::{
        renewal::lease_end,
        store::{
            leases,
            queue::{self, QueuedRun},
        },
    },
    distributed::coordinate::{give_up, tell},
    fleet::{
        model::Standing,
        presence::{Connected, Presence},
    },
    placement::{
        affinity::Homes,
        feasibility::Source,
        wait_reason::{At, Needs, Reason, generators_lack, lack},
    },
    runs::{load, model::WARM_UP_FACTOR, store::retries::HeldRun},
};

/// Gives each free agent the first queued run that it can do. A run that several do is given to all of them or to nobody;
/// those of them who are free wait for the others, or runs of one agent would keep it from ever beginning.
pub async fn assign(state: &AppState, presence: &Presence) -> Result<()> {
    if !presence.any_free() {
        return Ok(());
    }
    // A run that one agent just declined would come straight back to it.
    let mut tried = HashSet::new();
    let queued = queue::queued(&state.db.read).await?;
    if queued.is_empty() {
        return Ok(());
    }
    let generators: Vec<Vec<String>> = queued.iter().map(generators).collect::<Result<_>>()?;
    let all: Vec<Needs> =
        queued.iter().zip(&generators).map(|(run, generators)| needs(run, generators)).collect::<Result<_>>()?;
    let waiting = queued.iter().map(|run| run.experiment_id.as_ref()).zip(all.iter().copied());
    let mut connected = presence.list();
    let mut homes = Homes::of(waiting, &connected);
    let mut kept = HashSet::new();
    for (run, needs) in queued.iter().zip(&all) {
        let experiment = run.experiment_id.as_ref();
        let at = homes.at(needs, experiment, run.home.as_deref(), &connected);
        let Some(host) = host(needs, &at, &connected, &mut kept) else { continue };
        let crew = Crew { host, generators: of_names(needs.generators, &connected) };
        if tried.insert(run.id.clone()) && crew.begin(state, presence, run).await? {
            homes.begin(needs, experiment, &crew.host.0);
        }
        connected = presence.list();
        if !connected.iter().any(|(_, agent)| agent.is_free()) {
            break;
        }
    }
    Ok(())
}

/// Who is to run the target of a run now. If those who do it together are all there and some of them are busy, nobody
/// is, and all of them are kept for it.
fn host(
    needs: &Needs<'_>,
    at: &At,
    connected: &[(String, Connected)],
    kept: &mut HashSet<String>,
) -> Option<(String, Connected)> {
    let can = |(name, agent): &&(String, Connected)| {
        agent.standing == Standing::Enabled && lack(needs, at, name, agent).is_none()
    };
    let is_free = |(name, agent): &&(String, Connected)| agent.is_free() && !kept.contains(name);
    let free = connected.iter().filter(can).find(is_free);
    if needs.generators.is_empty() {
        return free.cloned();
    }
    let generators = generators_lack(needs, connected, &[]);
    let all_free = generators.is_none() && !needs.generators.iter().any(|name| kept.contains(name));
    if let Some(free) = free.filter(|_| all_free) {
        return Some(free.clone());
    }
    if generators.is_none_or(|why| why.reason == Reason::Busy)
        && let Some((name, _)) = free.or_else(|| connected.iter().find(can))
    {
        kept.insert(name.clone());
        kept.extend(needs.generators.iter().cloned());
    }
    None
}

fn of_names(names: &[String], connected: &[(String, Connected)]) -> Vec<(String, Connected)> {
    names.iter().filter_map(|name| connected.iter().find(|(connected, _)| connected == name)).cloned().collect()
}

/// Those who do one run.
struct Crew {
    host: (String, Connected),
    generators: Vec<(String, Connected)>,
}

impl Crew {
    /// Gives the run to all of them; false if somebody was faster, or one of them has gone meanwhile.
    async fn begin(&self, state: &AppState, presence: &Presence, run: &QueuedRun) -> Result<bool> {
        let Self { host: (name, agent), generators } = self;
        let names: Vec<String> = generators.iter().map(|(name, _)| name.clone()).collect();
        let job = job(state, run).await?;
        let (now, expires) = (now_ms(), lease_end(state));
        if !leases::lease(&state.db.write, &run.id, name, &names, (now, expires)).await? {
            return Ok(false);
        }
        let of = u32::try_from(names.len()).unwrap_or(u32::MAX);
        let begin = |(name, agent): &(String, Connected), role| {
            presence.start(name, agent.connection, Job { role, ..job.clone() })
        };
        let parts = (0..).zip(generators);
        let has_begun = if generators.is_empty() {
            let has_begun = presence.start(name, agent.connection, job.clone());
            if !has_begun {
                // Its next connection may have begun before the lease, and would never hear of it.
                leases::give_back(&state.db.write, &run.id, name, now_ms()).await?;
            }
            has_begun
        } else {
            let has_begun = begin(&self.host, Role::Host)
                && parts.into_iter().all(|(index, part)| begin(part, Role::Generator(Segment { index, of })));
            if !has_begun {
                give_up(state, &run.id, "one of its agents has gone just as it began").await?;
            }
            has_begun
        };
        tell(state, &HeldRun { id: run.id.clone(), experiment_id: run.experiment_id.clone() });
        Ok(has_begun)
    }
}

fn generators(run: &QueuedRun) -> Result<Vec<String>> {
    serde_json::from_str(&run.generators).map_err(Error::internal)
}

fn needs<'a>(run: &'a QueuedRun, generators: &'a [String]) -> Result<Needs<'a>> {
    let is_bundled = scenarios::comes_along(&run.scenario_sha256);
    Ok(Needs {
        run: run.id.to_wire().map_err(Error::internal)?,
        target: &run.target,
        size: &run.size_name,
        vcpus: run.vcpus,
        memory_bytes: run.memory_bytes.cast_unsigned(),
        source: if is_bundled { Source::Bundled } else { Source::User },
        agent: run.wanted_agent.as_deref(),
        label: run.agent_label.as_deref(),
        block: run.block,
        generators,
    })
}

async fn job(state: &AppState, run: &QueuedRun) -> Result<Job> {
    let scenario = crate::catalog::store::revision(&state.db.read, &run.scenario, &run.scenario_sha256).await?;
    let scenario: Scenario = scenario.ok_or_else(|| Error::NotFound(format!("scenario of run {}", run.id)))?;
    let mut parameters = scenario.defaults.clone();
    parameters
        .extend(serde_json::from_str::<std::collections::BTreeMap<_, _>>(&run.parameters).map_err(Error::internal)?);
    Ok(Job {
        run: run.id.to_wire().map_err(Error::internal)?,
        target: run.target.clone(),
        size: Size { name: run.size_name.clone(), vcpus: run.vcpus, memory_bytes: run.memory_bytes.cast_unsigned() },
        scenario,
        parameters,
        load: load::read(&run.load).map_err(Error::internal)?,
        warm_up_ms: run.warm_up_ms.cast_unsigned(),
        warm_up_max_ms: (run.warm_up_auto != 0)
            .then(|| run.warm_up_ms.cast_unsigned().saturating_mul(WARM_UP_FACTOR.into())),
        role: Role::Alone,
    })
}
