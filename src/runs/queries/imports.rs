//! SQL of imports.

use brewbench_agent::wire::summary::Figures;
use sqlx::{SqliteConnection, SqlitePool};

use super::{RunRow, decode, figures::FigureColumns};
use crate::runs::{
    Reason, Run, Verdict,
    ingest::ImportAbout,
    verdict::{Limits, RULES},
};

/// A summary that was read and judged.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// The run's id.
    pub id: String,
    /// What is known besides the summary.
    pub about: ImportAbout,
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
    /// k6's version, where the summary says it.
    pub k6_version: Option<String>,
    /// The compressed summary.
    pub summary: Vec<u8>,
    /// Unix ms.
    pub now: i64,
}

/// Stores a summary as a run that has ended; committed when this returns.
///
/// The transaction is one string: each string is a trip to the thread that owns the connection, and while an import
/// makes its trips, all others wait.
pub async fn insert(pool: &SqlitePool, import: NewImport) -> sqlx::Result<Run> {
    let mut connection = pool.acquire().await?;
    // A task of its own ends whatever becomes of the caller: the connection must not be left inside a transaction.
    let stored = tokio::spawn(async move {
        let stored = transaction(&mut connection, &import).await;
        if stored.is_err() {
            // SQLite may have rolled back by itself, when the disk was full: then there is nothing to roll back.
            let _ = sqlx::query!("rollback").execute(&mut *connection).await;
        }
        stored
    });
    stored.await.map_err(decode)?
}

async fn transaction(connection: &mut SqliteConnection, import: &NewImport) -> sqlx::Result<Run> {
    let NewImport { id, about, created_by, verdict, k6_version, summary, now, .. } = import;
    let verdict = verdict.as_str();
    let reasons = serde_json::to_string(&import.reasons).map_err(decode)?;
    let limits = serde_json::to_string(&import.limits).map_err(decode)?;
    let size = about.size.as_ref();
    let (size_name, vcpus) = (size.map(|size| &size.name), size.map(|size| size.vcpus));
    let memory_bytes = size.map(|size| size.memory_bytes.cast_signed());
    let vus = import.figures.vus_max.map(u64::cast_signed);
    let figures = FigureColumns::from(&import.figures);
    // Checked as it runs: what the macro infers of `returning *` makes empty texts of nulls that an index leaves out.
    let rows = sqlx::query_as::<_, RunRow>(
        "begin immediate;
         insert into run (id, origin, target, version, size_name, vcpus, memory_bytes, scenario, vus, repetition,
             created_by, phase, queued_at, phase_at, finished_at, verdict, reasons, k6_version, requests, failed, rps,
             measured_ms, avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms, data_received_bytes,
             data_sent_bytes, iterations, dropped_iterations, checks_passed, checks_failed, thresholds, thresholds_failed)
         values (?, 'import', ?, ?, ?, ?, ?, ?, ?, ?, ?, 'finished', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
             ?, ?, ?, ?, ?, ?, ?, ?)
         returning *;
         insert into run_phase (run_id, phase, at) values (?, 'finished', ?);
         insert into run_summary (run_id, body) values (?, ?);
         insert into run_judgement (run_id, rules, limits, judged_at) values (?, ?, ?, ?);
         commit",
    )
    .bind(id)
    .bind(&about.target)
    .bind(&about.version)
    .bind(size_name)
    .bind(vcpus)
    .bind(memory_bytes)
    .bind(&about.scenario)
    .bind(vus)
    .bind(about.repetition)
    .bind(created_by)
    .bind(now)
    .bind(now)
    .bind(now)
    .bind(verdict)
    .bind(&reasons)
    .bind(k6_version)
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
    .bind(figures.iterations)
    .bind(figures.dropped_iterations)
    .bind(figures.checks_passed)
    .bind(figures.checks_failed)
    .bind(figures.thresholds)
    .bind(figures.thresholds_failed)
    .bind(id)
    .bind(now)
    .bind(id)
    .bind(summary)
    .bind(id)
    .bind(RULES)
    .bind(limits)
    .bind(now)
    // All of them, because a stream that is left early leaves statements undone.
    .fetch_all(connection)
    .await?;
    let row = rows.into_iter().next().ok_or(sqlx::Error::RowNotFound)?;
    row.try_into()
}
