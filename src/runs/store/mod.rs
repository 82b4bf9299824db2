//! SQL of runs. A phase change requires the previous phase, so that only one of two concurrent changes succeeds.

pub mod cells;
mod history;
pub mod latest;
pub mod remarks;
pub mod retries;
pub mod row;
pub mod trash;
pub mod values;

use std::collections::HashMap;

use brewbench_agent::wire::load::Load;
pub use history::{list, plan};
use sqlx::{SqliteConnection, SqlitePool};

use super::load;
use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    runs::{
        model::{Run, RunSize},
        store::row::select,
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
pub async fn one(rows: &Rows, id: &RunId) -> sqlx::Result<Option<Run>> {
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
    /// Name of the target.
    pub target: &'a str,
    /// Machine size.
    pub size: Option<&'a RunSize>,
    /// Name of the scenario.
    pub scenario: Option<&'a str>,
    /// Revision of the scenario.
    pub scenario_sha256: Option<&'a str>,
    /// Parameters of the scenario as JSON.
    pub parameters: &'a str,
    /// Load.
    pub load: &'a Load,
    /// Requested warm-up.
    pub warm_up_ms: Option<i64>,
    /// Whether the warm-up lasts until the target is steady.
    pub warm_up_auto: bool,
    /// Number of the repetition, from 1.
    pub repetition: u32,
    /// Whether the target is profiled.
    pub profiled: bool,
    /// Remaining retries if the run fails, is lost or is invalid.
    pub retries: u32,
    /// The required agent.
    pub required_agent: Option<&'a str>,
    /// The required label of the agent.
    pub agent_label: Option<&'a str>,
    /// Number of the block; runs of one block stay on one machine.
    pub block: u32,
    /// Agents that generate the load of a distributed run.
    pub generators: &'a [String],
    /// Number of load generators in the cluster of the agent.
    pub cluster_generators: u32,
    /// The user who submitted the run.
    pub created_by: &'a str,
    /// When the run was submitted, unix ms.
    pub now: i64,
}

/// Stores a run as queued.
pub async fn queue(connection: &mut SqliteConnection, run: &NewRun<'_>) -> sqlx::Result<()> {
    let replicas = run.size.map_or(1, |size| size.replicas);
    let size = run.size.map(|size| (&size.name, size.vcpus, size.memory_bytes.cast_signed()));
    let (size_name, vcpus, memory) =
        size.map_or((None, None, None), |(name, vcpus, memory)| (Some(name), Some(vcpus), Some(memory)));
    let (vus, duration_ms) = (load::constant_vus(run.load), load::duration_ms(run.load));
    let load = load::to_json(run.load);
    let generators = serde_json::to_string(run.generators).map_err(decode)?;
    sqlx::query!(
        "insert into run (id, experiment_id, origin, target, size_name, vcpus, memory_bytes, scenario, scenario_sha256,
             parameters, vus, duration_ms, warm_up_ms, repetition, required_agent, created_by, phase, queued_at, phase_at,
             load, retries, generators, agent_label, block, warm_up_auto, profiled, cluster_generators, replicas)
         values (?1, ?2, 'agent', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'queued', ?16, ?16, ?17, ?18,
             ?19, ?20, ?21, ?22, ?23, ?24, ?25)",
        run.id,
        run.experiment,
        run.target,
        size_name,
        vcpus,
        memory,
        run.scenario,
        run.scenario_sha256,
        run.parameters,
        vus,
        duration_ms,
        run.warm_up_ms,
        run.repetition,
        run.required_agent,
        run.created_by,
        run.now,
        load,
        run.retries,
        generators,
        run.agent_label,
        run.block,
        run.warm_up_auto,
        run.profiled,
        run.cluster_generators,
        replicas
    )
    .execute(&mut *connection)
    .await?;
    enter(connection, &run.id, "queued", run.now).await
}

/// Records when a run entered a phase.
pub async fn enter(connection: &mut SqliteConnection, id: &RunId, phase: &str, at: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into run_phase (run_id, phase, at) values (?, ?, ?) on conflict do nothing", id, phase, at)
        .execute(connection)
        .await?;
    Ok(())
}
