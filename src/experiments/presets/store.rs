//! SQL of saved presets.

use sqlx::SqlitePool;

use crate::{
    auth::audit::{self, AuditEvent},
    experiments::presets::model::Preset,
};

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

/// A preset and the user who may change it.
#[derive(Clone, Debug)]
pub struct Stored {
    /// The preset.
    pub preset: Preset,
    /// Id of the user who created it; none if that user was removed.
    pub user_id: Option<String>,
}

/// Returns all presets or the one with a name, sorted by name.
async fn read(pool: &SqlitePool, name: Option<&str>) -> sqlx::Result<Vec<Stored>> {
    let rows = sqlx::query!(
        "select name, plan, created_by, user_id, saved_at from preset where ?1 is null or name = ?1 order by name",
        name
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let plan = serde_json::from_str(&row.plan).map_err(decode)?;
            let preset = Preset { name: row.name, plan, created_by: row.created_by, saved_at_ms: row.saved_at };
            Ok(Stored { preset, user_id: row.user_id })
        })
        .collect()
}

/// Returns all presets, sorted by name.
pub async fn all(pool: &SqlitePool) -> sqlx::Result<Vec<Stored>> {
    read(pool, None).await
}

/// Returns the preset with this name.
pub async fn one(pool: &SqlitePool, name: &str) -> sqlx::Result<Option<Stored>> {
    Ok(read(pool, Some(name)).await?.pop())
}

/// Saves a preset. Returns false if another one has the name and `replaces` is false.
pub async fn save(pool: &SqlitePool, stored: &Stored, replaces: bool, act: &AuditEvent) -> sqlx::Result<bool> {
    let Stored { preset: Preset { name, plan, created_by, saved_at_ms }, user_id } = stored;
    let plan = serde_json::to_string(plan).map_err(decode)?;
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "insert into preset (name, plan, created_by, user_id, saved_at) values (?1, ?2, ?3, ?4, ?5)
         on conflict do update set plan = excluded.plan, saved_at = excluded.saved_at
             where ?6 and user_id is excluded.user_id",
        name,
        plan,
        created_by,
        user_id,
        saved_at_ms,
        replaces
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// Deletes a preset. Returns false if there is none with this name.
pub async fn delete(pool: &SqlitePool, name: &str, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from preset where name = ?", name).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}
