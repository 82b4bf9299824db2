//! SQL of deleting: a deleted run is seen by nobody, can be brought back for a while, and then goes for good.

use sqlx::SqlitePool;

use super::by_ids;
use crate::{
    app::{db::Db, ids::RunId},
    auth::audit::{self, Act},
    runs::{model::Run, store::row::decode},
};

/// Deletes those of some runs that have ended; gives how many.
pub async fn delete(pool: &SqlitePool, ids: &[RunId], now: i64, act: &Act) -> sqlx::Result<u64> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update run set deleted_at = ?2, deleted_by = ?3
         where id in (select value from json_each(?1)) and deleted_at is null
           and phase in ('finished', 'failed', 'cancelled', 'lost')",
        ids,
        now,
        act.who
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    if done > 0 {
        audit::note(&mut transaction, act).await?;
        transaction.commit().await?;
    }
    Ok(done)
}

/// Brings deleted runs back that were deleted since a time; gives those of the named that are there then.
pub async fn restore(db: &Db, ids: &[RunId], since: i64, act: &Act) -> sqlx::Result<Vec<Run>> {
    let named = serde_json::to_string(ids).map_err(decode)?;
    let mut transaction = db.write.begin().await?;
    let done = sqlx::query!(
        "update run set deleted_at = null, deleted_by = null
         where id in (select value from json_each(?1)) and deleted_at >= ?2",
        named,
        since
    )
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    audit::note(&mut transaction, act).await?;
    transaction.commit().await?;
    by_ids(&db.rows, ids).await
}

/// Runs that were deleted together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When, unix ms; names it.
    pub at: i64,
    /// By whom.
    pub by: String,
    /// How many runs.
    pub runs: i64,
}

/// What was deleted since a time, the last first; a few of them.
pub async fn deletions(pool: &SqlitePool, since: i64) -> sqlx::Result<Vec<Deletion>> {
    sqlx::query_as!(
        Deletion,
        r#"select deleted_at as "at!: i64", coalesce(deleted_by, '') as "by!: String", count(*) as "runs!: i64"
           from run where deleted_at >= ? group by deleted_at, deleted_by order by deleted_at desc limit 5"#,
        since
    )
    .fetch_all(pool)
    .await
}

/// The ids of what was deleted at a time.
pub async fn deleted_at(pool: &SqlitePool, at: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(r#"select id as "id: RunId" from run where deleted_at = ? order by seq"#, at)
        .fetch_all(pool)
        .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// The full ids of deleted runs whose ids end with a text; two at most.
pub async fn deleted_ending(pool: &SqlitePool, end: &str, since: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where deleted_at >= ?2 and substr(id, -length(?1)) = ?1 limit 2"#,
        end,
        since
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Removes what was deleted before a time, with all that belongs to it; a few at once, so that nobody waits long for
/// the one connection that writes. Gives how many went.
pub async fn purge(pool: &SqlitePool, before: i64) -> sqlx::Result<u64> {
    let done = sqlx::query!(
        "delete from run where seq in (select seq from run where deleted_at < ? order by deleted_at limit 200)",
        before
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected())
}
