//! SQL of retries: where a run stands, and what is queued in its place.

use sqlx::SqliteConnection;

use crate::{
    app::ids::{ExperimentId, RunId},
    runs::store::enter,
};

/// A run that is in somebody's hands.
#[derive(Clone, Debug)]
pub struct HeldRun {
    /// Its id.
    pub id: RunId,
    /// Its experiment.
    pub experiment_id: Option<ExperimentId>,
}

/// Queues a run's repetition anew if the run came to nothing and is not the last try: once for each such run, whoever
/// asks how often. What is still wrong after that is left to people. True if it did.
pub async fn repeat(connection: &mut SqliteConnection, id: &RunId, new_id: &RunId, now: i64) -> sqlx::Result<bool> {
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

/// The run that was queued in place of a lost one.
pub async fn retry_of(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Option<(RunId, String)>> {
    let row = sqlx::query!(r#"select id as "id: RunId", phase from run where retry_of = ?"#, id)
        .fetch_optional(connection)
        .await?;
    Ok(row.map(|row| (row.id, row.phase)))
}

/// Where a run stands and whose it is.
pub async fn standing(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Option<(String, Option<String>)>> {
    let row = sqlx::query!("select phase, agent from run where id = ?", id).fetch_optional(connection).await?;
    Ok(row.map(|row| (row.phase, row.agent)))
}

/// Takes the place-holder of a lost run out of the queue, because the lost run's result arrived after all.
pub async fn withdraw(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<()> {
    sqlx::query!("delete from run where id = ? and phase = 'queued'", id).execute(connection).await?;
    Ok(())
}
