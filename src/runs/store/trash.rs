//! SQL of deletion: a deleted run is hidden, can be restored for a while, and is then purged.

use sqlx::SqlitePool;

use super::by_ids;
use crate::{
    app::{
        db::{Db, decode},
        ids::RunId,
    },
    auth::audit::{self, AuditEvent},
    runs::model::Run,
};

/// Deletes the runs among these ids that have ended. Returns their number.
pub async fn delete(pool: &SqlitePool, ids: &[RunId], now: i64, act: &AuditEvent) -> sqlx::Result<u64> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    let mut transaction = pool.begin().await?;
    let deleted = sqlx::query!(
        "update run set deleted_at = ?2, deleted_by = ?3
         where id in (select value from json_each(?1)) and deleted_at is null
           and phase in ('finished', 'failed', 'cancelled', 'lost')",
        ids,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected();
    if deleted > 0 {
        audit::record(&mut transaction, act).await?;
        transaction.commit().await?;
    }
    Ok(deleted)
}

/// Restores runs that were deleted since a time. Returns the existing runs among these ids.
pub async fn restore(db: &Db, ids: &[RunId], since: i64, act: &AuditEvent) -> sqlx::Result<Vec<Run>> {
    let named = serde_json::to_string(ids).map_err(decode)?;
    let mut transaction = db.write.begin().await?;
    let restored = sqlx::query!(
        "update run set deleted_at = null, deleted_by = null
         where id in (select value from json_each(?1)) and deleted_at >= ?2",
        named,
        since
    )
    .execute(&mut *transaction)
    .await?;
    if restored.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    audit::record(&mut transaction, act).await?;
    transaction.commit().await?;
    by_ids(&db.rows, ids).await
}

/// Runs that were deleted in one operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// When, unix ms; identifies the deletion.
    pub at: i64,
    /// Who deleted them.
    pub by: String,
    /// Number of runs.
    pub runs: i64,
}

/// Returns up to five deletions since a time, newest first.
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

/// Returns the ids of the runs of a deletion.
pub async fn deleted_at(pool: &SqlitePool, at: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(r#"select id as "id: RunId" from run where deleted_at = ? order by seq"#, at)
        .fetch_all(pool)
        .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Returns up to two ids of deleted runs that end with a text.
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

/// Purges up to 200 runs deleted before a time, with all their data. Returns their number.
/// The limit keeps the only writing connection free for others.
pub async fn purge(pool: &SqlitePool, before: i64) -> sqlx::Result<u64> {
    let deleted = sqlx::query!(
        "delete from run where seq in (select seq from run where deleted_at < ? order by deleted_at limit 200)",
        before
    )
    .execute(pool)
    .await?;
    Ok(deleted.rows_affected())
}
