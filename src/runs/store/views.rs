//! SQL of saved views.

use sqlx::SqlitePool;

use crate::{
    auth::audit::{self, AuditEvent},
    runs::view::SavedView,
};

/// Returns all saved views, by name.
pub async fn views(pool: &SqlitePool) -> sqlx::Result<Vec<SavedView>> {
    sqlx::query_as!(
        SavedView,
        "select name, query, created_by, created_at as created_at_ms from saved_view order by name"
    )
    .fetch_all(pool)
    .await
}

/// Saves a view; false if another view already has the name.
pub async fn save_view(pool: &SqlitePool, view: &SavedView) -> sqlx::Result<bool> {
    let SavedView { name, query, created_by, created_at_ms } = view;
    let mut transaction = pool.begin().await?;
    let result = sqlx::query!(
        "insert into saved_view (name, query, created_by, created_at) values (?, ?, ?, ?) on conflict do nothing",
        name,
        query,
        created_by,
        created_at_ms
    )
    .execute(&mut *transaction)
    .await?;
    let same = sqlx::query!("select name from saved_view where name = ? and query = ?", name, query)
        .fetch_optional(&mut *transaction)
        .await?;
    if result.rows_affected() > 0 {
        transaction.commit().await?;
    }
    Ok(same.is_some())
}

/// Removes a view; false if there is none with this name.
pub async fn remove_view(pool: &SqlitePool, name: &str, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let result = sqlx::query!("delete from saved_view where name = ?", name).execute(&mut *transaction).await?;
    if result.rows_affected() == 0 {
        return Ok(false);
    }
    audit::note(&mut transaction, act).await?;
    transaction.commit().await?;
    Ok(true)
}
