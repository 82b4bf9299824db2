//! SQL that ends a run: by a result, a cancellation, or the loss of its agent.

use brewbench_wire::{Phase, engine::EngineVersion, target::Identity};
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::{db::decode, ids::RunId},
    metrics::Figures,
    results::{
        store::verdicts,
        verdict::{limits::Limits, model::Judgement},
    },
    runs::{
        store::{enter, retries::partner},
        verdict::{Reason, Verdict},
    },
};

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Ending<'a> {
    /// `finished`, `failed`, or `lost` if its agent stopped it.
    pub phase: Phase,
    /// Why it failed.
    pub error: Option<&'a str>,
    /// Its verdict, if it was judged.
    pub verdict: Option<Verdict>,
    /// Reasons of the verdict.
    pub reasons: &'a [Reason],
    /// Limits that it was judged by.
    pub limits: &'a Limits,
    /// Its figures.
    pub figures: Option<&'a Figures>,
    /// Mechanism that limited CPU time.
    pub enforced_cpu: Option<&'a str>,
    /// Mechanism that limited memory.
    pub enforced_memory: Option<&'a str>,
    /// The load generator and its version.
    pub engine: Option<&'a EngineVersion>,
    /// What identifies the target.
    pub target: Option<&'a Identity>,
    /// The target's version.
    pub version: Option<&'a str>,
    /// The compressed summary.
    pub summary: Option<&'a [u8]>,
    /// The compressed evidence.
    pub evidence: Option<&'a [u8]>,
    /// The packed series.
    pub series: Option<&'a [u8]>,
    /// Time of the end, unix ms.
    pub now: i64,
}

impl<'a> Ending<'a> {
    /// Returns the end of a run without a result.
    pub fn without_result(
        phase: Phase,
        error: &'a str,
        judgement: &'a Judgement,
        limits: &'a Limits,
        now: i64,
    ) -> Self {
        Self {
            phase,
            error: Some(error),
            verdict: Some(judgement.verdict),
            reasons: &judgement.reasons,
            limits,
            figures: None,
            enforced_cpu: None,
            enforced_memory: None,
            engine: None,
            target: None,
            version: None,
            summary: None,
            evidence: None,
            series: None,
            now,
        }
    }
}

/// Stores the end of a run in any phase: the caller has decided that it counts.
pub async fn end(connection: &mut SqliteConnection, id: &RunId, ending: &Ending<'_>) -> sqlx::Result<()> {
    let phase = ending.phase.as_str();
    update(connection, id, ending).await?;
    if let Some(body) = ending.summary {
        sqlx::query!("insert or replace into run_summary (run_id, body) values (?, ?)", id, body)
            .execute(&mut *connection)
            .await?;
    }
    if let Some(body) = ending.evidence {
        store_evidence(connection, id, body).await?;
    }
    if let Some(body) = ending.series {
        sqlx::query!("insert or replace into run_series (run_id, body) values (?, ?)", id, body)
            .execute(&mut *connection)
            .await?;
    }
    if ending.verdict.is_some() {
        verdicts::record_judgement(connection, id, ending.limits, ending.now).await?;
    }
    enter(connection, id, phase, ending.now).await
}

/// Loads the compressed evidence of a run, if it has any.
pub async fn evidence(connection: &mut SqliteConnection, id: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    let row = sqlx::query!("select body from run_evidence where run_id = ?", id).fetch_optional(connection).await?;
    Ok(row.map(|row| row.body))
}

/// Stores evidence, replacing what was stored before.
pub async fn store_evidence(connection: &mut SqliteConnection, id: &RunId, body: &[u8]) -> sqlx::Result<()> {
    sqlx::query!("insert or replace into run_evidence (run_id, body) values (?, ?)", id, body)
        .execute(connection)
        .await?;
    Ok(())
}

async fn update(connection: &mut SqliteConnection, id: &RunId, ending: &Ending<'_>) -> sqlx::Result<()> {
    let phase = ending.phase.as_str();
    let verdict = ending.verdict.map(Verdict::as_str);
    let reasons = serde_json::to_string(ending.reasons).map_err(decode)?;
    let figures = ending.figures.map_or(Ok(None), Figures::to_stored).map_err(decode)?;
    let (engine_name, engine_version) = ending.engine.map(|EngineVersion { name, version }| (name, version)).unzip();
    let (target_kind, target_identity) = ending.target.map(|target| (target.kind().as_str(), target.text())).unzip();
    sqlx::query!(
        "update run set phase = ?2, phase_at = ?3, finished_at = ?3, error = ?4, verdict = ?5,
             reasons = ?6, enforced_cpu = ?7, enforced_memory = ?8, engine_version = coalesce(?9, engine_version),
             target_identity = coalesce(?10, target_identity), version = coalesce(?11, version), figures = ?12,
             engine_name = coalesce(?13, engine_name), target_kind = coalesce(?14, target_kind)
         where id = ?1",
        id,
        phase,
        ending.now,
        ending.error,
        verdict,
        reasons,
        ending.enforced_cpu,
        ending.enforced_memory,
        engine_version,
        target_identity,
        ending.version,
        figures,
        engine_name,
        target_kind
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Stores figures of a run that has ended; those that are unknown here stay as stored.
pub async fn add_figures(connection: &mut SqliteConnection, id: &RunId, figures: &Figures) -> sqlx::Result<()> {
    let Some(known) = figures.to_stored().map_err(decode)? else { return Ok(()) };
    sqlx::query!("update run set figures = json_patch(coalesce(figures, '{}'), ?2) where id = ?1", id, known)
        .execute(connection)
        .await?;
    Ok(())
}

/// Cancels a run with its partner in a duet; returns those that had not ended.
pub async fn cancel(pool: &SqlitePool, id: &RunId, error: &str, now: i64) -> sqlx::Result<Vec<RunId>> {
    let mut transaction = pool.begin().await?;
    let partner = partner(&mut transaction, id).await?;
    let mut cancelled = Vec::new();
    for id in [id.clone()].into_iter().chain(partner) {
        if cancel_one(&mut transaction, &id, error, now).await? {
            cancelled.push(id);
        }
    }
    transaction.commit().await?;
    Ok(cancelled)
}

async fn cancel_one(connection: &mut SqliteConnection, id: &RunId, error: &str, now: i64) -> sqlx::Result<bool> {
    let cancelled = sqlx::query!(
        "update run set phase = 'cancelled', phase_at = ?2, finished_at = ?2, error = ?3
         where id = ?1 and phase not in ('finished', 'failed', 'cancelled', 'lost')",
        id,
        now,
        error
    )
    .execute(&mut *connection)
    .await?
    .rows_affected()
        > 0;
    if cancelled {
        enter(connection, id, "cancelled", now).await?;
    }
    Ok(cancelled)
}
