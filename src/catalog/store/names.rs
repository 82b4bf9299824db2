//! SQL of target names: known, look-alike and unused names.

use std::collections::{BTreeSet, HashMap};

use brewbench_wire::name::appearances;
use sqlx::{SqliteConnection, SqlitePool};

use crate::auth::audit::{self, AuditEvent};

/// Returns why new targets can't have these names: one looks like another. Known names are accepted.
pub async fn target_fault(
    connection: &mut SqliteConnection,
    names: impl Iterator<Item = &str>,
) -> sqlx::Result<Option<String>> {
    let requested: BTreeSet<&str> = names.collect();
    let list = serde_json::to_string(&requested).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    let existing =
        sqlx::query_scalar!("select name from target_colour where name in (select value from json_each(?))", list)
            .fetch_all(&mut *connection)
            .await?;
    let new: Vec<&str> = requested.into_iter().filter(|name| !existing.iter().any(|known| known == name)).collect();
    if new.is_empty() {
        return Ok(None);
    }
    let known = sqlx::query_scalar!("select name from target_colour").fetch_all(connection).await?;
    Ok(confusable(&new, &known))
}

/// Finds a new name that looks like another new or known one. A name may have become known since `new` was read.
fn confusable(new: &[&str], known: &[String]) -> Option<String> {
    let keys = |name: &str| appearances(name).into_iter().enumerate();
    let mut shapes: HashMap<(usize, String), &str> =
        known.iter().flat_map(|name| keys(name).map(|key| (key, name.as_str()))).collect();
    new.iter().find_map(|name| {
        let alike = keys(name).filter_map(|key| shapes.insert(key, name).filter(|other| other != name));
        let other = alike.collect::<Vec<_>>().into_iter().next()?;
        Some(format!("{name:?} looks like {other:?}; choose another name"))
    })
}

/// Returns at most `limit` names of targets that were offered or run, after a name.
pub async fn after(pool: &SqlitePool, after: &str, limit: i64) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!("select name from target_colour where name > ? order by name limit ?", after, limit)
        .fetch_all(pool)
        .await
}

/// Whether a target was ever offered or run.
pub async fn is_known(pool: &SqlitePool, name: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!("select name from target_colour where name = ?", name).fetch_optional(pool).await?;
    Ok(row.is_some())
}

/// Whether any run uses a target, whatever its phase.
pub async fn has_runs(pool: &SqlitePool, name: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!("select id from run where target = ? limit 1", name).fetch_optional(pool).await?;
    Ok(row.is_some())
}

/// Returns the names of targets that no run uses, in order.
pub async fn unused(pool: &SqlitePool) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select name from target_colour where not exists (select 1 from run where run.target = target_colour.name)
         order by name"
    )
    .fetch_all(pool)
    .await
}

/// Removes targets that no run uses, each with an audit entry. Returns the removed names.
pub async fn remove(
    pool: &SqlitePool,
    names: &[String],
    act: impl Fn(&str) -> AuditEvent,
) -> sqlx::Result<Vec<String>> {
    let mut transaction = pool.begin().await?;
    let mut removed = Vec::new();
    for name in names {
        let deleted = sqlx::query!(
            "delete from target_colour where name = ?1 and not exists (select 1 from run where run.target = ?1)",
            name
        )
        .execute(&mut *transaction)
        .await?;
        if deleted.rows_affected() > 0 {
            sqlx::query!("delete from target where name = ?", name).execute(&mut *transaction).await?;
            audit::record(&mut transaction, &act(name)).await?;
            removed.push(name.clone());
        }
    }
    transaction.commit().await?;
    Ok(removed)
}

/// Removes the names of targets that are neither offered nor used by a run.
pub async fn forget_colours(connection: &mut SqliteConnection) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from target_colour
         where not exists (select 1 from target where target.name = target_colour.name)
             and not exists (select 1 from run where run.target = target_colour.name)"
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_has_just_become_known_is_not_confusable_with_itself() {
        let known = ["server1".to_owned()];
        assert_eq!(confusable(&["server1", "other"], &known), None);
        let fault = confusable(&["serverl"], &known).expect("a fault");
        assert_eq!(fault, r#""serverl" looks like "server1"; choose another name"#);
        assert!(confusable(&["serverl", "server1"], &[]).is_some());
    }
}
