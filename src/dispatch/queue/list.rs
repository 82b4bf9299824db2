//! Lists the waiting runs with their agents, wait reasons and estimated starts.

use std::collections::BTreeMap;

use brewbench_wire::now_ms;

use crate::{
    app::{error::Result, ids::RunId, state::AppState},
    dispatch::{
        queue::model::{QueueEntry, QueueList},
        store::queue::WaitingRun,
    },
    fleet::{
        model::Agent,
        presence::{Connected, Presence},
    },
    placement::{
        affinity::Affinity,
        eta::{Wait, starts},
        feasibility::Needs,
        wait_reason::{WaitReason, paused, wait_reason},
    },
    runs::{
        model::Run,
        progress::{remaining_s, total_s},
    },
};

/// The most runs that are listed; further ones are only counted.
pub const MAX_LISTED: i64 = 500;

/// Loads the current queue.
pub async fn load_queue(state: &AppState, presence: &Presence) -> Result<QueueList> {
    let pool = &state.db.read;
    let rows = crate::dispatch::store::queue::waiting(pool, MAX_LISTED).await?;
    let ids: Vec<_> = rows.iter().map(|row| row.place.id.clone()).collect();
    let mut by_id: BTreeMap<RunId, Run> =
        crate::runs::store::by_ids(&state.db.rows, &ids).await?.into_iter().map(|run| (run.id.clone(), run)).collect();
    let (running, total) = crate::runs::store::unfinished_count(pool).await?;
    let working = crate::runs::store::unfinished(&state.db.rows, i64::try_from(running).unwrap_or(MAX_LISTED)).await?;
    let known = crate::fleet::store::agents(pool).await?;
    // A run that was assigned between the two queries is left out.
    let pairs = rows.into_iter().filter_map(|row| by_id.remove(&row.place.id).map(|run| (row, run))).collect();
    let waiting = describe(pairs, &presence.list(), &known, &working, now_ms());
    Ok(QueueList { total, waiting, working })
}

/// Adds wait reason and estimated start to each waiting run. Pure.
pub(crate) fn describe(
    pairs: Vec<(WaitingRun, Run)>,
    connected: &[(String, Connected)],
    known: &[Agent],
    working: &[Run],
    now_ms: i64,
) -> Vec<QueueEntry> {
    let needs: Vec<Needs> = pairs.iter().map(|(row, run)| row.place.needs(&run.spec)).collect();
    let with_needs = pairs.iter().zip(&needs);
    let waiting = with_needs.clone().map(|((_, run), needs)| (run.experiment.as_ref(), *needs));
    let affinity = Affinity::new(waiting, connected);
    let reason = |((row, run), needs): (&(WaitingRun, Run), &Needs)| {
        if row.is_paused {
            return paused(row.paused_by.as_deref());
        }
        let eligible = affinity.eligible(needs, run.experiment.as_ref(), row.place.home.as_deref(), connected);
        wait_reason(needs, &eligible, connected, known)
    };
    let reasons: Vec<WaitReason> = with_needs.map(reason).collect();
    let waits: Vec<Wait> = pairs
        .iter()
        .zip(&reasons)
        .map(|((_, run), wait)| Wait { agents: &wait.agents, with: &run.spec.generators, takes_s: total_s(run, &[]) })
        .collect();
    let starts = starts(&waits, &free_in(connected, working, now_ms));
    let mut list = Vec::new();
    for (((row, run), wait), starts_in_s) in pairs.into_iter().zip(reasons).zip(starts) {
        list.push(QueueEntry {
            position: list.len() + 1,
            run,
            experiment_name: row.experiment_name,
            required_agent: row.place.required_agent,
            agent_label: row.place.agent_label,
            agents: wait.agents,
            reason: wait.reason,
            message: wait.sentence,
            starts_in_s,
            priority: row.priority,
        });
    }
    list
}

/// Returns in how many seconds each agent is free, if known.
pub(crate) fn free_in(
    connected: &[(String, Connected)],
    working: &[Run],
    now_ms: i64,
) -> BTreeMap<String, Option<f64>> {
    let left = |agent: &Connected| match agent.busy.map(RunId::from) {
        None => Some(0.0),
        Some(id) => working.iter().find(|run| run.id == id).and_then(|run| remaining_s(run, &[], now_ms)),
    };
    connected.iter().map(|(name, agent)| (name.clone(), left(agent))).collect()
}

#[cfg(test)]
pub(crate) mod fixtures {
    //! Agents and needs for tests.

    use std::{collections::HashSet, path::Path, sync::Arc};

    use brewbench_agent::engine;
    use brewbench_wire::{
        PROTOCOL,
        messages::{Hello, Machine, TargetOffer},
        outcome::Mechanism,
        target::Identity,
    };
    use tokio::sync::{mpsc, watch};
    use tokio_util::sync::CancellationToken;
    use uuid::Uuid;

    use super::Needs;
    use crate::{
        fleet::{model::Availability, presence::Connected},
        runs::model::{RunSize, RunSpec},
    };

    /// Returns a connected agent with 8 cores and 32 GiB that offers `fast`.
    pub fn agent(name: &str, change: impl FnOnce(&mut Connected)) -> (String, Connected) {
        let machine = Machine {
            hostname: name.to_owned(),
            cores: 8,
            physical_cores: Some(8),
            memory_bytes: 32 << 30,
            kernel: String::new(),
            cpu_model: String::new(),
            cpu: Mechanism::Cgroup2,
            memory: Mechanism::Cgroup2,
        };
        let (version, description) = ("1".to_owned(), String::new());
        let identity = Identity::Process { sha256: String::new(), code: None };
        let hello = Hello {
            protocol: PROTOCOL,
            version: version.clone(),
            now_ms: 0,
            machine,
            targets: vec![TargetOffer {
                name: "fast".to_owned(),
                version,
                description,
                identity,
                anywhere: true,
                profile: None,
                compiles_at_run_time: false,
                revisions: Vec::new(),
            }],
            any_scenario: false,
            running: None,
            holds: Vec::new(),
            life: None,
            load_address: None,
            generators: None,
            engines: vec![engine::k6::offer(Path::new("/usr/bin/k6"), "1.8.1", None)],
        };
        let mut agent = Connected {
            id: 1.into(),
            connection: Uuid::nil(),
            hello: Arc::new(hello),
            availability: Availability::Enabled,
            labels: Arc::default(),
            busy: None,
            fault: None,
            inspecting: None,
            declined: HashSet::new(),
            clock_offset_ms: 0,
            outbox: mpsc::unbounded_channel().0,
            activity: watch::channel(()).1,
            close: CancellationToken::new(),
        };
        change(&mut agent);
        (name.to_owned(), agent)
    }

    /// Makes an agent busy.
    pub fn working(agent: &mut Connected) {
        agent.busy = Some(brewbench_wire::RunId(Uuid::max()));
    }

    /// Returns the spec of a run of a target at 2 vCPU / 4 GiB.
    pub fn spec(target: &str) -> RunSpec {
        let size = RunSize { name: "2/4GiB".to_owned(), vcpus: 2.0, memory_bytes: 4 << 30, replicas: 1 };
        RunSpec { target: target.to_owned(), size: Some(size), ..RunSpec::default() }
    }

    /// Returns the needs of such a run.
    pub fn needs(target: &str) -> Needs<'static> {
        let spec = Box::leak(Box::new(spec(target)));
        Needs { spec, agent: None, label: None, run: Some(brewbench_wire::RunId(Uuid::nil())), block: 0 }
    }
}
