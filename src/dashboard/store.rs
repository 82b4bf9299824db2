//! SQL of the page `/`: what happened last, and what is still missing on a new server.

use sqlx::SqlitePool;

use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
    },
    runs::verdict::Reason,
};

/// Counts of what happened since some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Runs of agents that finished.
    pub finished: usize,
    /// Experiments of these runs.
    pub experiments: usize,
    /// Finished runs that are invalid.
    pub invalid: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that were lost.
    pub lost: usize,
    /// Runs that were imported.
    pub imported: usize,
}

/// Counts the runs that ended since a time, unix ms. Imports are counted apart, whatever their verdict.
pub async fn ended(pool: &SqlitePool, since: i64) -> sqlx::Result<Ended> {
    let row = sqlx::query!(
        r#"select count(*) filter (where origin = 'agent' and phase = 'finished') as "finished!: i64",
                  count(distinct iif(origin = 'agent' and phase = 'finished', experiment_id, null)) as "experiments!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'finished' and verdict = 'invalid') as "invalid!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'failed') as "failed!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'lost') as "lost!: i64",
                  count(*) filter (where origin = 'import') as "imported!: i64"
           from run where finished_at >= ? and deleted_at is null"#,
        since
    )
    .fetch_one(pool)
    .await?;
    let count = |count: i64| usize::try_from(count).unwrap_or_default();
    Ok(Ended {
        finished: count(row.finished),
        experiments: count(row.experiments),
        invalid: count(row.invalid),
        failed: count(row.failed),
        lost: count(row.lost),
        imported: count(row.imported),
    })
}

/// A run that ended without a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The run.
    pub id: RunId,
    /// Name of its target.
    pub target: String,
    /// `failed`, `lost` or `invalid`.
    pub what: &'static str,
    /// Why.
    pub reason: String,
    /// When it ended, unix ms.
    pub at_ms: i64,
}

/// Returns failed, lost and invalid runs of agents since a time, newest first. Cancelled and imported runs are not
/// failures.
pub async fn broken(pool: &SqlitePool, since: i64, limit: i64) -> sqlx::Result<Vec<Broken>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId", target, phase, error, reasons, finished_at as "finished_at!" from run
         where finished_at >= ? and (phase in ('failed', 'lost') or verdict = 'invalid')
           and origin = 'agent' and deleted_at is null
         order by finished_at desc limit ?"#,
        since,
        limit
    )
    .fetch_all(pool)
    .await?;
    let broken = rows.into_iter().map(|row| {
        let reasons: Vec<Reason> = serde_json::from_str(&row.reasons).map_err(decode)?;
        let texts = || reasons.iter().map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ");
        let what = match row.phase.as_str() {
            "failed" => "failed",
            "lost" => "lost",
            _ => "invalid",
        };
        let reason = row.error.unwrap_or_else(texts);
        Ok(Broken { id: row.id, target: row.target, what, reason, at_ms: row.finished_at })
    });
    broken.collect()
}

/// Returns the experiments with suspect runs since a time, newest first.
pub async fn suspect(pool: &SqlitePool, since: i64, limit: i64) -> sqlx::Result<Vec<ExperimentId>> {
    sqlx::query_scalar!(
        r#"select experiment_id as "experiment_id!: ExperimentId" from run indexed by overview_run_finished
         where finished_at >= ? and verdict = 'suspect' and origin = 'agent' and experiment_id is not null
           and deleted_at is null
         group by experiment_id order by max(finished_at) desc limit ?"#,
        since,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Counts the targets that agents have ever offered, by name.
pub async fn target_count(pool: &SqlitePool) -> sqlx::Result<usize> {
    let count =
        sqlx::query_scalar!(r#"select count(distinct name) as "count!: i64" from target"#).fetch_one(pool).await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Whether any run exists.
pub async fn any_run(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from run where deleted_at is null limit 1").fetch_optional(pool).await?.is_some())
}
