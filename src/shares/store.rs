//! SQL of share links.

use serde_json::json;
use sqlx::SqlitePool;

use crate::{
    app::db::decode,
    auth::audit::{self, AuditEvent},
    shares::model::Share,
};

/// A row of `share`.
struct ShareRow {
    id: i64,
    title: String,
    query: String,
    runs: String,
    created_by: String,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}

impl TryFrom<ShareRow> for Share {
    type Error = sqlx::Error;

    fn try_from(row: ShareRow) -> sqlx::Result<Self> {
        let ShareRow { id, title, query, runs, created_by, created_at, expires_at, revoked_at } = row;
        let runs = serde_json::from_str(&runs).map_err(decode)?;
        let (created_at_ms, expires_at_ms, revoked_at_ms) = (created_at, expires_at, revoked_at);
        Ok(Self { id, title, runs, query, created_by, created_at_ms, expires_at_ms, revoked_at_ms })
    }
}

/// Stores a link and returns its id; `share.id` is ignored. `made_by` is the id of the user whose authority the link
/// has.
pub async fn insert(
    pool: &SqlitePool,
    share: &Share,
    hash: &[u8],
    made_by: Option<&str>,
    act: AuditEvent,
) -> sqlx::Result<i64> {
    let Share { id: _, title, runs, query, created_by, created_at_ms, expires_at_ms, revoked_at_ms } = share;
    let list = serde_json::to_string(runs).map_err(decode)?;
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "insert into share (hash, title, query, runs, created_by, made_by, created_at, expires_at, revoked_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        hash,
        title,
        query,
        list,
        created_by,
        made_by,
        created_at_ms,
        expires_at_ms,
        revoked_at_ms
    )
    .execute(&mut *transaction)
    .await?;
    let id = done.last_insert_rowid();
    let act = act.with(json!({"id": id, "runs": runs.len(), "expires_at_ms": expires_at_ms}));
    audit::record(&mut transaction, &act).await?;
    transaction.commit().await?;
    Ok(id)
}

/// Returns at most `limit` links, newest first.
pub async fn all(pool: &SqlitePool, limit: i64) -> sqlx::Result<Vec<Share>> {
    let rows = sqlx::query_as!(
        ShareRow,
        "select id, title, query, runs, created_by, created_at, expires_at, revoked_at from share
         order by id desc limit ?",
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(Share::try_from).collect()
}

/// Returns the link with this id.
pub async fn find(pool: &SqlitePool, id: i64) -> sqlx::Result<Option<Share>> {
    let row = sqlx::query_as!(
        ShareRow,
        "select id, title, query, runs, created_by, created_at, expires_at, revoked_at from share where id = ?",
        id
    )
    .fetch_optional(pool)
    .await?;
    row.map(Share::try_from).transpose()
}

/// Returns the link with this secret if it is open at a time and its creator may still share.
pub async fn open(pool: &SqlitePool, hash: &[u8], now: i64) -> sqlx::Result<Option<Share>> {
    let row = sqlx::query_as!(
        ShareRow,
        "select id, title, query, runs, created_by, created_at, expires_at, revoked_at from share
         where hash = ?1 and revoked_at is null and (expires_at is null or expires_at > ?2)
             and (made_by is null or exists (select 1 from user where id = made_by and role <> 'viewer'))",
        hash,
        now
    )
    .fetch_optional(pool)
    .await?;
    row.map(Share::try_from).transpose()
}

/// Revokes a link. Returns false if there is no unrevoked link with this id.
pub async fn revoke(pool: &SqlitePool, id: i64, now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("update share set revoked_at = ?2 where id = ?1 and revoked_at is null", id, now)
        .execute(&mut *transaction)
        .await?;
    audit::commit(transaction, &done, act).await
}
