//! SQL of runs. A phase change requires the previous phase, so that only one of two concurrent changes succeeds.

pub mod cells;
pub mod groups;
mod history;
pub mod latest;
pub mod remarks;
pub mod retries;
pub mod row;
pub mod secrets;
pub mod spec;
pub mod trash;
pub mod values;

use std::collections::HashMap;

pub use history::{list, plan};
use sqlx::{AssertSqlSafe, SqliteConnection, SqlitePool};

use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    fleet,
    runs::{
        model::{Run, RunSpec},
        store::{
            row::select,
            spec::{COLUMNS, PARAMETERS, SpecColumns},
        },
    },
};

/// Returns running and queued runs in order of execution, at most `limit`.
pub async fn unfinished(rows: &Rows, limit: i64) -> sqlx::Result<Vec<Run>> {
    let rest = "where phase not in ('finished', 'failed', 'cancelled', 'lost')
         order by phase = 'queued', priority desc, seq limit ?";
    rows.read(move |connection| select(connection, rest, [limit])).await
}

/// Counts running and queued runs.
pub async fn unfinished_count(pool: &SqlitePool) -> sqlx::Result<(usize, usize)> {
    let row = sqlx::query!(
        r#"select count(*) filter (where phase <> 'queued') as "running!: i64",
                  count(*) filter (where phase = 'queued') as "queued!: i64"
           from run where phase not in ('finished', 'failed', 'cancelled', 'lost')"#
    )
    .fetch_one(pool)
    .await?;
    Ok((usize::try_from(row.running).map_err(decode)?, usize::try_from(row.queued).map_err(decode)?))
}

/// Counts the queued runs of a user and of all users.
pub async fn queued_by(connection: &mut SqliteConnection, created_by: &str) -> sqlx::Result<(usize, usize)> {
    let row = sqlx::query!(
        r#"select count(*) as "all!: i64", count(*) filter (where created_by = ?) as "own!: i64"
           from run indexed by run_queued_by where phase = 'queued'"#,
        created_by
    )
    .fetch_one(connection)
    .await?;
    Ok((usize::try_from(row.own).map_err(decode)?, usize::try_from(row.all).map_err(decode)?))
}

/// Returns all runs of an experiment in order of submission.
pub async fn of_experiment(rows: &Rows, experiment: &ExperimentId) -> sqlx::Result<Vec<Run>> {
    let experiment = experiment.to_string();
    let rest = "where experiment_id = ? and deleted_at is null order by seq";
    rows.read(move |connection| select(connection, rest, [experiment])).await
}

/// Returns all repetitions of a run's cell in its experiment, including the run, in order of submission.
///
/// None for a run without an experiment. Excludes runs whose version or load generator is known to differ.
pub async fn repetitions(rows: &Rows, run: &Run) -> sqlx::Result<Vec<Run>> {
    let Some(experiment) = &run.experiment else { return Ok(Vec::new()) };
    let keys = [experiment.to_string(), run.id.to_string()];
    let rest = "indexed by run_experiment
         where experiment_id = ?1 and plan_key is (select plan_key from run where id = ?2) and deleted_at is null
         order by seq";
    let all = rows.read(move |connection| select(connection, rest, keys)).await?;
    let is_same = |other: &Run| {
        may_be_same(other.version.as_ref(), run.version.as_ref())
            && may_be_same(other.engine.as_ref(), run.engine.as_ref())
    };
    Ok(all.into_iter().filter(is_same).collect())
}

/// Whether two values are equal or at least one is unknown.
fn may_be_same<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// Returns the runs with these ids, in order of submission; skips unknown ids.
pub async fn by_ids(rows: &Rows, ids: &[RunId]) -> sqlx::Result<Vec<Run>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let rest = "where id in (select value from json_each(?)) and deleted_at is null order by seq";
    rows.read(move |connection| select(connection, rest, [ids])).await
}

/// Returns one run.
pub async fn find(rows: &Rows, id: &RunId) -> sqlx::Result<Option<Run>> {
    let id = id.to_string();
    let found = rows.read(move |connection| select(connection, "where id = ? and deleted_at is null", [id])).await?;
    Ok(found.into_iter().next())
}

/// Returns the start of each phase of a run, in order.
pub async fn phases(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Vec<(String, i64)>> {
    let rows =
        sqlx::query!("select phase, at from run_phase where run_id = ? order by at, phase", id).fetch_all(pool).await?;
    Ok(rows.into_iter().map(|row| (row.phase, row.at)).collect())
}

/// Returns the compressed summary of a run.
pub async fn summary(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_summary where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// Returns the packed series of a run.
pub async fn series(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    let row = sqlx::query!("select body from run_series where run_id = ?", id).fetch_optional(pool).await?;
    Ok(row.map(|row| row.body))
}

/// Returns the compressed evidence of a run.
pub async fn evidence(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_evidence where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// Returns the compressed evidence of runs by id; skips runs without evidence.
pub async fn evidence_of(rows: &Rows, ids: &[RunId]) -> sqlx::Result<HashMap<RunId, Vec<u8>>> {
    bodies("select run_id, body from run_evidence where run_id in (select value from json_each(?))", rows, ids).await
}

/// Returns the packed series of runs by id; skips runs without a series.
pub async fn series_of(rows: &Rows, ids: &[RunId]) -> sqlx::Result<HashMap<RunId, Vec<u8>>> {
    bodies("select run_id, body from run_series where run_id in (select value from json_each(?))", rows, ids).await
}

async fn bodies(select: &'static str, rows: &Rows, ids: &[RunId]) -> sqlx::Result<HashMap<RunId, Vec<u8>>> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    rows.read(move |connection| {
        let mut statement = connection.prepare_cached(select)?;
        let all = statement.query_map([ids], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(all.collect::<rusqlite::Result<_>>()?)
    })
    .await
}

/// A run to queue.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// Id.
    pub id: RunId,
    /// Experiment.
    pub experiment: Option<&'a ExperimentId>,
    /// What it measures.
    pub spec: &'a RunSpec,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Remaining retries if the run fails, is lost or is invalid.
    pub retries: u32,
    /// The required agent.
    pub required_agent: Option<&'a str>,
    /// The required label of the agent.
    pub agent_label: Option<&'a str>,
    /// Number of the block; runs of one block stay on one machine.
    pub block: u32,
    /// The user who submitted the run.
    pub created_by: &'a str,
    /// When the run was submitted, unix ms.
    pub now: i64,
}

/// Stores a run as queued.
pub async fn queue(connection: &mut SqliteConnection, run: &NewRun<'_>) -> sqlx::Result<()> {
    let insert = format!(
        "insert into run (phase, origin, id, experiment_id, repetition, retries, required_agent_id, agent_label, block,
             created_by, queued_at, phase_at, plan_key, {COLUMNS})
         values ('queued', 'agent', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, {PARAMETERS})"
    );
    let required_agent = match run.required_agent {
        Some(name) => Some(fleet::store::id(connection, name).await?),
        None => None,
    };
    let insert = sqlx::query(AssertSqlSafe(insert))
        .bind(&run.id)
        .bind(run.experiment)
        .bind(run.repetition)
        .bind(run.retries)
        .bind(required_agent)
        .bind(run.agent_label)
        .bind(run.block)
        .bind(run.created_by)
        .bind(run.now)
        .bind(run.now)
        .bind(run.spec.plan_key());
    let generators = fleet::store::ids(connection, &run.spec.generators).await?;
    SpecColumns { generators, ..run.spec.into() }.bind(insert).execute(&mut *connection).await?;
    enter(connection, &run.id, "queued", run.now).await
}

/// Records when a run entered a phase.
pub async fn enter(connection: &mut SqliteConnection, id: &RunId, phase: &str, at: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into run_phase (run_id, phase, at) values (?, ?, ?) on conflict do nothing", id, phase, at)
        .execute(connection)
        .await?;
    Ok(())
}
