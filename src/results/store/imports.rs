//! SQL of imports.

use std::{
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_agent::reports::summary::Figures;
use sqlx::{
    AssertSqlSafe, Sqlite, SqliteConnection, SqlitePool, pool::PoolConnection, query::QueryAs, sqlite::SqliteArguments,
};
use tokio::sync::oneshot;

use super::figures::FigureColumns;
use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::Engine,
    results::{
        import::about::About,
        verdict::{limits::Limits, model::RULES},
    },
    runs::{
        model::Run,
        store::row::{RunRow, decode},
        verdict::{Reason, Verdict},
    },
};

/// A summary that was read and judged.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// The run's id.
    pub id: RunId,
    /// What is known besides the summary.
    pub about: About,
    /// Who brought it.
    pub created_by: String,
    /// From the summary.
    pub figures: Figures,
    /// Judged from the figures.
    pub verdict: Verdict,
    /// What speaks against it.
    pub reasons: Vec<Reason>,
    /// By which limits it was judged.
    pub limits: Limits,
    /// What made the report.
    pub engine: Engine,
    /// The compressed summary.
    pub summary: Vec<u8>,
    /// Unix ms.
    pub now: i64,
}

/// What stores one summary as a run that has ended.
const RUN: &str = "
    insert into run (id, origin, target, version, size_name, vcpus, memory_bytes, scenario, parameters, vus, duration_ms,
        repetition, note, created_by, phase, queued_at, phase_at, finished_at, verdict, reasons, engine_name, engine_version, requests,
        failed, rps, measured_ms, avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms, data_received_bytes,
        data_sent_bytes, received_per_s, iterations, dropped_iterations, checks_passed, checks_failed, thresholds,
        thresholds_failed, in_turn, least_new_connections, most_new_connections)
    values (?, 'import', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'finished', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    returning *;
    insert into run_phase (run_id, phase, at) values (?, 'finished', ?);
    insert into run_summary (run_id, body) values (?, ?);
    insert into run_judgement (run_id, rules, limits, judged_at) values (?, ?, ?, ?);";

/// Only for those that have any.
const LABELS: &str = "
    insert into run_label (label, run_seq) select value, (select seq from run where id = ?) from json_each(?);";

/// Uploads that wait to be stored. Whoever gets the connection first stores all of them, so that many wait for the disk
/// together.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<Mutex<Vec<Upload>>>);

/// What somebody brought: it is stored as a whole or not at all.
#[derive(Debug)]
struct Upload {
    imports: Vec<NewImport>,
    stored: oneshot::Sender<sqlx::Result<Vec<Run>>>,
}

impl Waiting {
    fn uploads(&self) -> MutexGuard<'_, Vec<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores summaries as runs that have ended, all or none; committed when this returns.
pub async fn insert(pool: &SqlitePool, waiting: &Waiting, imports: Vec<NewImport>) -> sqlx::Result<Vec<Run>> {
    let (stored, mut answer) = oneshot::channel();
    waiting.uploads().push(Upload { imports, stored });
    tokio::select! {
        stored = &mut answer => return stored.map_err(decode)?,
        connection = pool.acquire() => {
            let (connection, uploads) = (connection?, std::mem::take(&mut *waiting.uploads()));
            if !uploads.is_empty() {
                // A task of its own ends whatever becomes of the caller: the connection must not be left inside a transaction.
                tokio::spawn(store(connection, uploads));
            }
        }
    }
    answer.await.map_err(decode)?
}

/// Stores uploads in one transaction, or, where that fails, each in its own: the fault of one is not the fault of others.
async fn store(mut connection: PoolConnection<Sqlite>, mut uploads: Vec<Upload>) {
    // Nobody waits for these any more: they are not acknowledged.
    uploads.retain(|upload| !upload.stored.is_closed());
    if let Ok(all) = transaction(&mut connection, &uploads).await {
        for (upload, runs) in uploads.into_iter().zip(all) {
            let _ = upload.stored.send(Ok(runs));
        }
        return;
    }
    for upload in uploads {
        let stored = transaction(&mut connection, slice::from_ref(&upload)).await;
        let _ = upload.stored.send(stored.map(|runs| runs.into_iter().flatten().collect()));
    }
}

async fn transaction(connection: &mut SqliteConnection, uploads: &[Upload]) -> sqlx::Result<Vec<Vec<Run>>> {
    sqlx::query!("begin immediate").execute(&mut *connection).await?;
    let stored = async {
        let mut all = Vec::with_capacity(uploads.len());
        for upload in uploads {
            let mut runs = Vec::with_capacity(upload.imports.len());
            for import in &upload.imports {
                runs.push(one(connection, import).await?);
            }
            all.push(runs);
        }
        sqlx::query!("commit").execute(&mut *connection).await?;
        Ok(all)
    };
    let stored = stored.await;
    if stored.is_err() {
        // SQLite may have rolled back by itself, when the disk was full: then there is nothing to roll back.
        let _ = sqlx::query!("rollback").execute(&mut *connection).await;
    }
    stored
}

/// Its statements are one string: each string is a trip to the thread that owns the connection, and while an import makes its
/// trips, all others wait.
async fn one(connection: &mut SqliteConnection, import: &NewImport) -> sqlx::Result<Run> {
    let labels = if import.about.labels.is_empty() { "" } else { LABELS };
    // Checked as it runs: what the macro infers of `returning *` makes empty texts of nulls that an index leaves out.
    let query = bound(sqlx::query_as(AssertSqlSafe(format!("{RUN}{labels}"))), import)?;
    // All of them, because a stream that is left early leaves statements undone.
    let rows: Vec<RunRow> = query.fetch_all(connection).await?;
    let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    let mut run = Run::try_from(row)?;
    run.labels.clone_from(&import.about.labels);
    run.labels.sort();
    Ok(run)
}

type Statements<'q> = QueryAs<'q, Sqlite, RunRow, SqliteArguments>;

fn bound<'q>(query: Statements<'q>, import: &'q NewImport) -> sqlx::Result<Statements<'q>> {
    let NewImport { id, about, created_by, verdict, engine, summary, now, .. } = import;
    let verdict = verdict.as_str();
    let reasons = serde_json::to_string(&import.reasons).map_err(decode)?;
    let limits = serde_json::to_string(&import.limits).map_err(decode)?;
    let parameters = serde_json::to_string(&about.parameters).map_err(decode)?;
    let size = about.size.as_ref();
    let (size_name, vcpus) = (size.map(|size| &size.name), size.map(|size| size.vcpus));
    let memory_bytes = size.map(|size| size.memory_bytes.cast_signed());
    let vus = import.figures.vus_max.or(about.vus).map(u64::cast_signed);
    #[expect(clippy::cast_possible_truncation, reason = "a load lasts some days at most")]
    let duration_ms = about.duration_s.map(|seconds| (seconds * 1_000.0).round() as i64);
    let figures = FigureColumns::from(&import.figures);
    let mut query = query
        .bind(id)
        .bind(&about.target)
        .bind(&about.version)
        .bind(size_name)
        .bind(vcpus)
        .bind(memory_bytes)
        .bind(&about.scenario)
        .bind(parameters)
        .bind(vus)
        .bind(duration_ms)
        .bind(about.repetition)
        .bind(&about.note)
        .bind(created_by)
        .bind(now)
        .bind(now)
        .bind(now)
        .bind(verdict)
        .bind(reasons)
        .bind(&engine.name)
        .bind(&engine.version)
        .bind(figures.requests)
        .bind(figures.failed)
        .bind(figures.rps)
        .bind(figures.measured_ms)
        .bind(figures.avg_ms)
        .bind(figures.min_ms)
        .bind(figures.p50_ms)
        .bind(figures.p90_ms)
        .bind(figures.p95_ms)
        .bind(figures.p99_ms)
        .bind(figures.p999_ms)
        .bind(figures.max_ms)
        .bind(figures.data_received_bytes)
        .bind(figures.data_sent_bytes)
        .bind(figures.received_per_s)
        .bind(figures.iterations)
        .bind(figures.dropped_iterations)
        .bind(figures.checks_passed)
        .bind(figures.checks_failed)
        .bind(figures.thresholds)
        .bind(figures.thresholds_failed)
        .bind(about.in_turn)
        .bind(figures.least_new_connections)
        .bind(figures.most_new_connections)
        .bind(id)
        .bind(now)
        .bind(id)
        .bind(summary)
        .bind(id)
        .bind(RULES)
        .bind(limits)
        .bind(now);
    if !about.labels.is_empty() {
        let labels = serde_json::to_string(&about.labels).map_err(decode)?;
        query = query.bind(id).bind(labels);
    }
    Ok(query)
}

/// Makes imported runs those of an experiment.
pub async fn gather(connection: &mut SqliteConnection, ids: &[RunId], experiment: &ExperimentId) -> sqlx::Result<()> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    sqlx::query!(
        "update run set experiment_id = ?2
         where id in (select value from json_each(?1)) and origin = 'import' and experiment_id is null",
        ids,
        experiment
    )
    .execute(connection)
    .await?;
    Ok(())
}
