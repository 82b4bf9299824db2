//! SQL of the queue.

use sqlx::{AssertSqlSafe, SqlitePool};

use crate::{
    app::ids::{ExperimentId, RunId},
    auth::{audit, audit::AuditEvent},
    placement::feasibility::Needs,
    runs::{
        model::RunSpec,
        store::spec::{SELECTED, SpecColumns},
    },
};

/// A queued run with everything that its job needs.
#[derive(Clone, Debug)]
pub struct QueuedRun {
    /// What it measures.
    pub spec: RunSpec,
    /// What determines where it runs.
    pub place: PlacementRow,
}

/// What determines where a queued run may run.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct PlacementRow {
    /// The run's id.
    pub id: RunId,
    /// Its experiment.
    pub experiment_id: Option<ExperimentId>,
    /// The only agent that may do it.
    pub required_agent: Option<String>,
    /// The label that its agent must have.
    pub agent_label: Option<String>,
    /// Runs of the experiment with the same block stay on one machine: 0 for all runs, otherwise the repetition.
    pub block: i64,
    /// Host of the first run of its block that was not lost, unless that agent is disabled, revoked or removed.
    pub home: Option<String>,
}

impl PlacementRow {
    /// Returns what the run needs from an agent.
    pub fn needs<'a>(&'a self, spec: &'a RunSpec) -> Needs<'a> {
        let (agent, label) = (self.required_agent.as_deref(), self.agent_label.as_deref());
        Needs { spec, agent, label, run: self.id.to_wire().ok(), block: self.block }
    }
}

/// Returns the targets of an experiment.
pub async fn targets(pool: &SqlitePool, experiment: &ExperimentId) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!("select distinct target from run where experiment_id = ? order by target", experiment)
        .fetch_all(pool)
        .await
}

/// Returns all queued runs in queue order, without those of paused experiments.
pub async fn queued(pool: &SqlitePool) -> sqlx::Result<Vec<QueuedRun>> {
    let rows = sqlx::query_as::<_, Row>(AssertSqlSafe(format!(
        "select {SELECTED}, id, experiment_id,
             (select name from agent where agent.id = run.required_agent_id) as required_agent, agent_label, block,
             (select agent.name from run earlier cross join agent on agent.id = earlier.agent_id
              where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                  and earlier.agent_id is not null and earlier.phase <> 'lost'
                  and agent.availability <> 'disabled' and agent.revoked_at is null
              order by earlier.seq limit 1) as home
         from run
         where phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
             and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)
         order by priority desc, seq"
    )))
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(|Row { spec, place }| Ok(QueuedRun { spec: spec.try_into()?, place })).collect()
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    spec: SpecColumns,
    #[sqlx(flatten)]
    place: PlacementRow,
}

/// A waiting run with everything that determines its wait reason.
#[derive(Clone, Debug)]
pub struct WaitingRun {
    /// What determines where it runs.
    pub place: PlacementRow,
    /// Name of its experiment.
    pub experiment_name: Option<String>,
    /// Whether its experiment is paused.
    pub is_paused: bool,
    /// The user who paused it.
    pub paused_by: Option<String>,
    /// Runs with a higher priority go first.
    pub priority: i64,
}

/// Returns up to `limit` waiting runs in queue order, including those of paused experiments.
pub async fn waiting(pool: &SqlitePool, limit: i64) -> sqlx::Result<Vec<WaitingRun>> {
    let rows = sqlx::query!(
        r#"select run.id as "id: RunId", run.experiment_id as "experiment_id: ExperimentId", experiment.name as "experiment_name?", experiment.paused_at is not null as "is_paused!: bool",
                  experiment.paused_by as "paused_by?", (select name from agent where agent.id = run.required_agent_id) as "required_agent?: String",
                  run.agent_label, run.block, run.priority,
                  (select agent.name from run earlier cross join agent on agent.id = earlier.agent_id
                   where earlier.experiment_id = run.experiment_id and earlier.block = run.block
                       and earlier.agent_id is not null and earlier.phase <> 'lost'
                       and agent.availability <> 'disabled' and agent.revoked_at is null
                   order by earlier.seq limit 1) as "home?: String"
           from run left join experiment on experiment.id = run.experiment_id
           where run.phase = 'queued' and run.phase not in ('finished', 'failed', 'cancelled', 'lost') -- as its index has it
           order by run.priority desc, run.seq limit ?"#,
        limit
    )
    .fetch_all(pool)
    .await?;
    let waiting = rows.into_iter().map(|row| WaitingRun {
        place: PlacementRow {
            id: row.id,
            experiment_id: row.experiment_id,
            required_agent: row.required_agent,
            agent_label: row.agent_label,
            block: row.block,
            home: row.home,
        },
        experiment_name: row.experiment_name,
        is_paused: row.is_paused,
        paused_by: row.paused_by,
        priority: row.priority,
    });
    Ok(waiting.collect())
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
