//! SQL of the audit log.

use brewbench_wire::now_ms;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection, SqlitePool, Transaction, sqlite::SqliteQueryResult};

use crate::auth::audit::{AuditEvent, Entry, Range};

/// Writes an entry. Must be called in the transaction of the action.
pub async fn record(connection: &mut SqliteConnection, act: &AuditEvent) -> sqlx::Result<()> {
    let AuditEvent { actor, address, action, object, detail } = act;
    let (now, action, detail) = (now_ms(), action.as_str(), detail.to_string());
    let address = address.map(|address| address.to_string());
    sqlx::query!(
        "insert into audit (at, actor, action, object, detail, address) values (?, ?, ?, ?, ?, ?)",
        now,
        actor,
        action,
        object,
        detail,
        address
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes several entries in a transaction of their own.
pub async fn note_all(pool: &SqlitePool, acts: &[AuditEvent]) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    for act in acts {
        record(&mut transaction, act).await?;
    }
    transaction.commit().await
}

/// Returns the addresses of logins since a time, unix ms, latest last.
pub async fn login_addresses(pool: &SqlitePool, since_ms: i64, limit: usize) -> sqlx::Result<Vec<String>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = sqlx::query!(
        r#"select address as "address!" from audit
           where action in ('logged in', 'registered', 'access recovered') and at >= ? and address is not null
           group by address order by max(at) desc limit ?"#,
        since_ms,
        limit
    );
    let rows = rows.fetch_all(pool).await?;
    Ok(rows.into_iter().rev().map(|row| row.address).collect())
}

/// Commits a change with its entry; false, and nothing is written, if the change affected no rows.
pub async fn commit(
    mut transaction: Transaction<'_, Sqlite>,
    result: &SqliteQueryResult,
    act: &AuditEvent,
) -> sqlx::Result<bool> {
    if result.rows_affected() == 0 {
        return Ok(false);
    }
    record(&mut transaction, act).await?;
    transaction.commit().await?;
    Ok(true)
}

/// Removes entries older than a time, unix ms, in batches, so that other writers can interleave. Returns their number.
pub async fn prune(pool: &SqlitePool, before_ms: i64) -> sqlx::Result<u64> {
    const BATCH: u64 = 5_000;
    let mut pruned = 0;
    loop {
        let batch = sqlx::query!(
            "delete from audit where id in (select id from audit where at < ? order by at limit 5000)",
            before_ms
        );
        let removed = batch.execute(pool).await?.rows_affected();
        pruned += removed;
        if removed < BATCH {
            return Ok(pruned);
        }
    }
}

/// Returns the time and id before which a page begins. A pruned entry was older than all others.
async fn cursor(pool: &SqlitePool, after: i64) -> sqlx::Result<(i64, i64)> {
    if after == i64::MAX {
        return Ok((i64::MAX, i64::MAX));
    }
    let row = sqlx::query!("select at from audit where id = ?", after).fetch_optional(pool).await?;
    Ok(row.map_or((i64::MIN, i64::MIN), |row| (row.at, after)))
}

/// Builds the query with only the filters in use, so that each has an index that also provides the order.
fn select(verb: &str, range: &Range, (at, id): (i64, i64)) -> QueryBuilder<Sqlite> {
    let Range { actor, action, from_ms, until_ms, after: _, limit } = range;
    let mut sql = QueryBuilder::new(verb);
    sql.push(" id, at, actor, action, object, detail, address from audit where at >= ").push_bind(from_ms);
    sql.push(" and at < ").push_bind(until_ms);
    sql.push(" and (at, id) < (").push_bind(at).push(", ").push_bind(id).push(")");
    if let Some(actor) = actor {
        sql.push(" and actor = ").push_bind(actor);
    }
    if let Some(action) = action {
        sql.push(" and action = ").push_bind(action);
    }
    sql.push(" order by at desc, id desc limit ").push_bind(limit);
    sql
}

/// Returns entries, newest first.
pub async fn entries(pool: &SqlitePool, range: &Range) -> sqlx::Result<Vec<Entry>> {
    let cursor = cursor(pool, range.after).await?;
    let rows = select("select", range, cursor).build().fetch_all(pool).await?;
    rows.iter()
        .map(|row| {
            let detail =
                serde_json::from_str(row.try_get("detail")?).map_err(|fault| sqlx::Error::Decode(fault.into()))?;
            Ok(Entry {
                id: row.try_get("id")?,
                at_ms: row.try_get("at")?,
                actor: row.try_get("actor")?,
                action: row.try_get("action")?,
                object: row.try_get("object")?,
                detail,
                address: row.try_get("address")?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{app::db, auth::audit::action::Action};

    fn everything() -> Range {
        Range { actor: None, action: None, from_ms: i64::MIN, until_ms: i64::MAX, after: i64::MAX, limit: 100 }
    }

    #[tokio::test]
    async fn every_filter_reads_an_index_that_has_the_order() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = db::open(folder.path()).await.expect("a database");
        let (actor, action) = (Some("ada".to_owned()), Some("logged in".to_owned()));
        let cases = [
            (everything(), "audit_at"),
            (Range { from_ms: 5, until_ms: 9, ..everything() }, "audit_at"),
            (Range { actor: actor.clone(), ..everything() }, "audit_actor"),
            (Range { action: action.clone(), from_ms: 5, ..everything() }, "audit_action"),
            (Range { actor, action, ..everything() }, "audit_ac"),
        ];
        for (range, index) in cases {
            let mut sql = select("explain query plan select", &range, (9, 9));
            let rows = sql.build().fetch_all(&db.read).await.expect("a plan");
            let plan: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
            let [search] = plan.as_slice() else { panic!("the plan sorts: {plan:?}") };
            assert!(search.starts_with(&format!("SEARCH audit USING INDEX {index}")), "{search}");
        }
    }

    #[tokio::test]
    async fn pruning_removes_old_entries_and_paging_continues() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = db::open(folder.path()).await.expect("a database");
        let mut connection = db.write.acquire().await.expect("a connection");
        for object in 0..10_003 {
            let act = AuditEvent::by_owner(Action::TokenMade, &object.to_string()).with(json!({}));
            record(&mut connection, &act).await.expect("an entry");
        }
        sqlx::query("update audit set at = id").execute(&mut *connection).await.expect("times");
        drop(connection);
        assert_eq!(prune(&db.write, 10_001).await.expect("pruned"), 10_000);
        let left = entries(&db.read, &everything()).await.expect("entries");
        assert_eq!(left.iter().map(|entry| entry.id).collect::<Vec<_>>(), [10_003, 10_002, 10_001]);
        let next = entries(&db.read, &Range { after: 10_002, ..everything() }).await.expect("entries");
        assert_eq!(next.len(), 1);
        assert!(entries(&db.read, &Range { after: 5_000, ..everything() }).await.expect("entries").is_empty());
    }
}
