//! SQL of experiments.

use sqlx::{SqliteConnection, SqlitePool};

use super::Experiment;

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

/// Stores an experiment.
pub async fn insert(connection: &mut SqliteConnection, experiment: &Experiment) -> sqlx::Result<()> {
    let Experiment { id, name, plan, created_by, created_at_ms } = experiment;
    let plan = serde_json::to_string(plan).map_err(decode)?;
    sqlx::query!(
        "insert into experiment (id, name, plan, created_by, created_at) values (?, ?, ?, ?, ?)",
        id,
        name,
        plan,
        created_by,
        created_at_ms
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// One experiment.
pub async fn one(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Experiment>> {
    let row = sqlx::query!("select id, name, plan, created_by, created_at from experiment where id = ?", id)
        .fetch_optional(pool)
        .await?;
    row.map(|row| {
        Ok(Experiment {
            id: row.id,
            name: row.name,
            plan: serde_json::from_str(&row.plan).map_err(decode)?,
            created_by: row.created_by,
            created_at_ms: row.created_at,
        })
    })
    .transpose()
}

/// Experiments, newest first, at most `limit`; only those submitted before this one, if one is named.
pub async fn list(pool: &SqlitePool, before: Option<&str>, limit: i64) -> sqlx::Result<Vec<Experiment>> {
    // Ids are version 7 UUIDs: they sort by the time of submission.
    let rows = sqlx::query!(
        "select id, name, plan, created_by, created_at from experiment where ?1 is null or id < ?1
         order by id desc limit ?2",
        before,
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Experiment {
                id: row.id,
                name: row.name,
                plan: serde_json::from_str(&row.plan).map_err(decode)?,
                created_by: row.created_by,
                created_at_ms: row.created_at,
            })
        })
        .collect()
}
