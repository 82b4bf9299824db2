//! SQL of cells over time: which there are, and the runs of one. Only runs whose figures count are asked for. What makes a
//! cell is the column `cell_key`, and over time the agent.

use std::collections::BTreeMap;

use brewbench_agent::wire::load::Load;
use sqlx::SqlitePool;

use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    metrics,
    runs::{
        load,
        model::Run,
        store::row::{decode, select},
    },
};

/// The columns that runs of one cell have in common, as they are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct CellColumns {
    /// Name of the target.
    pub target: String,
    /// What the machine size is called.
    pub size_name: Option<String>,
    /// Its cores.
    pub vcpus: Option<f64>,
    /// Its memory.
    pub memory_bytes: Option<i64>,
    /// Name of the scenario.
    pub scenario: Option<String>,
    /// Its revision.
    pub scenario_sha256: Option<String>,
    /// Its parameters as JSON.
    pub parameters: String,
    /// The load as JSON; none for imports.
    pub load: Option<String>,
    /// Virtual users, where they are constant.
    pub vus: Option<i64>,
    /// The load generator and its version.
    pub engine: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// All of that but the agent and how long a constant load lasts, as one text.
    pub key: String,
}

/// A cell and what there is of it.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRow {
    /// What its runs have in common.
    pub columns: CellColumns,
    /// How many there are.
    pub runs: usize,
    /// When the newest was submitted, unix ms.
    pub newest_at_ms: i64,
}

/// The cells of a target, or of the last `recent` runs of all; the one with the newest run first.
pub async fn cells(pool: &SqlitePool, target: Option<&str>, recent: i64) -> sqlx::Result<Vec<CellRow>> {
    let rows = sqlx::query!(
        r#"select target as "target!", max(size_name) as "size_name?: String", vcpus as "vcpus?", memory_bytes as "memory_bytes?",
                  scenario as "scenario?", scenario_sha256 as "scenario_sha256?", parameters as "parameters!", load as "load?",
                  vus as "vus?", engine as "engine?: String", agent as "agent?", cell_key as "cell_key!: String", count(*) as "runs!: i64",
                  max(queued_at) as "newest_at!: i64"
           from run
           where phase = 'finished' and verdict in ('valid', 'suspect') and deleted_at is null
               and (?1 is not null and target = ?1 or ?1 is null and seq > (select max(seq) from run) - ?2)
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
                scenario: row.scenario,
                scenario_sha256: row.scenario_sha256,
                parameters: row.parameters,
                load: row.load,
                vus: row.vus,
                engine: row.engine,
                agent: row.agent,
                key: row.cell_key,
            };
            Ok(CellRow { columns, runs: usize::try_from(row.runs).map_err(decode)?, newest_at_ms: row.newest_at })
        })
        .collect()
}

/// The newest runs that count of cells on one agent, at most `limit`, in the order of submission.
pub async fn in_cells(rows: &Rows, keys: &[String], agent: Option<&str>, limit: i64) -> sqlx::Result<Vec<Run>> {
    let (keys, agent) = (serde_json::to_string(keys).map_err(decode)?, agent.map(str::to_owned));
    let rest = "indexed by run_cell
         where cell_key in (select value from json_each(?1)) and agent is ?2
             and phase = 'finished' and verdict in ('valid', 'suspect') and deleted_at is null
         order by seq desc limit ?3";
    let mut runs = rows.read(move |connection| select(connection, rest, (keys, agent, limit))).await?;
    runs.reverse();
    Ok(runs)
}

/// The figures of a run of the past that counts. Null where a summary does not have one.
#[derive(Clone, Debug, PartialEq)]
pub struct PastRun {
    /// Its experiment.
    pub experiment: ExperimentId,
    /// When an agent took it, unix ms; null for an import.
    pub at_ms: Option<i64>,
    /// The metrics that comparisons show, in their order.
    pub figures: Vec<Option<f64>>,
}

/// The past of the cell of each of these runs, in whatever version and under the very same load: the newest runs of
/// experiments that count, at most `limit`, in the order of submission. Leaves out the runs in `but` and what lies more than
/// 20,000 runs back.
pub async fn past(rows: &Rows, of: Vec<RunId>, but: &[RunId], limit: i64) -> sqlx::Result<Vec<Vec<PastRun>>> {
    let but = serde_json::to_string(but).map_err(decode)?;
    let figures: Vec<_> = metrics::compared().map(|metric| metric.def().sql).collect();
    let count = figures.len();
    let select = format!(
        "select experiment_id, case origin when 'agent' then started_at end, {}
         from (select past.*
             from run as asked
             join run as past indexed by run_cell
                 on past.cell_key = asked.cell_key and past.seq > (select max(seq) from run) - ?4
             where asked.id = ?1 and past.experiment_id is not null
                 and past.load is asked.load and past.agent is asked.agent
                 and past.phase = 'finished' and past.verdict in ('valid', 'suspect') and past.deleted_at is null
                 and past.id not in (select value from json_each(?2))
             order by past.seq desc limit ?3)",
        figures.join(", ")
    );
    rows.read(move |connection| {
        let mut statement = connection.prepare_cached(&select)?;
        let mut cells = Vec::with_capacity(of.len());
        for run in of {
            let found = statement.query_map((run.as_str(), &but, limit, RECENT), |row| {
                let figures = (2..2 + count).map(|column| row.get(column)).collect::<rusqlite::Result<_>>()?;
                Ok(PastRun { experiment: row.get(0)?, at_ms: row.get(1)?, figures })
            })?;
            let mut past = found.collect::<rusqlite::Result<Vec<_>>>()?;
            past.reverse();
            cells.push(past);
        }
        Ok(cells)
    })
    .await
}

/// So many runs back the past of a cell is looked for: a machine of longer ago is another one.
const RECENT: i64 = 20_000;

/// The most looks at any of these experiments: 1, and 1 more each time somebody added repetitions.
pub async fn looks(pool: &SqlitePool, experiments: &[ExperimentId]) -> sqlx::Result<usize> {
    let ids = serde_json::to_string(experiments).map_err(decode)?;
    let most = sqlx::query_scalar!(
        r#"select coalesce(max(looks), 1) as "most!: i64" from experiment where id in (select value from json_each(?))"#,
        ids
    )
    .fetch_one(pool)
    .await?;
    usize::try_from(most).map_err(decode)
}

/// A cell that is to be measured, by what identifies it apart from the agent.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// Name of the target.
    pub target: &'a str,
    /// Cores.
    pub vcpus: f64,
    /// Memory.
    pub memory_bytes: u64,
    /// Name of the scenario.
    pub scenario: &'a str,
    /// Its revision.
    pub scenario_sha256: &'a str,
    /// Its parameters.
    pub parameters: &'a BTreeMap<String, String>,
    /// How hard.
    pub load: &'a Load,
}

/// The newest run that counts of a cell, by whatever agent and with whatever load generator: a cell key begins with the plan
/// key and a space.
pub async fn newest(pool: &SqlitePool, cell: &Planned<'_>) -> sqlx::Result<Option<RunId>> {
    let parameters = serde_json::to_string(cell.parameters).map_err(decode)?;
    let (memory, load) = (cell.memory_bytes.cast_signed(), load::written(cell.load));
    let vus = load::constant_vus(cell.load);
    sqlx::query_scalar!(
        r#"with planned (plan_key) as (
             values (json_array(?1, ?2, ?3, ?4, ?5, json(?6), json_remove(?7, '$.duration_s'), ?8))
         )
         select id as "id: RunId" from run
         where cell_key >= (select plan_key || ' ' from planned) and cell_key < (select plan_key || '!' from planned)
             and phase = 'finished' and verdict in ('valid', 'suspect') and deleted_at is null
         order by seq desc limit 1"#,
        cell.target,
        cell.vcpus,
        memory,
        cell.scenario,
        cell.scenario_sha256,
        parameters,
        load,
        vus
    )
    .fetch_optional(pool)
    .await
}
