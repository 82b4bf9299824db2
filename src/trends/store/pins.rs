//! SQL of pinned trends.

use sqlx::SqlitePool;

/// A stored pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPin {
    /// Name of the target.
    pub target: String,
    /// The id of the cell.
    pub cell: String,
    /// Describes the cell.
    pub setting: String,
    /// When it was pinned, unix ms.
    pub pinned_at_ms: i64,
}

/// Returns the pins of a user, the oldest first.
pub async fn of_user(pool: &SqlitePool, user: &str) -> sqlx::Result<Vec<StoredPin>> {
    sqlx::query_as!(
        StoredPin,
        "select target, cell, setting, pinned_at as pinned_at_ms from trend_pin where user_id = ?
         order by pinned_at, target, cell",
        user
    )
    .fetch_all(pool)
    .await
}

/// Whether a user has pinned a cell.
pub async fn has(pool: &SqlitePool, user: &str, target: &str, cell: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        "select pinned_at from trend_pin where user_id = ? and target = ? and cell = ?",
        user,
        target,
        cell
    );
    Ok(row.fetch_optional(pool).await?.is_some())
}

/// Pins a cell. Returns false if the user already has `limit` other pins.
pub async fn add(pool: &SqlitePool, user: &str, pin: &StoredPin, limit: i64) -> sqlx::Result<bool> {
    let StoredPin { target, cell, setting, pinned_at_ms } = pin;
    let done = sqlx::query!(
        "insert into trend_pin (user_id, target, cell, setting, pinned_at)
         select ?1, ?2, ?3, ?4, ?5
         where (select count(*) from trend_pin where user_id = ?1 and not (target = ?2 and cell = ?3)) < ?6
         on conflict do update set setting = excluded.setting",
        user,
        target,
        cell,
        setting,
        pinned_at_ms,
        limit
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Removes a pin. Returns false if there is none.
pub async fn remove(pool: &SqlitePool, user: &str, target: &str, cell: &str) -> sqlx::Result<bool> {
    let done = sqlx::query!("delete from trend_pin where user_id = ? and target = ? and cell = ?", user, target, cell)
        .execute(pool)
        .await?;
    Ok(done.rows_affected() > 0)
}
