//! SQL of the page `/`: what happened last, and what is still missing on a new server.

use sqlx::SqlitePool;

use crate::app::ids::RunId;

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

/// Returns the ids of failed, lost and invalid runs of agents since a time, newest first. Cancelled and imported runs
/// are not failures.
pub async fn broken(pool: &SqlitePool, since: i64, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where finished_at >= ? and (phase in ('failed', 'lost') or verdict = 'invalid')
           and origin = 'agent' and deleted_at is null
         order by finished_at desc limit ?"#,
        since,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Counts the targets that agents have ever offered, by name.
pub async fn target_count(pool: &SqlitePool) -> sqlx::Result<usize> {
    let count =
        sqlx::query_scalar!(r#"select count(distinct name) as "count!: i64" from target"#).fetch_one(pool).await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Returns when an agent finished a run for the first time, unix ms.
pub async fn first_measured_at(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    let first = sqlx::query!(
        r#"select finished_at as "finished_at!" from run indexed by overview_run_finished
         where finished_at is not null and origin = 'agent' and phase = 'finished' and deleted_at is null
         order by finished_at limit 1"#
    );
    Ok(first.fetch_optional(pool).await?.map(|row| row.finished_at))
}

/// Whether any run exists.
pub async fn any_run(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from run where deleted_at is null limit 1").fetch_optional(pool).await?.is_some())
}
