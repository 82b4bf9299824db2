//! SQL of old series: which there are, thinned ones in the place of whole ones, and their end. Those that one was added up
//! from go with the first reduction: the sum has all that is shown.

use sqlx::SqlitePool;

use crate::{app::ids::RunId, results::store::parts};

/// How many at once: who else wants to write waits for them.
const PORTION: i64 = 50;

/// A run's series that is to be reduced.
#[derive(Clone, Debug)]
pub struct Due {
    /// The run's place in the order of submission.
    pub seq: i64,
    /// The run.
    pub run: RunId,
    /// The series, packed.
    pub body: Vec<u8>,
}

/// Series that were never reduced, of runs that ended before a time, unix ms: those after a run, in their order.
pub async fn whole(pool: &SqlitePool, before: i64, after: i64) -> sqlx::Result<Vec<Due>> {
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

/// Series of runs that ended before a time, unix ms, without what is in them: those after a run, in their order.
pub async fn there(pool: &SqlitePool, before: i64, after: i64) -> sqlx::Result<Vec<Due>> {
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

/// Puts thinned series in the place of whole ones; gives how many.
pub async fn replace(pool: &SqlitePool, thinned: &[Due], now: i64) -> sqlx::Result<usize> {
    let (mut transaction, mut done) = (pool.begin().await?, 0);
    for Due { seq: _, run, body } in thinned {
        let there = sqlx::query!("update run_series set body = ?2 where run_id = ?1", run, body)
            .execute(&mut *transaction)
            .await?;
        // Deleted meanwhile.
        if there.rows_affected() == 0 {
            continue;
        }
        parts::drop_series(&mut transaction, run).await?;
        sqlx::query!(
            "insert or replace into run_series_reduced (run_id, reduction, reduced_at) values (?, 'thin', ?)",
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

/// Deletes series; gives how many.
pub async fn delete(pool: &SqlitePool, due: &[Due], now: i64) -> sqlx::Result<usize> {
    let (mut transaction, mut done) = (pool.begin().await?, 0);
    for Due { run, .. } in due {
        let there = sqlx::query!("delete from run_series where run_id = ?", run).execute(&mut *transaction).await?;
        if there.rows_affected() == 0 {
            continue;
        }
        parts::drop_series(&mut transaction, run).await?;
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

/// What was done to a run's series, `thin` or `delete`, and when, unix ms; none if nothing.
pub async fn of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Option<(String, i64)>> {
    let row = sqlx::query!("select reduction, reduced_at from run_series_reduced where run_id = ?", run)
        .fetch_optional(pool)
        .await?;
    Ok(row.map(|row| (row.reduction, row.reduced_at)))
}
