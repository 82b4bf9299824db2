//! SQL of what ends a run: its result, a cancellation, the loss of its agent.

use brewbench_agent::wire::{Phase, summary::Figures};
use sqlx::{SqliteConnection, SqlitePool};

use super::enter;
use crate::runs::{Reason, Verdict};

/// What a result says of a run, besides blobs.
#[derive(Clone, Debug)]
pub struct Ending<'a> {
    /// `finished` or `failed` (or `cancelled` by the agent's owner).
    pub phase: Phase,
    /// Why it failed.
    pub error: Option<&'a str>,
    /// Judged from figures and making.
    pub verdict: Option<Verdict>,
    /// What speaks against it.
    pub reasons: &'a [Reason],
    /// From the summary.
    pub figures: Option<&'a Figures>,
    /// What limited CPU time.
    pub enforced_cpu: Option<&'a str>,
    /// What limited memory.
    pub enforced_memory: Option<&'a str>,
    /// k6's version.
    pub k6_version: Option<&'a str>,
    /// SHA-256 of the target's executable.
    pub target_sha256: Option<&'a str>,
    /// The target's version.
    pub version: Option<&'a str>,
    /// The compressed summary.
    pub summary: Option<&'a [u8]>,
    /// The compressed evidence.
    pub evidence: Option<&'a [u8]>,
    /// Unix ms.
    pub now: i64,
}

/// Stores the end of a run, in whatever phase it is: the caller has settled that it counts.
pub async fn end(connection: &mut SqliteConnection, id: &str, ending: &Ending<'_>) -> sqlx::Result<()> {
    let phase = ending.phase.as_str();
    let verdict = ending.verdict.map(Verdict::as_str);
    let reasons = serde_json::to_string(ending.reasons).map_err(super::decode)?;
    sqlx::query!(
        "update run set phase = ?2, phase_at = ?3, finished_at = ?3, lease_expires_at = null, error = ?4, verdict = ?5,
             reasons = ?6, enforced_cpu = ?7, enforced_memory = ?8, k6_version = coalesce(?9, k6_version),
             target_sha256 = coalesce(?10, target_sha256), version = coalesce(?11, version)
         where id = ?1",
        id,
        phase,
        ending.now,
        ending.error,
        verdict,
        reasons,
        ending.enforced_cpu,
        ending.enforced_memory,
        ending.k6_version,
        ending.target_sha256,
        ending.version
    )
    .execute(&mut *connection)
    .await?;
    if let Some(figures) = ending.figures {
        keep_figures(connection, id, figures).await?;
    }
    if let Some(body) = ending.summary {
        sqlx::query!("insert or replace into run_summary (run_id, body) values (?, ?)", id, body)
            .execute(&mut *connection)
            .await?;
    }
    if let Some(body) = ending.evidence {
        sqlx::query!("insert or replace into run_evidence (run_id, body) values (?, ?)", id, body)
            .execute(&mut *connection)
            .await?;
    }
    enter(connection, id, phase, ending.now).await
}

async fn keep_figures(connection: &mut SqliteConnection, id: &str, figures: &Figures) -> sqlx::Result<()> {
    let (requests, failed) = (figures.requests.cast_signed(), figures.failed.map(u64::cast_signed));
    let (iterations, dropped) =
        (figures.iterations.map(u64::cast_signed), figures.dropped_iterations.map(u64::cast_signed));
    let (passed, not_passed) =
        (figures.checks_passed.map(u64::cast_signed), figures.checks_failed.map(u64::cast_signed));
    let latency = &figures.latency;
    // SQLite has no unsigned integers.
    let (received, sent) =
        (figures.data_received_bytes.map(|bytes| bytes as f64), figures.data_sent_bytes.map(|bytes| bytes as f64));
    sqlx::query!(
        "update run set requests = ?2, failed = ?3, rps = ?4, measured_ms = ?5, avg_ms = ?6, min_ms = ?7, p50_ms = ?8,
             p90_ms = ?9, p95_ms = ?10, p99_ms = ?11, p999_ms = ?12, max_ms = ?13, data_received_bytes = ?14,
             data_sent_bytes = ?15, iterations = ?16, dropped_iterations = ?17, checks_passed = ?18, checks_failed = ?19,
             thresholds = ?20, thresholds_failed = ?21
         where id = ?1",
        id,
        requests,
        failed,
        figures.rps,
        figures.measured_ms,
        latency.avg_ms,
        latency.min_ms,
        latency.p50_ms,
        latency.p90_ms,
        latency.p95_ms,
        latency.p99_ms,
        latency.p999_ms,
        latency.max_ms,
        received,
        sent,
        iterations,
        dropped,
        passed,
        not_passed,
        figures.thresholds,
        figures.thresholds_failed
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Cancels a run that has not ended; false if it had, or there is none.
pub async fn cancel(pool: &SqlitePool, id: &str, error: &str, now: i64) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set phase = 'cancelled', phase_at = ?2, finished_at = ?2, lease_expires_at = null, error = ?3
         where id = ?1 and phase not in ('finished', 'failed', 'cancelled', 'lost')",
        id,
        now,
        error
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if done {
        enter(&mut transaction, id, "cancelled", now).await?;
    }
    transaction.commit().await?;
    Ok(done)
}

/// Deletes a run that has ended, with everything that belongs to it; false if there is none that has.
pub async fn delete(pool: &SqlitePool, id: &str) -> sqlx::Result<bool> {
    let done =
        sqlx::query!("delete from run where id = ? and phase in ('finished', 'failed', 'cancelled', 'lost')", id)
            .execute(pool)
            .await?;
    Ok(done.rows_affected() > 0)
}
