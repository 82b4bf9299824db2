//! SQL of the queue.

use sqlx::SqlitePool;

use crate::{
    app::ids::{ExperimentId, RunId},
    auth::{audit, audit::AuditEvent},
};

/// A queued run with everything that its job needs.
#[derive(Clone, Debug)]
pub struct QueuedRun {
    /// Its id.
    pub id: RunId,
    /// Its experiment.
    pub experiment_id: Option<ExperimentId>,
    /// The target's name.
    pub target: String,
    /// The machine size's name.
    pub size_name: String,
    /// CPU cores.
    pub vcpus: f64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Instances of the target.
    pub replicas: u32,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's revision.
    pub scenario_sha256: String,
    /// Parameters as JSON.
    pub parameters: String,
    /// Load as JSON.
    pub load: String,
    /// Warm-up in milliseconds; the minimum of an automatic one.
    pub warm_up_ms: i64,
    /// 1 if the warm-up continues until the target is steady.
    pub warm_up_auto: i64,
    /// The only agent that may do it.
    pub required_agent: Option<String>,
    /// The label that its agent must have.
    pub agent_label: Option<String>,
    /// Runs of the experiment with the same block stay on one machine: 0 for all runs, otherwise the repetition.
    pub block: i64,
    /// Agents that generate the load, as JSON.
    pub generators: String,
    /// Number of load generators in the cluster of the agent.
    pub cluster_generators: i64,
    /// 1 if the target is profiled.
    pub profiled: i64,
    /// Host of the first run of its block that was not lost, unless that agent is disabled, revoked or removed.
    pub home: Option<String>,
}

/// Returns all queued runs in queue order, without those of paused experiments.
pub async fn queued(pool: &SqlitePool) -> sqlx::Result<Vec<QueuedRun>> {
    sqlx::query_as!(
        QueuedRun,
        r#"select id as "id: RunId", experiment_id as "experiment_id: ExperimentId", target, size_name as "size_name!", vcpus as "vcpus!",
                  memory_bytes as "memory_bytes!", replicas as "replicas: u32", scenario as "scenario!", scenario_sha256 as "scenario_sha256!",
                  parameters, load as "load!", warm_up_ms as "warm_up_ms!", warm_up_auto, required_agent, agent_label, block,
                  generators, cluster_generators, profiled,
                  (select agent.name from run earlier cross join agent on agent.name = earlier.agent
                   where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                       and earlier.agent is not null and earlier.phase <> 'lost'
                       and agent.availability <> 'disabled' and agent.revoked_at is null
                   order by earlier.seq limit 1) as "home?: String"
           from run
           where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
               and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)
           order by priority desc, seq"#
    )
    .fetch_all(pool)
    .await
}

/// A waiting run with everything that determines its wait reason.
#[derive(Clone, Debug)]
pub struct WaitingRun {
    /// Its id.
    pub id: RunId,
    /// Name of its experiment.
    pub experiment_name: Option<String>,
    /// Whether its experiment is paused.
    pub is_paused: bool,
    /// The user who paused it.
    pub paused_by: Option<String>,
    /// The only agent that may do it.
    pub required_agent: Option<String>,
    /// The label that its agent must have.
    pub agent_label: Option<String>,
    /// Runs of the experiment with the same block stay on one machine: 0 for all runs, otherwise the repetition.
    pub block: i64,
    /// Host of the first run of its block that was not lost, unless that agent is disabled, revoked or removed.
    pub home: Option<String>,
    /// Runs with a higher priority go first.
    pub priority: i64,
}

/// Returns up to `limit` waiting runs in queue order, including those of paused experiments.
pub async fn waiting(pool: &SqlitePool, limit: i64) -> sqlx::Result<Vec<WaitingRun>> {
    sqlx::query_as!(
        WaitingRun,
        r#"select run.id as "id: RunId", experiment.name as "experiment_name?", experiment.paused_at is not null as "is_paused!: bool",
                  experiment.paused_by as "paused_by?", run.required_agent, run.agent_label, run.block, run.priority,
                  (select agent.name from run earlier cross join agent on agent.name = earlier.agent
                   where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                       and earlier.agent is not null and earlier.phase <> 'lost'
                       and agent.availability <> 'disabled' and agent.revoked_at is null
                   order by earlier.seq limit 1) as "home?: String"
           from run left join experiment on experiment.id = run.experiment_id
           where run.phase = 'queued' and run.phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
           order by run.priority desc, run.seq limit ?"#,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Moves a waiting run to the front of the queue. Returns false if it is not waiting.
pub async fn put_first(pool: &SqlitePool, id: &RunId, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update run set priority = 1 + (
             select coalesce(max(priority), 0) from run
             where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost')
         )
         where id = ? and phase = 'queued'",
        id
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &changed, act).await
}

/// Moves all waiting runs of an experiment to the front of the queue, in their own order.
///
/// Returns false if none is waiting.
pub async fn put_all_first(pool: &SqlitePool, experiment: &ExperimentId, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update run set priority = 1 + (
             select coalesce(max(priority), 0) from run
             where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost')
         )
         where experiment_id = ? and phase = 'queued'",
        experiment
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &changed, act).await
}
