//! SQL of handing runs out and of what becomes of them when their agent falls silent.

use std::collections::BTreeSet;

use brewbench_agent::wire::Phase;
use sqlx::{SqliteConnection, SqlitePool};

use super::{crew, enter, parts};
use crate::auth::audit::{self, Act};

/// A queued run with what an agent needs to do it.
#[derive(Clone, Debug)]
pub struct QueuedRun {
    /// Its id.
    pub id: String,
    /// Its experiment.
    pub experiment_id: Option<String>,
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
        r#"select id, experiment_id, target, size_name as "size_name!", vcpus as "vcpus!",
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
    pub id: String,
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
        r#"select run.id, experiment.name as "experiment_name?", experiment.paused_at is not null as "is_paused!: bool",
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
pub async fn put_first(pool: &SqlitePool, id: &str, act: &Act) -> sqlx::Result<bool> {
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
pub async fn put_all_first(pool: &SqlitePool, experiment: &str, act: &Act) -> sqlx::Result<bool> {
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

/// Gives the runs of an agent, and those that wait for it, its new name.
pub async fn rename_agent(connection: &mut SqliteConnection, name: &str, new: &str) -> sqlx::Result<()> {
    sqlx::query!("update run set agent = ?2 where agent = ?1", name, new).execute(&mut *connection).await?;
    parts::rename_agent(connection, name, new).await?;
    sqlx::query!(
        "update run set wanted_agent = ?2
         where wanted_agent = ?1 and phase = 'queued' and phase not in ('finished', 'failed', 'cancelled', 'lost')",
        name,
        new
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Whether an agent holds a run by our books.
pub async fn holds_any(connection: &mut SqliteConnection, agent: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        "select id from run indexed by run_leased where agent = ?1 and lease_expires_at is not null
         union all
         select run_id as id from run_part indexed by run_part_leased where agent = ?1 and lease_expires_at is not null
         limit 1",
        agent
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.is_some())
}

/// Gives a queued run to an agent, and to those who make its load, if others do; false if somebody was faster, also to pause
/// its experiment.
pub async fn lease(
    pool: &SqlitePool,
    id: &str,
    agent: &str,
    generators: &[String],
    (now, expires): (i64, i64),
) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'leased', agent = ?2, phase_at = ?3, started_at = ?3, lease_expires_at = ?4
         where id = ?1 and phase = 'queued'
             and not exists (select 1 from experiment where id = run.experiment_id and paused_at is not null)",
        id,
        agent,
        now,
        expires
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        enter(&mut transaction, id, "leased", now).await?;
        if !generators.is_empty() {
            crew::begin(&mut transaction, id, agent, generators, expires).await?;
        }
    }
    transaction.commit().await?;
    Ok(done)
}

/// Gives a leased run back to the queue: its agent can't do it after all. False if it had ended.
pub async fn give_back(pool: &SqlitePool, id: &str, agent: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'queued', phase_at = ?3, agent = null, started_at = null, lease_expires_at = null
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
pub async fn advance(pool: &SqlitePool, id: &str, agent: &str, phase: Phase, now: i64) -> sqlx::Result<Advance> {
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

/// Prolongs the lease of what an agent still holds; false if it does not hold it by our books.
pub async fn prolong(pool: &SqlitePool, id: &str, agent: &str, expires: i64) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update run set lease_expires_at = ?3 where id = ?1 and agent = ?2 and lease_expires_at is not null",
        id,
        agent,
        expires
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Prolongs every lease: a server that was away itself can't blame its agents for silence.
pub async fn prolong_all(pool: &SqlitePool, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("update run set lease_expires_at = ? where lease_expires_at is not null", expires)
        .execute(pool)
        .await?;
    Ok(())
}

/// A run that is in somebody's hands.
#[derive(Clone, Debug)]
pub struct HeldRun {
    /// Its id.
    pub id: String,
    /// Its experiment.
    pub experiment_id: Option<String>,
}

/// What an agent holds by our books.
pub async fn held_by(pool: &SqlitePool, agent: &str) -> sqlx::Result<Vec<HeldRun>> {
    sqlx::query_as!(
        HeldRun,
        "select id, experiment_id from run indexed by run_leased where agent = ? and lease_expires_at is not null order by seq",
        agent
    )
    .fetch_all(pool)
    .await
}

/// Runs whose lease has run out.
pub async fn expired(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<HeldRun>> {
    sqlx::query_as!(
        HeldRun,
        "select id, experiment_id from run where lease_expires_at is not null and lease_expires_at <= ? order by seq",
        now
    )
    .fetch_all(pool)
    .await
}

/// Gives a run up and does its repetition again where that is due. False if it had ended.
pub async fn lose(pool: &SqlitePool, id: &str, new_id: &str, error: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'lost', phase_at = ?2, finished_at = ?2, lease_expires_at = null, error = ?3
         where id = ?1 and lease_expires_at is not null",
        id,
        now,
        error
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        parts::release(&mut transaction, id).await?;
        enter(&mut transaction, id, "lost", now).await?;
        repeat(&mut transaction, id, new_id, now).await?;
    }
    transaction.commit().await?;
    Ok(done)
}

/// Queues a run's repetition anew if the run came to nothing and is not the last try: once for each such run, whoever
/// asks how often. What is still wrong after that is left to people. True if it did.
pub async fn repeat(connection: &mut SqliteConnection, id: &str, new_id: &str, now: i64) -> sqlx::Result<bool> {
    let queued = sqlx::query!(
        "insert into run (id, experiment_id, retry_of, origin, target, version, size_name, vcpus, memory_bytes, scenario,
             scenario_sha256, parameters, vus, duration_ms, warm_up_ms, repetition, wanted_agent, agent_label, block,
             created_by, phase, queued_at, phase_at, load, retries, priority, generators, warm_up_auto)
         select ?2, experiment_id, id, origin, target, version, size_name, vcpus, memory_bytes, scenario,
             scenario_sha256, parameters, vus, duration_ms, warm_up_ms, repetition, wanted_agent, agent_label, block,
             created_by, 'queued', ?3, ?3, load, retries - 1, priority, generators, warm_up_auto
         from run
         where id = ?1 and origin = 'agent' and retries > 0 and (phase in ('lost', 'failed') or verdict = 'invalid')
             and not exists (select 1 from run other where other.retry_of = ?1)",
        id,
        new_id,
        now
    )
    .execute(&mut *connection)
    .await?;
    if queued.rows_affected() == 0 {
        return Ok(false);
    }
    enter(connection, new_id, "queued", now).await?;
    Ok(true)
}

/// Those of these runs that were given up in the hands of an agent, but for those that others do too: they were stopped.
pub async fn lost_by(pool: &SqlitePool, agent: &str, ids: &BTreeSet<String>) -> sqlx::Result<Vec<HeldRun>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(super::decode)?;
    sqlx::query_as!(
        HeldRun,
        r#"select run.id as "id!", run.experiment_id from json_each(?) named cross join run on run.id = named.value
           where run.agent = ? and run.phase = 'lost' and run.generators = '[]' order by run.seq"#,
        ids,
        agent
    )
    .fetch_all(pool)
    .await
}

/// Takes a run that was given up back into the hands of its agent, which holds it after all, as long as nobody has begun
/// to measure its cell again: its place-holder then leaves the queue. False if somebody has, or it was not given up.
pub async fn revive(pool: &SqlitePool, id: &str, agent: &str, now: i64, expires: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    match retry_of(&mut transaction, id).await? {
        Some((_, phase)) if phase != Phase::Queued.as_str() => return Ok(false),
        Some((retry, _)) => withdraw(&mut transaction, &retry).await?,
        None => {}
    }
    let done = sqlx::query!(
        "update run set finished_at = null, error = null, phase_at = ?3, lease_expires_at = ?4, phase = coalesce(
             (select phase from run_phase where run_id = ?1
                  and phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')
              order by case phase when 'leased' then 0 when 'preparing' then 1 when 'warming_up' then 2
                  when 'measuring' then 3 else 4 end desc limit 1), 'leased')
         where id = ?1 and agent = ?2 and phase = 'lost'",
        id,
        agent,
        now,
        expires
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        // It was not its end.
        sqlx::query!("delete from run_phase where run_id = ? and phase = 'lost'", id)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
    }
    Ok(done)
}

/// The run that was queued in place of a lost one.
pub async fn retry_of(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<Option<(String, String)>> {
    let row = sqlx::query!("select id, phase from run where retry_of = ?", id).fetch_optional(connection).await?;
    Ok(row.map(|row| (row.id, row.phase)))
}

/// Where a run stands and whose it is.
pub async fn standing(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<Option<(String, Option<String>)>> {
    let row = sqlx::query!("select phase, agent from run where id = ?", id).fetch_optional(connection).await?;
    Ok(row.map(|row| (row.phase, row.agent)))
}

/// Takes the place-holder of a lost run out of the queue, because the lost run's result arrived after all.
pub async fn withdraw(connection: &mut SqliteConnection, id: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from run where id = ? and phase = 'queued'", id).execute(connection).await?;
    Ok(())
}
