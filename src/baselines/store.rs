//! SQL of baselines.

use serde_json::json;
use sqlx::SqlitePool;

use crate::{
    app::ids::RunId,
    auth::audit::{self, AuditEvent},
    baselines::model::Baseline,
};

/// A row of `baseline` with its runs as JSON.
struct BaselineRow {
    name: String,
    set_by: String,
    set_at: i64,
    runs: String,
    gone: String,
}

impl TryFrom<BaselineRow> for Baseline {
    type Error = sqlx::Error;

    fn try_from(row: BaselineRow) -> sqlx::Result<Self> {
        let BaselineRow { name, set_by, set_at, runs, gone } = row;
        let ids = |text: &str| -> sqlx::Result<Vec<RunId>> {
            serde_json::from_str(text).map_err(|fault| sqlx::Error::Decode(fault.into()))
        };
        Ok(Self { name, runs: ids(&runs)?, gone: ids(&gone)?, set_by, set_at_ms: set_at })
    }
}

/// Returns all baselines or the one with a name, sorted by name.
async fn read(pool: &SqlitePool, name: Option<&str>) -> sqlx::Result<Vec<Baseline>> {
    let rows = sqlx::query_as!(
        BaselineRow,
        r#"select name, set_by, set_at,
               (select json_group_array(run_id) from (
                    select run_id from baseline_run join run on run.id = run_id and run.deleted_at is null
                    where baseline = name order by place)) as "runs!: String",
               (select json_group_array(run_id) from (
                    select run_id from baseline_run left join run on run.id = run_id and run.deleted_at is null
                    where baseline = name and run.id is null order by place)) as "gone!: String"
           from baseline where ?1 is null or name = ?1 order by name"#,
        name
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(Baseline::try_from).collect()
}

/// Returns all baselines, sorted by name.
pub async fn all(pool: &SqlitePool) -> sqlx::Result<Vec<Baseline>> {
    read(pool, None).await
}

/// Returns the baseline with this name.
pub async fn find(pool: &SqlitePool, name: &str) -> sqlx::Result<Option<Baseline>> {
    Ok(read(pool, Some(name)).await?.pop())
}

/// Creates a baseline or replaces its runs.
pub async fn set(pool: &SqlitePool, name: &str, runs: &[RunId], now: i64, act: AuditEvent) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert into baseline (name, set_by, set_at) values (?1, ?2, ?3)
         on conflict do update set set_by = excluded.set_by, set_at = excluded.set_at",
        name,
        act.actor,
        now
    )
    .execute(&mut *transaction)
    .await?;
    let before = sqlx::query!("delete from baseline_run where baseline = ?", name).execute(&mut *transaction).await?;
    for (place, run) in (0_i64..).zip(runs) {
        sqlx::query!("insert into baseline_run (baseline, place, run_id) values (?, ?, ?)", name, place, run)
            .execute(&mut *transaction)
            .await?;
    }
    let instead_of = Some(before.rows_affected()).filter(|before| *before > 0);
    let act = act.with(json!({"runs": runs.len(), "instead_of": instead_of}));
    audit::record(&mut transaction, &act).await?;
    transaction.commit().await
}

/// Removes a baseline. Returns false if there is none with that name.
pub async fn remove(pool: &SqlitePool, name: &str, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from baseline where name = ?", name).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}
