//! SQL of handing runs out and of what becomes of them when their agent falls silent.

use std::collections::BTreeSet;

use brewbench_agent::wire::Phase;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::ids::{ExperimentId, RunId},
    distributed::store::participants,
    results::store::parts,
    runs::store::{
        enter,
        retries::{HeldRun, repeat, retry_of, standing, withdraw},
    },
};

/// Whether an agent holds a run by our books.
pub async fn holds_any(connection: &mut SqliteConnection, agent: &str) -> sqlx::Result<bool> {
    let row =
        sqlx::query!("select run_id from lease where agent = ? limit 1", agent).fetch_optional(connection).await?;
    Ok(row.is_some())
}

/// Gives a queued run to an agent, and to those who make its load, if others do; false if somebody was faster, also to pause
/// its experiment.
pub async fn lease(
    pool: &SqlitePool,
    id: &RunId,
    agent: &str,
    generators: &[String],
    (now, expires): (i64, i64),
) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'leased', agent = ?2, phase_at = ?3, started_at = ?3
         where id = ?1 and phase = 'queued'
             and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)",
        id,
        agent,
        now
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        enter(&mut transaction, id, "leased", now).await?;
        if !generators.is_empty() {
            participants::begin(&mut transaction, id, agent, generators).await?;
        }
        for agent in [agent].into_iter().chain(generators.iter().map(String::as_str)) {
            grant(&mut transaction, id, agent, expires).await?;
        }
    }
    transaction.commit().await?;
    Ok(done)
}

async fn grant(connection: &mut SqliteConnection, run: &RunId, agent: &str, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into lease (run_id, agent, expires_at) values (?, ?, ?)", run, agent, expires)
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives a leased run back to the queue: its agent can't do it after all. False if it had ended.
pub async fn give_back(pool: &SqlitePool, id: &RunId, agent: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'queued', phase_at = ?3, agent = null, started_at = null
         where id = ?1 and agent = ?2 and phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')",
        id,
        agent,
        now
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        parts::forget(&mut transaction, id).await?;
    }
    transaction.commit().await?;
    Ok(done)
}

/// What became of a run's next phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// It is in it.
    Moved,
    /// It is in a later one: phases only go forward.
    Behind,
    /// It is not this agent's, or has ended.
    NotHeld,
}

/// The phases of a run in somebody's hands, in their order.
const WORK: [Phase; 5] = [Phase::Leased, Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting];

/// Moves a run on to a later phase of its work.
pub async fn advance(pool: &SqlitePool, id: &RunId, agent: &str, phase: Phase, now: i64) -> sqlx::Result<Advance> {
    let mut transaction = pool.begin().await?;
    let standing = standing(&mut transaction, id).await?.filter(|(_, holder)| holder.as_deref() == Some(agent));
    let rank = |name: &str| WORK.iter().position(|phase| phase.as_str() == name);
    let Some(stands) = standing.and_then(|(stands, _)| rank(&stands)) else { return Ok(Advance::NotHeld) };
    if rank(phase.as_str()).is_none_or(|next| next <= stands) {
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

/// What an agent works on.
#[derive(Clone, Debug)]
pub struct Lease {
    /// The run.
    pub run: RunId,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// The agent.
    pub agent: String,
    /// Whether it generates load for a target that another agent runs.
    pub is_generator: bool,
}

/// Prolongs the lease of an agent that still works on a run; false if it does not by our books.
pub async fn prolong(pool: &SqlitePool, run: &RunId, agent: &str, expires: i64) -> sqlx::Result<bool> {
    let done = sqlx::query!("update lease set expires_at = ?3 where run_id = ?1 and agent = ?2", run, agent, expires)
        .execute(pool)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Prolongs every lease: a server that was away itself can't blame its agents for silence.
pub async fn prolong_all(pool: &SqlitePool, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("update lease set expires_at = ?", expires).execute(pool).await?;
    Ok(())
}

/// What an agent works on by our books.
pub async fn held_by(pool: &SqlitePool, agent: &str) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"select run.id as "run: RunId", run.experiment_id as "experiment: ExperimentId", lease.agent,
                  run.agent is not lease.agent as "is_generator!: bool"
           from lease join run on run.id = lease.run_id where lease.agent = ? order by run.seq"#,
        agent
    )
    .fetch_all(pool)
    .await
}

/// Leases that have expired; those of agents that run a target first.
pub async fn expired(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<Lease>> {
    sqlx::query_as!(
        Lease,
        r#"select run.id as "run: RunId", run.experiment_id as "experiment: ExperimentId", lease.agent,
                  run.agent is not lease.agent as "is_generator!: bool"
           from lease join run on run.id = lease.run_id where lease.expires_at <= ?
           order by run.agent is not lease.agent, run.seq"#,
        now
    )
    .fetch_all(pool)
    .await
}

/// Gives a run up and does its repetition again where that is due. False if it had ended.
pub async fn lose(pool: &SqlitePool, id: &RunId, new_id: &RunId, error: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'lost', phase_at = ?2, finished_at = ?2, error = ?3
         where id = ?1 and exists (select 1 from lease where run_id = run.id and agent = run.agent)",
        id,
        now,
        error
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        enter(&mut transaction, id, "lost", now).await?;
        repeat(&mut transaction, id, new_id, now).await?;
    }
    transaction.commit().await?;
    Ok(done)
}

/// Those of these runs that were given up in the hands of an agent, but for those that others do too: they were stopped.
pub async fn lost_by(pool: &SqlitePool, agent: &str, ids: &BTreeSet<RunId>) -> sqlx::Result<Vec<HeldRun>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(crate::runs::store::row::decode)?;
    sqlx::query_as!(
        HeldRun,
        r#"select run.id as "id!: RunId", run.experiment_id as "experiment_id: ExperimentId" from json_each(?) named cross join run on run.id = named.value
           where run.agent = ? and run.phase = 'lost' and run.generators = '[]' order by run.seq"#,
        ids,
        agent
    )
    .fetch_all(pool)
    .await
}

/// Takes a run that was given up back into the hands of its agent, which holds it after all, as long as nobody has begun
/// to measure its cell again: its place-holder then leaves the queue. False if somebody has, or it was not given up.
pub async fn revive(pool: &SqlitePool, id: &RunId, agent: &str, now: i64, expires: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    match retry_of(&mut transaction, id).await? {
        Some((_, phase)) if phase != Phase::Queued.as_str() => return Ok(false),
        Some((retry, _)) => withdraw(&mut transaction, &retry).await?,
        None => {}
    }
    let done = sqlx::query!(
        "update run set finished_at = null, error = null, phase_at = ?3, phase = coalesce(
             (select phase from run_phase where run_id = ?1
                  and phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')
              order by case phase when 'leased' then 0 when 'preparing' then 1 when 'warming_up' then 2
                  when 'measuring' then 3 else 4 end desc limit 1), 'leased')
         where id = ?1 and agent = ?2 and phase = 'lost'",
        id,
        agent,
        now
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        grant(&mut transaction, id, agent, expires).await?;
        // It was not its end.
        sqlx::query!("delete from run_phase where run_id = ? and phase = 'lost'", id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    Ok(done)
}
