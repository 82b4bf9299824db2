//! SQL of runs. A change of phase is guarded by the phase that it starts from, so that of two that race only one counts.

pub mod cells;
mod history;
pub mod remarks;
pub mod retries;
pub mod row;
pub mod trash;
pub mod values;
pub mod views;

use std::collections::HashMap;

use brewbench_agent::wire::load::Load;
pub use history::{list, plan};
use sqlx::{SqliteConnection, SqlitePool};

use super::load;
use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    runs::{
        model::{Run, RunSize},
        store::row::{decode, select},
    },
};

/// What waits or runs, in the order in which it will be done, at most `limit`.
pub async fn unfinished(rows: &Rows, limit: i64) -> sqlx::Result<Vec<Run>> {
    let rest = "where phase not in ('finished', 'failed', 'cancelled', 'lost')
         order by phase = 'queued', priority desc, seq limit ?";
    rows.read(move |connection| select(connection, rest, [limit])).await
}

/// How many runs are being done, and how many wait.
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

/// All runs of an experiment in the order of submission.
pub async fn of_experiment(rows: &Rows, experiment: &ExperimentId) -> sqlx::Result<Vec<Run>> {
    let experiment = experiment.to_string();
    let rest = "where experiment_id = ? and deleted_at is null order by seq";
    rows.read(move |connection| select(connection, rest, [experiment])).await
}

/// All repetitions of a run's cell in its experiment, itself among them, in the order of submission; none of a run without
/// an experiment. Another version is another program, and another load generator another measurement; a run that has not
/// got as far may have any.
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

/// Whether two values are equal, as far as they are known.
fn may_be_same<T: PartialEq>(one: Option<&T>, other: Option<&T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

/// The runs with these ids, in the order of submission; unknown ids are left out.
pub async fn by_ids(rows: &Rows, ids: &[RunId]) -> sqlx::Result<Vec<Run>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let rest = "where id in (select value from json_each(?)) and deleted_at is null order by seq";
    rows.read(move |connection| select(connection, rest, [ids])).await
}

/// One run.
pub async fn one(rows: &Rows, id: &RunId) -> sqlx::Result<Option<Run>> {
    let id = id.to_string();
    let found = rows.read(move |connection| select(connection, "where id = ? and deleted_at is null", [id])).await?;
    Ok(found.into_iter().next())
}

/// When each phase of a run began, in order.
pub async fn phases(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Vec<(String, i64)>> {
    let rows =
        sqlx::query!("select phase, at from run_phase where run_id = ? order by at, phase", id).fetch_all(pool).await?;
    Ok(rows.into_iter().map(|row| (row.phase, row.at)).collect())
}

/// The compressed summary of a run.
pub async fn summary(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_summary where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// The packed series of a run.
pub async fn series(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    let row = sqlx::query!("select body from run_series where run_id = ?", id).fetch_optional(pool).await?;
    Ok(row.map(|row| row.body))
}

/// The compressed evidence of a run.
pub async fn evidence(pool: &SqlitePool, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_evidence where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// The compressed evidence of those of these runs that have one, by their ids.
pub async fn evidence_of(rows: &Rows, ids: &[RunId]) -> sqlx::Result<HashMap<RunId, Vec<u8>>> {
    bodies("select run_id, body from run_evidence where run_id in (select value from json_each(?))", rows, ids).await
}

/// The packed series of those of these runs that have one, by their ids.
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

/// A run to be queued.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// Its id.
    pub id: RunId,
    /// Its experiment.
    pub experiment: Option<&'a ExperimentId>,
    /// The target.
    pub target: &'a str,
    /// The machine size.
    pub size: Option<&'a RunSize>,
    /// The scenario's name.
    pub scenario: Option<&'a str>,
    /// The scenario's revision.
    pub scenario_sha256: Option<&'a str>,
    /// The scenario's parameters as JSON.
    pub parameters: &'a str,
    /// How hard and how long.
    pub load: &'a Load,
    /// Warm-up asked for.
    pub warm_up_ms: Option<i64>,
    /// Whether it goes on until the target is steady.
    pub warm_up_auto: bool,
    /// From 1.
    pub repetition: u32,
    /// How many more times that repetition is done, should this run fail, be lost or be invalid.
    pub retries: u32,
    /// Only this agent may do it.
    pub wanted_agent: Option<&'a str>,
    /// Only agents with this label may do it.
    pub agent_label: Option<&'a str>,
    /// Runs of one experiment with the same number stay on one machine.
    pub block: u32,
    /// Who makes the load, if others do.
    pub generators: &'a [String],
    /// Who submitted it.
    pub created_by: &'a str,
    /// When, unix ms.
    pub now: i64,
}

/// Stores a run as queued.
pub async fn queue(connection: &mut SqliteConnection, run: &NewRun<'_>) -> sqlx::Result<()> {
    let size = run.size.map(|size| (&size.name, size.vcpus, size.memory_bytes.cast_signed()));
    let (size_name, vcpus, memory) =
        size.map_or((None, None, None), |(name, vcpus, memory)| (Some(name), Some(vcpus), Some(memory)));
    let (vus, duration_ms) = (load::constant_vus(run.load), load::duration_ms(run.load));
    let load = load::written(run.load);
    let generators = serde_json::to_string(run.generators).map_err(decode)?;
    sqlx::query!(
        "insert into run (id, experiment_id, origin, target, size_name, vcpus, memory_bytes, scenario, scenario_sha256,
             parameters, vus, duration_ms, warm_up_ms, repetition, wanted_agent, created_by, phase, queued_at, phase_at,
             load, retries, generators, agent_label, block, warm_up_auto)
         values (?1, ?2, 'agent', ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 'queued', ?16, ?16, ?17, ?18,
             ?19, ?20, ?21, ?22)",
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
        run.wanted_agent,
        run.created_by,
        run.now,
        load,
        run.retries,
        generators,
        run.agent_label,
        run.block,
        run.warm_up_auto
    )
    .execute(&mut *connection)
    .await?;
    enter(connection, &run.id, "queued", run.now).await
}

/// Notes when a run entered a phase.
pub async fn enter(connection: &mut SqliteConnection, id: &RunId, phase: &str, at: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into run_phase (run_id, phase, at) values (?, ?, ?) on conflict do nothing", id, phase, at)
        .execute(connection)
        .await?;
    Ok(())
}
