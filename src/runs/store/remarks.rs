//! SQL of labels and notes.

use sqlx::SqlitePool;

use crate::app::{db::decode, ids::RunId};

/// Adds a label to runs; runs that already have it stay unchanged.
pub async fn add_label(pool: &SqlitePool, ids: &[RunId], label: &str) -> sqlx::Result<()> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    sqlx::query!(
        "insert into run_label (label, run_seq)
         select ?2, seq from run where id in (select value from json_each(?1)) and deleted_at is null
         on conflict do nothing",
        ids,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Removes a label from runs.
pub async fn remove_label(pool: &SqlitePool, ids: &[RunId], label: &str) -> sqlx::Result<()> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    sqlx::query!(
        "delete from run_label where label = ?2
           and run_seq in (select seq from run where id in (select value from json_each(?1)) and deleted_at is null)",
        ids,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Sets or removes the note of a run.
pub async fn set_note(pool: &SqlitePool, id: &RunId, note: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!("update run set note = ?2 where id = ?1 and deleted_at is null", id, note).execute(pool).await?;
    Ok(())
}
