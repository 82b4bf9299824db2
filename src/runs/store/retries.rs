//! SQL of retries: the phase of a run, and the run queued in its place.

use brewbench_wire::Phase;
use sqlx::{AssertSqlSafe, SqliteConnection};

use crate::{
    app::{
        db::decode,
        ids::{AgentId, ExperimentId, RunId},
    },
    runs::{
        store::{enter, spec::COLUMNS},
        verdict::Reason,
    },
};

/// A run that an agent holds a lease on.
#[derive(Clone, Debug)]
pub struct HeldRun {
    /// Id.
    pub id: RunId,
    /// Experiment.
    pub experiment_id: Option<ExperimentId>,
}

/// Queues a retry of a failed, lost or invalid run that has retries left. Returns whether it did.
/// Idempotent: each run is retried at most once.
pub async fn queue_retry(
    connection: &mut SqliteConnection,
    id: &RunId,
    new_id: &RunId,
    now: i64,
) -> sqlx::Result<bool> {
    let insert = format!(
        "insert into run (id, phase, retries, queued_at, phase_at, experiment_id, retry_of, origin, version, repetition,
             required_agent_id, agent_label, block, created_by, priority, plan_key, {COLUMNS})
         select ?2, 'queued', retries - 1, ?3, ?3, experiment_id, id, origin, version, repetition,
             required_agent_id, agent_label, block, created_by, priority, plan_key, {COLUMNS}
         from run
         where id = ?1 and origin = 'agent' and retries > 0 and (phase in ('lost', 'failed') or verdict = 'invalid')
             and not exists (select 1 from run other where other.retry_of = ?1)"
    );
    let insert = sqlx::query(AssertSqlSafe(insert)).bind(id).bind(new_id).bind(now);
    let queued = insert.execute(&mut *connection).await?;
    if queued.rows_affected() == 0 {
        return Ok(false);
    }
    enter(connection, new_id, "queued", now).await?;
    Ok(true)
}

/// Returns the reasons of the other invalid runs of its cell in the experiment of a run.
pub async fn invalid_reasons_of_cell(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Vec<Vec<Reason>>> {
    let rows = sqlx::query_scalar!(
        "select other.reasons from run join run other on other.experiment_id = run.experiment_id
         where run.id = ? and other.id <> run.id and other.plan_key = run.plan_key and other.verdict = 'invalid'",
        id
    );
    let all = rows.fetch_all(connection).await?;
    all.iter().map(|text| serde_json::from_str(text).map_err(decode)).collect()
}

/// Returns the run that was queued in place of a lost one, and its phase.
pub async fn retry_of(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Option<(RunId, Phase)>> {
    let row = sqlx::query!(r#"select id as "id: RunId", phase from run where retry_of = ?"#, id)
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok((row.id, row.phase.parse().map_err(decode)?))).transpose()
}

/// Returns the phase and the agent of a run.
pub async fn phase_and_agent(
    connection: &mut SqliteConnection,
    id: &RunId,
) -> sqlx::Result<Option<(Phase, Option<AgentId>)>> {
    let row = sqlx::query!(r#"select phase, agent_id as "agent: AgentId" from run where id = ?"#, id)
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok((row.phase.parse().map_err(decode)?, row.agent))).transpose()
}

/// Returns the other run of a duet: that of the other target in the same repetition.
pub async fn partner(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Option<RunId>> {
    let partner = sqlx::query_scalar!(
        r#"select other.id as "id: RunId"
           from run cross join run other on other.experiment_id = run.experiment_id and other.repetition = run.repetition
           where run.id = ? and other.id <> run.id and run.spec ->> 'duet' and other.spec ->> 'duet'"#,
        id
    );
    partner.fetch_optional(connection).await
}

/// Removes the queued retry of a lost run, because the lost run's result has arrived.
pub async fn withdraw(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<()> {
    sqlx::query!("delete from run where id = ? and phase = 'queued'", id).execute(connection).await?;
    Ok(())
}
