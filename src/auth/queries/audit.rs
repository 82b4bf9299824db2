//! SQL of the audit log.

use brewbench_agent::wire::now_ms;
use sqlx::{SqliteConnection, SqlitePool};

use crate::auth::audit::{Act, Entry, Range};

/// Writes an act down; to be called in the transaction that does it.
pub async fn note(connection: &mut SqliteConnection, act: &Act) -> sqlx::Result<()> {
    let Act { who, address, what, object, detail } = act;
    let (now, what, detail) = (now_ms(), what.as_str(), detail.to_string());
    let address = address.map(|address| address.to_string());
    sqlx::query!(
        "insert into audit (at, who, what, object, detail, address) values (?, ?, ?, ?, ?, ?)",
        now,
        who,
        what,
        object,
        detail,
        address
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Entries, the newest first.
pub async fn entries(pool: &SqlitePool, range: &Range) -> sqlx::Result<Vec<Entry>> {
    let Range { who, what, from_ms, until_ms, before, limit } = range;
    let rows = sqlx::query!(
        "select id, at, who, what, object, detail, address from audit
         where id < ?1 and (?2 is null or who = ?2) and (?3 is null or what = ?3) and at >= ?4 and at < ?5
         order by id desc limit ?6",
        before,
        who,
        what,
        from_ms,
        until_ms,
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let detail = serde_json::from_str(&row.detail).map_err(|fault| sqlx::Error::Decode(fault.into()))?;
            let (at_ms, who, what, object, address) = (row.at, row.who, row.what, row.object, row.address);
            Ok(Entry { id: row.id, at_ms, who, what, object, detail, address })
        })
        .collect()
}
