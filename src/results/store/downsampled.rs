//! SQL of retention of series: lists old ones, replaces them with downsampled ones, and deletes them.
//!
//! The first reduction of a distributed run deletes the series of its parts: the merged one has all that is shown.

use sqlx::SqlitePool;

use crate::{app::ids::RunId, results::store::parts};

/// Series per transaction: other writers wait for it.
const PORTION: i64 = 50;

/// A series to reduce.
#[derive(Clone, Debug)]
pub struct Due {
    /// The run's sequence number.
    pub seq: i64,
    /// The run.
    pub run: RunId,
    /// The series, packed.
    pub body: Vec<u8>,
}

/// Lists series that were never reduced, of runs that ended before `before` (unix ms), after sequence number `after`.
pub async fn full(pool: &SqlitePool, before: i64, after: i64) -> sqlx::Result<Vec<Due>> {
    sqlx::query_as!(
        Due,
        r#"select run.seq as "seq!", run.id as "run!: RunId", run_series.body as "body!"
           from run join run_series on run_series.run_id = run.id
           where run.seq > ?2 and run.finished_at < ?1
               and not exists (select 1 from run_series_reduced where run_id = run.id)
           order by run.seq limit ?3"#,
        before,
        after,
        PORTION
    )
    .fetch_all(pool)
    .await
}

/// Lists series of runs that ended before `before` (unix ms), without their content, after sequence number `after`.
pub async fn with_series(pool: &SqlitePool, before: i64, after: i64) -> sqlx::Result<Vec<Due>> {
    let rows = sqlx::query!(
        r#"select run.seq as "seq!", run.id as "run!: RunId" from run
           where run.seq > ?2 and run.finished_at < ?1 and exists (select 1 from run_series where run_id = run.id)
           order by run.seq limit ?3"#,
        before,
        after,
        PORTION
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| Due { seq: row.seq, run: row.run, body: Vec::new() }).collect())
}

/// Replaces series with downsampled ones; returns how many.
pub async fn replace(pool: &SqlitePool, coarse: &[Due], now: i64) -> sqlx::Result<usize> {
    let (mut transaction, mut done) = (pool.begin().await?, 0);
    for Due { seq: _, run, body } in coarse {
        let updated = sqlx::query!("update run_series set body = ?2 where run_id = ?1", run, body)
            .execute(&mut *transaction)
            .await?;
        // The series has been deleted since it was read.
        if updated.rows_affected() == 0 {
            continue;
        }
        parts::drop_series(&mut transaction, run).await?;
        sqlx::query!(
            "insert or replace into run_series_reduced (run_id, reduction, reduced_at) values (?, 'downsample', ?)",
            run,
            now
        )
        .execute(&mut *transaction)
        .await?;
        done += 1;
    }
    transaction.commit().await?;
    Ok(done)
}

/// Deletes series; returns how many.
pub async fn delete(pool: &SqlitePool, due: &[Due], now: i64) -> sqlx::Result<usize> {
    let (mut transaction, mut done) = (pool.begin().await?, 0);
    for Due { run, .. } in due {
        let deleted = sqlx::query!("delete from run_series where run_id = ?", run).execute(&mut *transaction).await?;
        if deleted.rows_affected() == 0 {
            continue;
        }
        parts::drop_series(&mut transaction, run).await?;
        sqlx::query!("update profile set body = null where run_id = ?", run).execute(&mut *transaction).await?;
        sqlx::query!(
            "insert or replace into run_series_reduced (run_id, reduction, reduced_at) values (?, 'delete', ?)",
            run,
            now
        )
        .execute(&mut *transaction)
        .await?;
        done += 1;
    }
    transaction.commit().await?;
    Ok(done)
}

/// Returns how a run's series was reduced (`downsample` or `delete`) and when, unix ms; None if it was not.
pub async fn reduction(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Option<(String, i64)>> {
    let row = sqlx::query!("select reduction, reduced_at from run_series_reduced where run_id = ?", run)
        .fetch_optional(pool)
        .await?;
    Ok(row.map(|row| (row.reduction, row.reduced_at)))
}
