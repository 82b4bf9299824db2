//! SQL of accepted differences.

use serde_json::json;
use sqlx::SqlitePool;

use super::model::{AcceptedDifference, NewDifference};
use crate::auth::audit::{self, AuditEvent};

/// A row of `accepted_difference`.
struct Row {
    id: i64,
    one: String,
    other: String,
    scenario: Option<String>,
    facts: String,
    note: String,
    accepted_by: String,
    accepted_at: i64,
}

impl TryFrom<Row> for AcceptedDifference {
    type Error = sqlx::Error;

    fn try_from(row: Row) -> sqlx::Result<Self> {
        let Row { id, one, other, scenario, facts, note, accepted_by, accepted_at } = row;
        Ok(Self {
            id,
            targets: [one, other],
            scenario,
            facts: serde_json::from_str(&facts).map_err(|fault| sqlx::Error::Decode(fault.into()))?,
            note,
            accepted_by,
            accepted_at_ms: accepted_at,
        })
    }
}

/// Returns all accepted differences, newest first.
pub async fn all(pool: &SqlitePool) -> sqlx::Result<Vec<AcceptedDifference>> {
    let rows = sqlx::query_as!(
        Row,
        "select id, one, other, scenario, facts, note, accepted_by, accepted_at from accepted_difference order by id desc"
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(AcceptedDifference::try_from).collect()
}

/// Returns those between any two of these targets.
pub async fn between(pool: &SqlitePool, targets: &[&str]) -> sqlx::Result<Vec<AcceptedDifference>> {
    let targets = serde_json::to_string(targets).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    let rows = sqlx::query_as!(
        Row,
        "select id, one, other, scenario, facts, note, accepted_by, accepted_at from accepted_difference
         where one in (select value from json_each(?1)) and other in (select value from json_each(?1)) order by id desc",
        targets
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(AcceptedDifference::try_from).collect()
}

/// Returns the one with this id.
pub async fn find(pool: &SqlitePool, id: i64) -> sqlx::Result<Option<AcceptedDifference>> {
    let row = sqlx::query_as!(
        Row,
        "select id, one, other, scenario, facts, note, accepted_by, accepted_at from accepted_difference where id = ?",
        id
    )
    .fetch_optional(pool)
    .await?;
    row.map(AcceptedDifference::try_from).transpose()
}

/// Stores one and returns its id.
pub async fn accept(pool: &SqlitePool, new: &NewDifference, now: i64, act: AuditEvent) -> sqlx::Result<i64> {
    let mut transaction = pool.begin().await?;
    let NewDifference { targets: [one, other], scenario, facts, note } = new;
    let facts = serde_json::to_string(facts).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    let done = sqlx::query!(
        "insert into accepted_difference (one, other, scenario, facts, note, accepted_by, accepted_at)
         values (?, ?, ?, ?, ?, ?, ?)",
        one,
        other,
        scenario,
        facts,
        note,
        act.actor,
        now
    )
    .execute(&mut *transaction)
    .await?;
    let id = done.last_insert_rowid();
    audit::record(
        &mut transaction,
        &act.with(json!({"id": id, "scenario": scenario, "facts": new.facts, "note": note})),
    )
    .await?;
    transaction.commit().await?;
    Ok(id)
}

/// Removes one. Returns false if there is none with that id.
pub async fn revoke(pool: &SqlitePool, id: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from accepted_difference where id = ?", id).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}
