//! SQL of uploaded files that are previewed before they are imported.

use brewbench_wire::reports::archive::ArchivedFile;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::{app::db::decode, results::blob};

/// How long they are kept, milliseconds: a day.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// Stores files and returns the upload's id. Replaces older uploads of the same person, and those that are too old.
pub async fn insert(pool: &SqlitePool, files: &[ArchivedFile], by: &str, now: i64) -> sqlx::Result<String> {
    let id = Uuid::now_v7().to_string();
    let oldest = now - KEPT_MS;
    let mut transaction = pool.begin().await?;
    sqlx::query!("delete from upload where created_at < ? or created_by = ?", oldest, by)
        .execute(&mut *transaction)
        .await?;
    sqlx::query!("insert into upload (id, created_by, created_at) values (?, ?, ?)", id, by, now)
        .execute(&mut *transaction)
        .await?;
    for (place, ArchivedFile { path, bytes }) in (0_i64..).zip(files) {
        let body = blob::pack(bytes);
        sqlx::query!(
            "insert into upload_file (upload_id, place, name, body) values (?, ?, ?, ?)",
            id,
            place,
            path,
            body
        )
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await?;
    Ok(id)
}

/// Returns the files of a person's upload; none if it was imported or replaced.
pub async fn files(pool: &SqlitePool, id: &str, by: &str) -> sqlx::Result<Vec<ArchivedFile>> {
    let rows = sqlx::query!(
        "select name, body from upload_file join upload on id = upload_id where id = ? and created_by = ? order by place",
        id,
        by
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| Ok(ArchivedFile { path: row.name, bytes: blob::unpack(&row.body).map_err(decode)? }))
        .collect()
}

/// Removes an upload.
pub async fn remove(pool: &SqlitePool, id: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from upload where id = ?", id).execute(pool).await.map(drop)
}
