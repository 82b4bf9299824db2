//! SQL of cells over time: lists cells and their runs. Only runs that count are included.
//!
//! A cell is identified by the column `cell_key`, and over time also by the agent.

use std::collections::BTreeMap;

use brewbench_agent::wire::{load::Load, target::TargetKind};
use sqlx::SqlitePool;

use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    metrics::{self, Figures},
    runs::{
        load,
        model::Run,
        store::row::{decode, select},
    },
};

/// The columns shared by the runs of a cell, as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CellColumns {
    /// Name of the target.
    pub target: String,
    /// Name of the machine size.
    pub size_name: Option<String>,
    /// Cores.
    pub vcpus: Option<f64>,
    /// Memory.
    pub memory_bytes: Option<i64>,
    /// Instances of the target.
    pub replicas: u32,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Revision of the scenario.
    pub scenario_sha256: Option<String>,
    /// Parameters as JSON.
    pub parameters: String,
    /// The load as JSON; none for imports.
    pub load: Option<String>,
    /// Number of virtual users, if constant.
    pub vus: Option<i64>,
    /// The load generator and its version.
    pub engine: Option<String>,
    /// Kind of the target.
    pub kind: Option<TargetKind>,
    /// The agent.
    pub agent: Option<String>,
    /// The cell key: all of the above except the agent and the duration of a constant load.
    pub key: String,
}

/// A cell and the number of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRow {
    /// The columns shared by its runs.
    pub columns: CellColumns,
    /// Number of runs.
    pub runs: usize,
    /// When the newest run was submitted, unix ms.
    pub newest_at_ms: i64,
}

/// Returns the cells of a target, or of the last `recent` runs; the cell with the newest run first.
pub async fn cells(pool: &SqlitePool, target: Option<&str>, recent: i64) -> sqlx::Result<Vec<CellRow>> {
    let rows = sqlx::query!(
        r#"select target as "target!", max(size_name) as "size_name?: String", vcpus as "vcpus?", memory_bytes as "memory_bytes?", replicas as "replicas!: u32",
                  scenario as "scenario?", scenario_sha256 as "scenario_sha256?", parameters as "parameters!", load as "load?",
                  vus as "vus?", engine as "engine?: String", max(target_kind) as "kind?: String", agent as "agent?", cell_key as "cell_key!: String", count(*) as "runs!: i64",
                  max(queued_at) as "newest_at!: i64"
           from run
           where counts and (?1 is not null and target = ?1 or ?1 is null and seq > (select max(seq) from run) - ?2)
           group by cell_key, agent
           order by max(seq) desc"#,
        target,
        recent
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let columns = CellColumns {
                target: row.target,
                size_name: row.size_name,
                vcpus: row.vcpus,
                memory_bytes: row.memory_bytes,
                replicas: row.replicas,
                scenario: row.scenario,
                scenario_sha256: row.scenario_sha256,
                parameters: row.parameters,
                load: row.load,
                vus: row.vus,
                engine: row.engine,
                kind: row.kind.map(|kind| kind.parse().map_err(|fault: String| decode(fault))).transpose()?,
                agent: row.agent,
                key: row.cell_key,
            };
            Ok(CellRow { columns, runs: usize::try_from(row.runs).map_err(decode)?, newest_at_ms: row.newest_at })
        })
        .collect()
}

/// Returns the newest runs of cells on one agent that count, at most `limit`, in order of submission.
pub async fn in_cells(rows: &Rows, keys: &[String], agent: Option<&str>, limit: i64) -> sqlx::Result<Vec<Run>> {
    let (keys, agent) = (serde_json::to_string(keys).map_err(decode)?, agent.map(str::to_owned));
    let rest = "indexed by run_cell
         where cell_key in (select value from json_each(?1)) and agent is ?2 and counts
         order by seq desc limit ?3";
    let mut runs = rows.read(move |connection| select(connection, rest, (keys, agent, limit))).await?;
    runs.reverse();
    Ok(runs)
}

/// Metrics of an earlier run that counts.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// Experiment.
    pub experiment: ExperimentId,
    /// When an agent leased the run, unix ms; none for an import.
    pub at_ms: Option<i64>,
    /// The compared metrics, in their order; none if unknown.
    pub figures: Vec<Option<f64>>,
}

/// Returns the history of the cell of each of these runs, for all versions and exactly the same load.
///
/// Includes the newest runs of experiments that count, at most `limit`, in order of submission. Excludes the runs in
/// `except` and those more than `RECENT` runs back.
pub async fn past(rows: &Rows, runs: Vec<RunId>, except: &[RunId], limit: i64) -> sqlx::Result<Vec<Vec<PastRun>>> {
    let except = serde_json::to_string(except).map_err(decode)?;
    let select = "
        select past.experiment_id, case past.origin when 'agent' then past.started_at end, past.figures
        from run as asked
        join run as past indexed by run_cell
            on past.cell_key = asked.cell_key and past.seq > (select max(seq) from run) - ?4
        where asked.id = ?1 and past.experiment_id is not null
            and past.load is asked.load and past.agent is asked.agent
            and past.counts and past.id not in (select value from json_each(?2))
        order by past.seq desc limit ?3";
    rows.read(move |connection| {
        let mut statement = connection.prepare_cached(select)?;
        let mut cells = Vec::with_capacity(runs.len());
        for run in runs {
            let mut found = statement.query((run.as_str(), &except, limit, RECENT))?;
            let mut past = Vec::new();
            while let Some(row) = found.next()? {
                let figures = Figures::from_stored(row.get_ref(2)?.as_str_or_null()?)?;
                let figures = metrics::compared().map(|metric| (metric.def().get)(&figures)).collect();
                past.push(PastRun { experiment: row.get(0)?, at_ms: row.get(1)?, figures });
            }
            past.reverse();
            cells.push(past);
        }
        Ok(cells)
    })
    .await
}

/// How many runs back the history of a cell reaches; before that, the machine has probably changed.
const RECENT: i64 = 20_000;

/// Returns how often repetitions were added to the experiment where that was done most often, and the repetitions before
/// each addition, where known.
pub async fn looks(pool: &SqlitePool, experiments: &[ExperimentId]) -> sqlx::Result<(usize, Vec<usize>)> {
    let ids = serde_json::to_string(experiments).map_err(decode)?;
    let most = sqlx::query!(
        "select looks - 1 as additions, looks_at from experiment where id in (select value from json_each(?)) \
         order by looks desc, id limit 1",
        ids
    )
    .fetch_optional(pool)
    .await?;
    let Some(most) = most else { return Ok((0, Vec::new())) };
    Ok((usize::try_from(most.additions).map_err(decode)?, serde_json::from_str(&most.looks_at).map_err(decode)?))
}

/// A planned cell, identified by everything except the agent.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// Name of the target.
    pub target: &'a str,
    /// Cores.
    pub vcpus: f64,
    /// Memory.
    pub memory_bytes: u64,
    /// Instances of the target.
    pub replicas: u32,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Revision of the scenario.
    pub scenario_sha256: &'a str,
    /// Parameters.
    pub parameters: &'a BTreeMap<String, String>,
    /// Load.
    pub load: &'a Load,
}

/// Returns the newest run of a cell that counts, on any agent and with any load generator.
/// A cell key starts with the plan key and a space.
pub async fn newest(pool: &SqlitePool, cell: &Planned<'_>) -> sqlx::Result<Option<RunId>> {
    let parameters = serde_json::to_string(cell.parameters).map_err(decode)?;
    let (memory, load) = (cell.memory_bytes.cast_signed(), load::to_json(cell.load));
    let vus = load::constant_vus(cell.load);
    sqlx::query_scalar!(
        r#"with planned (plan_key) as (
             values (iif(?9 = 1, json_array(?1, ?2, ?3, ?4, ?5, json(?6), json_remove(?7, '$.duration_s'), ?8),
                 json_array(?1, ?2, ?3, ?4, ?5, json(?6), json_remove(?7, '$.duration_s'), ?8, ?9)))
         )
         select id as "id: RunId" from run
         where cell_key >= (select plan_key || ' ' from planned) and cell_key < (select plan_key || '!' from planned)
             and counts
         order by seq desc limit 1"#,
        cell.target,
        cell.vcpus,
        memory,
        cell.scenario,
        cell.scenario_sha256,
        parameters,
        load,
        vus,
        cell.replicas
    )
    .fetch_optional(pool)
    .await
}
