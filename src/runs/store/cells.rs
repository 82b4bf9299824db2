//! SQL of cells over time: lists cells and their runs. Only runs that count are included.
//!
//! A cell is identified by the column `cell_key`, and over time also by the agent.

use brewbench_wire::target::TargetKind;
use sqlx::{AssertSqlSafe, SqlitePool};

use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
        rows::Rows,
    },
    metrics::{self, Figures},
    runs::{
        model::{Run, RunSpec},
        store::{
            row::select,
            spec::{COLUMNS, SpecColumns},
        },
    },
};

/// A cell and the number of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CellRow {
    /// What its newest run measured. Its other runs differ in the duration of a constant load at most.
    pub spec: RunSpec,
    /// The load generator and its version.
    pub engine: Option<String>,
    /// Kind of the target.
    pub kind: Option<TargetKind>,
    /// The agent.
    pub agent: Option<String>,
    /// The cell key.
    pub key: String,
    /// Number of runs.
    pub runs: usize,
    /// When the newest run was submitted, unix ms.
    pub newest_at_ms: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    spec: SpecColumns,
    engine: Option<String>,
    target_kind: Option<String>,
    agent: Option<String>,
    cell_key: String,
    runs: u32,
    newest_at: i64,
}

/// Returns the cells of a target, or of the last `recent` runs; the cell with the newest run first.
pub async fn cells(pool: &SqlitePool, target: Option<&str>, recent: i64) -> sqlx::Result<Vec<CellRow>> {
    let rows = sqlx::query_as::<_, Row>(AssertSqlSafe(format!(
        "select {COLUMNS}, engine, target_kind, agent, cell_key, cell.runs, cell.newest_at
         from (select max(seq) as newest, count(*) as runs, max(queued_at) as newest_at
             from run
             where counts and (?1 is not null and target = ?1 or ?1 is null and seq > (select max(seq) from run) - ?2)
             group by cell_key, agent) as cell
         join run on run.seq = cell.newest
         order by cell.newest desc"
    )))
    .bind(target)
    .bind(recent)
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(CellRow {
                spec: row.spec.try_into()?,
                engine: row.engine,
                kind: row.target_kind.map(|kind| kind.parse().map_err(|fault: String| decode(fault))).transpose()?,
                agent: row.agent,
                key: row.cell_key,
                runs: row.runs as usize,
                newest_at_ms: row.newest_at,
            })
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

/// Returns how often repetitions were added to the experiment where that was done most often, and the repetitions
/// before each addition, where known.
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

/// Returns the newest run of a planned cell that counts, on any agent and with any load generator.
/// A cell key starts with the plan key and a space.
pub async fn newest(pool: &SqlitePool, cell: &RunSpec) -> sqlx::Result<Option<RunId>> {
    let plan_key = cell.plan_key();
    sqlx::query_scalar!(
        r#"select id as "id: RunId" from run
           where cell_key >= ?1 || ' ' and cell_key < ?1 || '!' and counts
           order by seq desc limit 1"#,
        plan_key
    )
    .fetch_optional(pool)
    .await
}
