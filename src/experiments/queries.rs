//! SQL of experiments.

use sqlx::{SqliteConnection, SqlitePool};

use super::Experiment;

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

/// Stores an experiment.
pub async fn insert(connection: &mut SqliteConnection, experiment: &Experiment) -> sqlx::Result<()> {
    // Labels and notes come later.
    let Experiment { id, name, plan, created_by, created_at_ms, labels: _, note: _ } = experiment;
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

/// A row of `experiment`.
struct ExperimentRow {
    id: String,
    name: String,
    plan: String,
    created_by: String,
    created_at: i64,
    labels: String,
    note: Option<String>,
}

impl TryFrom<ExperimentRow> for Experiment {
    type Error = sqlx::Error;

    fn try_from(row: ExperimentRow) -> sqlx::Result<Self> {
        let ExperimentRow { id, name, plan, created_by, created_at, labels, note } = row;
        Ok(Self {
            id,
            name,
            plan: serde_json::from_str(&plan).map_err(decode)?,
            created_by,
            created_at_ms: created_at,
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
        })
    }
}

/// One experiment.
pub async fn one(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<Experiment>> {
    let row = sqlx::query_as!(
        ExperimentRow,
        "select id, name, plan, created_by, created_at, labels, note from experiment where id = ?",
        id
    )
    .fetch_optional(pool)
    .await?;
    row.map(Experiment::try_from).transpose()
}

/// Experiments, newest first, at most `limit`; only those submitted before this one, if one is named, and only those
/// with a label, if one is named.
pub async fn list(
    pool: &SqlitePool,
    before: Option<&str>,
    label: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Experiment>> {
    // Ids are version 7 UUIDs: they sort by the time of submission.
    let rows = sqlx::query_as!(
        ExperimentRow,
        "select id, name, plan, created_by, created_at, labels, note from experiment
         where (?1 is null or id < ?1) and (?2 is null or ?2 in (select value from json_each(labels)))
         order by id desc limit ?3",
        before,
        label,
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(Experiment::try_from).collect()
}

/// Gives an experiment a label; one that it has stays.
pub async fn add_label(pool: &SqlitePool, id: &str, label: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update experiment set labels =
             (select json_group_array(value) from (select value from json_each(labels) union select ?2 order by 1))
         where id = ?1",
        id,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes a label from an experiment.
pub async fn remove_label(pool: &SqlitePool, id: &str, label: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update experiment set labels =
             (select json_group_array(value) from (select value from json_each(labels) where value <> ?2 order by 1))
         where id = ?1",
        id,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Takes the place of an experiment's note; none leaves it without one.
pub async fn set_note(pool: &SqlitePool, id: &str, note: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!("update experiment set note = ?2 where id = ?1", id, note).execute(pool).await?;
    Ok(())
}
