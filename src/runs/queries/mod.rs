//! SQL of runs. A change of phase is guarded by the phase that it starts from, so that of two that race only one counts.

pub mod cells;
pub mod costs;
pub mod crew;
pub mod endings;
mod figures;
mod history;
pub mod imports;
pub mod judgements;
pub mod leases;
pub mod parts;
pub mod reductions;
pub mod remarks;
pub mod trash;
pub mod views;
pub mod work;

use std::collections::HashMap;

use brewbench_agent::wire::load::Load;
use sqlx::{SqliteConnection, SqlitePool};

pub use history::{Values, list, plan, values};

use super::{Origin, Run, RunEnforced, RunSize, load, work::RunWork};
use crate::metrics::Figures;

/// A row of `run`, column by column.
#[derive(Clone, Debug, sqlx::FromRow)]
pub struct RunRow {
    /// Order of submission.
    pub seq: i64,
    /// The run's id.
    pub id: String,
    experiment_id: Option<String>,
    retry_of: Option<String>,
    origin: String,
    target: String,
    version: Option<String>,
    target_sha256: Option<String>,
    size_name: Option<String>,
    vcpus: Option<f64>,
    memory_bytes: Option<i64>,
    scenario: Option<String>,
    scenario_sha256: Option<String>,
    parameters: String,
    vus: Option<i64>,
    duration_ms: Option<i64>,
    warm_up_ms: Option<i64>,
    repetition: i64,
    created_by: String,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    wanted_agent: Option<String>,
    agent: Option<String>,
    phase: String,
    #[expect(dead_code, reason = "only the dispatch asks for it; here all columns come along")]
    lease_expires_at: Option<i64>,
    queued_at: i64,
    phase_at: i64,
    started_at: Option<i64>,
    finished_at: Option<i64>,
    error: Option<String>,
    verdict: Option<String>,
    reasons: String,
    requests: Option<i64>,
    failed: Option<i64>,
    rps: Option<f64>,
    measured_ms: Option<f64>,
    avg_ms: Option<f64>,
    min_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
    max_ms: Option<f64>,
    data_received_bytes: Option<f64>,
    data_sent_bytes: Option<f64>,
    iterations: Option<i64>,
    dropped_iterations: Option<i64>,
    checks_passed: Option<i64>,
    checks_failed: Option<i64>,
    thresholds: Option<i64>,
    thresholds_failed: Option<i64>,
    enforced_cpu: Option<String>,
    enforced_memory: Option<String>,
    k6_version: Option<String>,
    labels: String,
    note: Option<String>,
    #[expect(dead_code, reason = "who asks leaves deleted runs out; here all columns come along")]
    deleted_at: Option<i64>,
    #[expect(dead_code, reason = "only the way back asks for it; here all columns come along")]
    deleted_by: Option<String>,
    load: Option<String>,
    #[expect(dead_code, reason = "only what repeats a run asks for it; here all columns come along")]
    retries: i64,
    target_cpu_us: Option<i64>,
    target_memory_bytes: Option<i64>,
    received_per_s: Option<f64>,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    priority: i64,
    generators: String,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    agent_label: Option<String>,
    #[expect(dead_code, reason = "only the queue asks for it; here all columns come along")]
    block: i64,
    in_turn: Option<i64>,
    #[expect(dead_code, reason = "queries compare it; here all columns come along")]
    cell_key: Option<String>,
    least_new_connections: Option<i64>,
    most_new_connections: Option<i64>,
    statuses: Option<String>,
    protocols: Option<String>,
    warm_up_auto: i64,
    warmed_up_ms: Option<i64>,
    warm_up_steady: Option<i64>,
    throttled_share: Option<f64>,
}

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

fn whole<T: TryFrom<i64, Error: Into<Box<dyn std::error::Error + Send + Sync>>>>(
    value: Option<i64>,
) -> sqlx::Result<Option<T>> {
    value.map(T::try_from).transpose().map_err(decode)
}

#[expect(clippy::too_many_lines, reason = "one line a column: the list is the point")]
impl TryFrom<RunRow> for Run {
    type Error = sqlx::Error;

    fn try_from(row: RunRow) -> sqlx::Result<Self> {
        let RunRow {
            seq: _,
            id,
            experiment_id,
            retry_of,
            origin,
            target,
            version,
            target_sha256,
            size_name,
            vcpus,
            memory_bytes,
            scenario,
            scenario_sha256,
            parameters,
            vus,
            duration_ms,
            warm_up_ms,
            repetition,
            created_by,
            wanted_agent: _,
            agent,
            phase,
            lease_expires_at: _,
            queued_at,
            phase_at,
            started_at,
            finished_at,
            error,
            verdict,
            reasons,
            requests,
            failed,
            rps,
            measured_ms,
            avg_ms,
            min_ms,
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p999_ms,
            max_ms,
            data_received_bytes,
            data_sent_bytes,
            iterations,
            dropped_iterations,
            checks_passed,
            checks_failed,
            thresholds,
            thresholds_failed,
            enforced_cpu,
            enforced_memory,
            k6_version,
            labels,
            note,
            deleted_at: _,
            deleted_by: _,
            load,
            retries: _,
            target_cpu_us,
            target_memory_bytes,
            received_per_s,
            priority: _,
            generators,
            agent_label: _,
            block: _,
            in_turn,
            cell_key: _,
            least_new_connections,
            most_new_connections,
            statuses,
            protocols,
            warm_up_auto,
            warmed_up_ms,
            warm_up_steady,
            throttled_share,
        } = row;
        let origin = if origin == "import" { Origin::Import } else { Origin::Agent };
        let size = match (size_name, vcpus, memory_bytes) {
            (Some(name), Some(vcpus), Some(memory)) => {
                Some(RunSize { name, vcpus, memory_bytes: u64::try_from(memory).map_err(decode)? })
            }
            _ => None,
        };
        let (requests, failed) = (whole::<u64>(requests)?, whole::<u64>(failed)?);
        let counts = |text: Option<String>| text.as_deref().map(serde_json::from_str).transpose().map_err(decode);
        Ok(Self {
            id,
            experiment: experiment_id,
            retry_of,
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
            origin,
            in_turn: in_turn.map_or(origin == Origin::Agent, |is| is == 1),
            target,
            version,
            size,
            scenario,
            scenario_sha256,
            parameters: serde_json::from_str(&parameters).map_err(decode)?,
            load: load.as_deref().map(load::read).transpose().map_err(decode)?,
            vus: whole(vus)?,
            repetition: u32::try_from(repetition).map_err(decode)?,
            phase,
            verdict: verdict.map(|text| text.parse()).transpose().map_err(|fault: String| decode(fault))?,
            reasons: serde_json::from_str(&reasons).map_err(decode)?,
            error,
            figures: Figures {
                error_rate: requests
                    .zip(failed)
                    .filter(|(of, _)| *of > 0)
                    .map(|(of, failed)| failed as f64 / of as f64),
                cpu_ms_per_request: requests
                    .zip(target_cpu_us)
                    .filter(|(of, _)| *of > 0)
                    .map(|(of, us)| us as f64 / 1_000.0 / of as f64),
                target_memory_bytes: whole(target_memory_bytes)?,
                requests,
                failed,
                rps,
                avg_ms,
                min_ms,
                p50_ms,
                p90_ms,
                p95_ms,
                p99_ms,
                p999_ms,
                max_ms,
                measured_s: measured_ms.map(|ms| ms / 1_000.0),
                throttled_share,
                data_received_bytes,
                data_sent_bytes,
                received_per_s: received_per_s.or_else(|| {
                    let seconds = measured_ms.filter(|ms| *ms > 0.0).map(|ms| ms / 1_000.0);
                    data_received_bytes.zip(seconds).map(|(bytes, seconds)| bytes / seconds)
                }),
            },
            iterations: whole(iterations)?,
            dropped_iterations: whole(dropped_iterations)?,
            work: RunWork::new(requests, whole(iterations)?, data_received_bytes)
                .with_connections(whole(least_new_connections)?, whole(most_new_connections)?, requests)
                .with_counts(counts(statuses)?, counts(protocols)?),
            checks_passed: whole(checks_passed)?,
            checks_failed: whole(checks_failed)?,
            thresholds: whole(thresholds)?,
            thresholds_failed: whole(thresholds_failed)?,
            warm_up_s: warm_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_auto: warm_up_auto != 0,
            warmed_up_s: warmed_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_steady: warm_up_steady.map(|steady| steady != 0),
            duration_s: duration_ms.map(|ms| ms as f64 / 1_000.0),
            enforced: enforced_cpu.zip(enforced_memory).map(|(cpu, memory)| RunEnforced { cpu, memory }),
            agent,
            generators: serde_json::from_str(&generators).map_err(decode)?,
            k6_version,
            target_sha256,
            created_by,
            queued_at_ms: queued_at,
            phase_at_ms: phase_at,
            started_at_ms: started_at,
            finished_at_ms: finished_at,
        })
    }
}

fn runs(rows: Vec<RunRow>) -> sqlx::Result<Vec<Run>> {
    rows.into_iter().map(Run::try_from).collect()
}

/// What waits or runs, in the order in which it will be done, at most `limit`.
pub async fn unfinished(pool: &SqlitePool, limit: i64) -> sqlx::Result<Vec<Run>> {
    let rows = sqlx::query_as!(
        RunRow,
        "select * from run where phase not in ('finished', 'failed', 'cancelled', 'lost')
         order by phase = 'queued', priority desc, seq limit ?",
        limit
    )
    .fetch_all(pool)
    .await?;
    runs(rows)
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
pub async fn of_experiment(pool: &SqlitePool, experiment: &str) -> sqlx::Result<Vec<Run>> {
    let rows = sqlx::query_as!(
        RunRow,
        "select * from run where experiment_id = ? and deleted_at is null order by seq",
        experiment
    )
    .fetch_all(pool)
    .await?;
    runs(rows)
}

/// All repetitions of a run's cell in its experiment, itself among them, in the order of submission; none of a run without
/// an experiment. Another version is another program; a run that has not got as far may be of any.
pub async fn repetitions(pool: &SqlitePool, run: &Run) -> sqlx::Result<Vec<Run>> {
    let Some(experiment) = &run.experiment else { return Ok(Vec::new()) };
    let rows = sqlx::query_as!(
        RunRow,
        "select * from run indexed by run_experiment
         where experiment_id = ?1 and cell_key is (select cell_key from run where id = ?2) and deleted_at is null
         order by seq",
        experiment,
        run.id
    )
    .fetch_all(pool)
    .await?;
    let is_same = |other: &Run| other.version == run.version || other.version.is_none() || run.version.is_none();
    Ok(runs(rows)?.into_iter().filter(is_same).collect())
}

/// The runs with these ids, in the order of submission; unknown ids are left out.
pub async fn by_ids(pool: &SqlitePool, ids: &[String]) -> sqlx::Result<Vec<Run>> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let rows = sqlx::query_as!(
        RunRow,
        "select * from run where id in (select value from json_each(?)) and deleted_at is null order by seq",
        ids
    )
    .fetch_all(pool)
    .await?;
    runs(rows)
}

/// One run.
pub async fn one(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Run>> {
    let row = sqlx::query_as!(RunRow, "select * from run where id = ? and deleted_at is null", id)
        .fetch_optional(pool)
        .await?;
    row.map(Run::try_from).transpose()
}

/// When each phase of a run began, in order.
pub async fn phases(pool: &SqlitePool, id: &str) -> sqlx::Result<Vec<(String, i64)>> {
    let rows =
        sqlx::query!("select phase, at from run_phase where run_id = ? order by at, phase", id).fetch_all(pool).await?;
    Ok(rows.into_iter().map(|row| (row.phase, row.at)).collect())
}

/// The compressed summary of a run.
pub async fn summary(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_summary where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// The packed series of a run.
pub async fn series(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Vec<u8>>> {
    let row = sqlx::query!("select body from run_series where run_id = ?", id).fetch_optional(pool).await?;
    Ok(row.map(|row| row.body))
}

/// The compressed evidence of a run.
pub async fn evidence(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Vec<u8>>> {
    Ok(sqlx::query!("select body from run_evidence where run_id = ?", id)
        .fetch_optional(pool)
        .await?
        .map(|row| row.body))
}

/// The compressed evidence of those of these runs that have one, by their ids.
pub async fn evidence_of(pool: &SqlitePool, ids: &[String]) -> sqlx::Result<HashMap<String, Vec<u8>>> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let rows =
        sqlx::query!("select run_id, body from run_evidence where run_id in (select value from json_each(?))", ids)
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().map(|row| (row.run_id, row.body)).collect())
}

/// The packed series of those of these runs that have one, by their ids.
pub async fn series_of(pool: &SqlitePool, ids: &[String]) -> sqlx::Result<HashMap<String, Vec<u8>>> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let rows =
        sqlx::query!("select run_id, body from run_series where run_id in (select value from json_each(?))", ids)
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().map(|row| (row.run_id, row.body)).collect())
}

/// A run to be queued.
#[derive(Clone, Debug)]
pub struct NewRun<'a> {
    /// Its id.
    pub id: String,
    /// Its experiment.
    pub experiment: Option<&'a str>,
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
pub async fn enter(connection: &mut SqliteConnection, id: &str, phase: &str, at: i64) -> sqlx::Result<()> {
    sqlx::query!("insert into run_phase (run_id, phase, at) values (?, ?, ?) on conflict do nothing", id, phase, at)
        .execute(connection)
        .await?;
    Ok(())
}
