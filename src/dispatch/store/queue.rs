//! SQL of the queue.

use sqlx::SqlitePool;

use crate::{
    app::ids::{ExperimentId, RunId},
    auth::{audit, audit::Act},
};

/// A queued run with what an agent needs to do it.
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
    /// Cores.
    pub vcpus: f64,
    /// Bytes.
    pub memory_bytes: i64,
    /// The scenario's name.
    pub scenario: String,
    /// The scenario's revision.
    pub scenario_sha256: String,
    /// As JSON.
    pub parameters: String,
    /// How hard and how long, as JSON.
    pub load: String,
    /// Warm-up.
    pub warm_up_ms: i64,
    /// 1 if it goes on until the target is steady.
    pub warm_up_auto: i64,
    /// Only this agent may do it.
    pub wanted_agent: Option<String>,
    /// Only agents with this label may do it.
    pub agent_label: Option<String>,
    /// The runs of its experiment that stay on one machine have the same: 0 for all, else its repetition.
    pub block: i64,
    /// Who makes the load, as JSON.
    pub generators: String,
    /// Who did the first of its block that was not lost; none where that one may do nothing any more.
    pub home: Option<String>,
}

/// All queued runs in their order, but for those of experiments that are paused.
pub async fn queued(pool: &SqlitePool) -> sqlx::Result<Vec<QueuedRun>> {
    sqlx::query_as!(
        QueuedRun,
        r#"select id as "id: RunId", experiment_id as "experiment_id: ExperimentId", target, size_name as "size_name!", vcpus as "vcpus!",
                  memory_bytes as "memory_bytes!", scenario as "scenario!", scenario_sha256 as "scenario_sha256!",
                  parameters, load as "load!", warm_up_ms as "warm_up_ms!", warm_up_auto, wanted_agent, agent_label, block,
                  generators,
                  (select agent.name from run earlier cross join agent on agent.name = earlier.agent
                   where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                       and earlier.agent is not null and earlier.phase <> 'lost'
                       and agent.standing <> 'disabled' and agent.revoked_at is null
                   order by earlier.seq limit 1) as "home?: String"
           from run
           where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
               and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)
           order by priority desc, seq"#
    )
    .fetch_all(pool)
    .await
}

/// A run that waits, with all that decides for whom.
#[derive(Clone, Debug)]
pub struct WaitingRun {
    /// Its id.
    pub id: RunId,
    /// What its experiment is called.
    pub experiment_name: Option<String>,
    /// Whether its experiment is paused.
    pub is_paused: bool,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Only this agent may do it.
    pub wanted_agent: Option<String>,
    /// Only agents with this label may do it.
    pub agent_label: Option<String>,
    /// The runs of its experiment that stay on one machine have the same: 0 for all, else its repetition.
    pub block: i64,
    /// Who did the first of its block that was not lost; none where that one may do nothing any more.
    pub home: Option<String>,
    /// Higher ones go first.
    pub priority: i64,
}

/// All that wait in their order, also those whose experiments are paused; at most `limit`.
pub async fn waiting(pool: &SqlitePool, limit: i64) -> sqlx::Result<Vec<WaitingRun>> {
    sqlx::query_as!(
        WaitingRun,
        r#"select run.id as "id: RunId", experiment.name as "experiment_name?", experiment.paused_at is not null as "is_paused!: bool",
                  experiment.paused_by as "paused_by?", run.wanted_agent, run.agent_label, run.block, run.priority,
                  (select agent.name from run earlier cross join agent on agent.name = earlier.agent
                   where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                       and earlier.agent is not null and earlier.phase <> 'lost'
                       and agent.standing <> 'disabled' and agent.revoked_at is null
                   order by earlier.seq limit 1) as "home?: String"
           from run left join experiment on experiment.id = run.experiment_id
           where run.phase = 'queued' and run.phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
           order by run.priority desc, run.seq limit ?"#,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Puts a run before all others that wait; false if it does not wait.
pub async fn put_first(pool: &SqlitePool, id: &RunId, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set priority = 1 + (
             select coalesce(max(priority), 0) from run
             where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost')
         )
         where id = ? and phase = 'queued'",
        id
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// Puts all runs of an experiment that wait before all others, in their own order; false if none of it waits.
pub async fn put_all_first(pool: &SqlitePool, experiment: &ExperimentId, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set priority = 1 + (
             select coalesce(max(priority), 0) from run
             where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost')
         )
         where experiment_id = ? and phase = 'queued'",
        experiment
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}
