//! SQL of leases: granting, renewing and expiring them, and reviving lost runs.

use std::collections::BTreeSet;

use brewbench_wire::Phase;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::ids::{AgentId, ExperimentId, RunId},
    distributed::store::participants,
    results::store::parts,
    runs::store::{
        enter,
        retries::{HeldRun, phase_and_agent, queue_retry, retry_of, withdraw},
    },
};

/// Whether an agent has a lease.
pub async fn holds_any(connection: &mut SqliteConnection, agent: AgentId) -> sqlx::Result<bool> {
    let row =
        sqlx::query!("select run_id from lease where agent_id = ? limit 1", agent).fetch_optional(connection).await?;
    Ok(row.is_some())
}

/// Leases a queued run, or both of a duet, to the host and the generators.
///
/// Returns false if a run is no longer queued or its experiment has been paused.
pub async fn lease(
    pool: &SqlitePool,
    runs: &[&RunId],
    host: AgentId,
    generators: &[AgentId],
    times: (i64, i64),
) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    for id in runs {
        if !lease_one(&mut transaction, id, host, generators, times).await? {
            return Ok(false);
        }
    }
    transaction.commit().await?;
    Ok(true)
}

async fn lease_one(
    connection: &mut SqliteConnection,
    id: &RunId,
    host: AgentId,
    generators: &[AgentId],
    (now, expires): (i64, i64),
) -> sqlx::Result<bool> {
    let changed = sqlx::query!(
        "update run set phase = 'leased', agent_id = ?2, phase_at = ?3, started_at = ?3
         where id = ?1 and phase = 'queued'
             and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)",
        id,
        host,
        now
    )
    .execute(&mut *connection)
    .await?
    .rows_affected()
        > 0;
    if changed {
        enter(connection, id, "leased", now).await?;
        if !generators.is_empty() {
            participants::begin(connection, id, host, generators).await?;
        }
        for agent in [host].iter().chain(generators) {
            grant(connection, id, *agent, expires).await?;
        }
    }
    Ok(changed)
}

async fn grant(connection: &mut SqliteConnection, run: &RunId, agent: AgentId, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into lease (run_id, agent_id, expires_at) values (?, ?, ?)", run, agent, expires)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns a leased run to the queue, because its agent can't do it. Returns false if the run has ended.
pub async fn give_back(pool: &SqlitePool, id: &RunId, agent: AgentId, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update run set phase = 'queued', phase_at = ?3, agent_id = null, started_at = null
         where id = ?1 and agent_id = ?2 and phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')",
        id,
        agent,
        now
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if changed {
        parts::forget(&mut transaction, id).await?;
    }
    transaction.commit().await?;
    Ok(changed)
}

/// The result of advancing a run to a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// The run is now in this phase.
    Moved,
    /// The run is already in this phase or a later one: phases only go forward.
    Behind,
    /// The run belongs to another agent, or has ended.
    NotHeld,
}

/// Advances a run to a later phase.
pub async fn advance(pool: &SqlitePool, id: &RunId, agent: AgentId, phase: Phase, now: i64) -> sqlx::Result<Advance> {
    let mut transaction = pool.begin().await?;
    let availability = phase_and_agent(&mut transaction, id).await?.filter(|(_, holder)| *holder == Some(agent));
    let Some((current, _)) = availability.filter(|(phase, _)| phase.is_held()) else { return Ok(Advance::NotHeld) };
    if !phase.is_held() || phase <= current {
        return Ok(Advance::Behind);
    }
    let phase = phase.as_str();
    sqlx::query!("update run set phase = ?2, phase_at = ?3 where id = ?1", id, phase, now)
        .execute(&mut *transaction)
        .await?;
    enter(&mut transaction, id, phase, now).await?;
    transaction.commit().await?;
    Ok(Advance::Moved)
}

/// The lease of an agent on a run.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// The name of the agent.
    pub agent: String,
    /// Whether it generates load for a target that another agent runs.
    pub is_generator: bool,
}

/// Renews the lease of an agent on a run. Returns false if it has none.
pub async fn renew(pool: &SqlitePool, run: &RunId, agent: AgentId, expires: i64) -> sqlx::Result<bool> {
    let changed =
        sqlx::query!("update lease set expires_at = ?3 where run_id = ?1 and agent_id = ?2", run, agent, expires)
            .execute(pool)
            .await?;
    Ok(changed.rows_affected() > 0)
}

/// Renews every lease, because agents could not renew them while the server was unavailable.
pub async fn renew_all(pool: &SqlitePool, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("update lease set expires_at = ?", expires).execute(pool).await?;
    Ok(())
}

/// Returns the leases of an agent.
pub async fn held_by(pool: &SqlitePool, agent: AgentId) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"select run.id as "run: RunId", run.experiment_id as "experiment: ExperimentId", agent.name as agent,
                  run.agent_id is not lease.agent_id as "is_generator!: bool"
           from lease join run on run.id = lease.run_id join agent on agent.id = lease.agent_id
           where lease.agent_id = ? order by run.seq"#,
        agent
    )
    .fetch_all(pool)
    .await
}

/// Returns the expired leases, those of hosts before those of generators.
pub async fn expired(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"select run.id as "run: RunId", run.experiment_id as "experiment: ExperimentId", agent.name as agent,
                  run.agent_id is not lease.agent_id as "is_generator!: bool"
           from lease join run on run.id = lease.run_id join agent on agent.id = lease.agent_id
           where lease.expires_at <= ?
           order by run.agent_id is not lease.agent_id, run.seq"#,
        now
    )
    .fetch_all(pool)
    .await
}

/// Marks a run as lost and queues a retry if one is left. Returns false if the run has ended.
pub async fn lose(pool: &SqlitePool, id: &RunId, new_id: &RunId, error: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update run set phase = 'lost', phase_at = ?2, finished_at = ?2, error = ?3
         where id = ?1 and exists (select 1 from lease where run_id = run.id and agent_id = run.agent_id)",
        id,
        now,
        error
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if changed {
        enter(&mut transaction, id, "lost", now).await?;
        queue_retry(&mut transaction, id, new_id, now).await?;
    }
    transaction.commit().await?;
    Ok(changed)
}

/// Returns which of these runs the agent has lost, without distributed runs: those were stopped on all participants.
pub async fn lost_by(pool: &SqlitePool, agent: AgentId, ids: &BTreeSet<RunId>) -> sqlx::Result<Vec<HeldRun>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(crate::app::db::decode)?;
    sqlx::query_as!(
        HeldRun,
        r#"select run.id as "id!: RunId", run.experiment_id as "experiment_id: ExperimentId" from json_each(?) named cross join run on run.id = named.value
           where run.agent_id = ? and run.phase = 'lost' and run.generators = '[]' order by run.seq"#,
        ids,
        agent
    )
    .fetch_all(pool)
    .await
}

/// Leases a lost run to its agent again, which still holds it, and withdraws the queued retry.
///
/// Returns false if the retry has started, or if the run is not lost.
pub async fn revive(pool: &SqlitePool, id: &RunId, agent: AgentId, now: i64, expires: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    match retry_of(&mut transaction, id).await? {
        Some((_, phase)) if phase != Phase::Queued => return Ok(false),
        Some((retry, _)) => withdraw(&mut transaction, &retry).await?,
        None => {}
    }
    let changed = sqlx::query!(
        "update run set finished_at = null, error = null, phase_at = ?3, phase = coalesce(
             (select phase from run_phase where run_id = ?1
                  and phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')
              order by case phase when 'leased' then 0 when 'preparing' then 1 when 'warming_up' then 2
                  when 'measuring' then 3 else 4 end desc limit 1), 'leased')
         where id = ?1 and agent_id = ?2 and phase = 'lost'",
        id,
        agent,
        now
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if changed {
        grant(&mut transaction, id, agent, expires).await?;
        // The run has not ended after all.
        sqlx::query!("delete from run_phase where run_id = ? and phase = 'lost'", id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    Ok(changed)
}
