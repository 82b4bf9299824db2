//! SQL of maintenance: copy and check the database, count its contents, and store the retention rule.

use sqlx::{Row, SqlitePool};

use crate::{
    auth::audit::{self, AuditEvent, action::Action},
    maintenance::retention::{Reduction, RetentionRule},
};

/// How many blobs are read at once.
const BATCH: i64 = 200;

/// Writes an audit entry for an operation on the database itself.
pub async fn record(pool: &SqlitePool, act: &AuditEvent) -> sqlx::Result<()> {
    let mut connection = pool.acquire().await?;
    audit::record(&mut connection, act).await
}

/// A backup, as recorded in the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Unix ms.
    pub at_ms: i64,
    /// Who made it.
    pub actor: String,
    /// Its length; none if the log does not have it.
    pub bytes: Option<i64>,
}

/// Returns the last backup in the audit log, which covers one year.
pub async fn last_backup(pool: &SqlitePool) -> sqlx::Result<Option<Backup>> {
    let what = Action::BackupMade.as_str();
    sqlx::query_as!(
        Backup,
        r#"select at as at_ms, actor, detail ->> '$.bytes' as "bytes?: i64" from audit where action = ?
           order by at desc, id desc limit 1"#,
        what
    )
    .fetch_optional(pool)
    .await
}

/// Moves the contents of the write-ahead log into the database file.
pub async fn checkpoint(pool: &SqlitePool) -> sqlx::Result<()> {
    sqlx::query("pragma wal_checkpoint(truncate)").execute(pool).await?;
    Ok(())
}

/// Takes and releases the write lock.
pub async fn can_write(pool: &SqlitePool) -> sqlx::Result<()> {
    pool.begin_with("begin immediate").await?.rollback().await
}

/// Runs SQLite's own integrity check and returns up to 100 problems.
pub async fn damage(pool: &SqlitePool) -> sqlx::Result<Vec<String>> {
    let lines: Vec<String> = sqlx::query_scalar("pragma integrity_check(100)").fetch_all(pool).await?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

/// Checks the structure of the database, but not that indexes agree with tables. Returns the first problem.
pub async fn quick_damage(pool: &SqlitePool) -> sqlx::Result<Option<String>> {
    let line: String = sqlx::query_scalar("pragma quick_check(1)").fetch_one(pool).await?;
    Ok(Some(line).filter(|line| line != "ok"))
}

/// Returns the newest applied migration; none if this is not a brewbench database.
pub async fn migration(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    let tables = "select count(*) from sqlite_master where type = 'table' and name in ('_sqlx_migrations', 'run')";
    if sqlx::query_scalar::<_, i64>(tables).fetch_one(pool).await? < 2 {
        return Ok(None);
    }
    sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(pool).await
}

/// Counts all runs.
pub async fn runs(pool: &SqlitePool) -> sqlx::Result<i64> {
    sqlx::query_scalar("select count(*) from run").fetch_one(pool).await
}

/// Rows of a table that refer to missing rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphans {
    /// The table.
    pub table: String,
    /// The table whose rows are missing.
    pub parent: String,
    /// Number of rows.
    pub rows: i64,
}

/// Counts the rows whose foreign keys refer to missing rows.
pub async fn orphans(pool: &SqlitePool) -> sqlx::Result<Vec<Orphans>> {
    let query = r#"select "table", parent, count(*) from pragma_foreign_key_check group by 1, 2 order by 1, 2"#;
    let rows = sqlx::query(query).fetch_all(pool).await?;
    rows.iter()
        .map(|row| Ok(Orphans { table: row.try_get(0)?, parent: row.try_get(1)?, rows: row.try_get(2)? }))
        .collect()
}

/// Counts finished runs without a summary.
pub async fn without_summary(pool: &SqlitePool) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "select count(*) from run where phase = 'finished'
           and not exists (select 1 from run_summary where run_id = run.id)",
    )
    .fetch_one(pool)
    .await
}

/// Counts finished runs of agents without evidence.
pub async fn without_evidence(pool: &SqlitePool) -> sqlx::Result<i64> {
    sqlx::query_scalar(
        "select count(*) from run where phase = 'finished' and origin = 'agent'
           and not exists (select 1 from run_evidence where run_id = run.id)",
    )
    .fetch_one(pool)
    .await
}

/// The kinds of compressed data stored for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blobs {
    /// Raw summaries of load generators.
    Summaries,
    /// Evidence from agents.
    Evidence,
    /// Time series.
    Series,
    /// Profiles, each as `run#kind`.
    Profiles,
    /// Outcomes of the participants of distributed runs.
    Parts,
    /// Summaries of the participants.
    PartSummaries,
    /// Time series of the participants.
    PartSeries,
}

impl Blobs {
    /// All kinds, in the order in which they are checked.
    pub const ALL: [Self; 7] = [
        Self::Summaries,
        Self::Evidence,
        Self::Series,
        Self::Profiles,
        Self::Parts,
        Self::PartSummaries,
        Self::PartSeries,
    ];

    /// The name for sentences.
    pub fn word(self) -> &'static str {
        match self {
            Self::Summaries => "summary",
            Self::Evidence => "evidence",
            Self::Series => "series",
            Self::Profiles => "profile",
            Self::Parts => "part",
            Self::PartSummaries => "summary of a part",
            Self::PartSeries => "series of a part",
        }
    }

    fn batch_sql(self) -> &'static str {
        match self {
            Self::Summaries => "select run_id, body from run_summary where run_id > ? order by run_id limit ?",
            Self::Evidence => "select run_id, body from run_evidence where run_id > ? order by run_id limit ?",
            Self::Series => "select run_id, body from run_series where run_id > ? order by run_id limit ?",
            Self::Profiles => {
                "select run_id || '#' || kind, body from profile
                 where run_id || '#' || kind > ? and body is not null order by 1 limit ?"
            }
            Self::Parts => {
                "select run_id || '#' || place, outcome from run_part
                 where run_id || '#' || place > ? and outcome is not null order by 1 limit ?"
            }
            Self::PartSummaries => {
                "select run_id || '#' || place, summary from run_part
                 where run_id || '#' || place > ? and summary is not null order by 1 limit ?"
            }
            Self::PartSeries => {
                "select run_id || '#' || place, series from run_part
                 where run_id || '#' || place > ? and series is not null order by 1 limit ?"
            }
        }
    }

    /// The table of this kind, which older databases may lack.
    fn table(self) -> &'static str {
        match self {
            Self::Summaries => "run_summary",
            Self::Evidence => "run_evidence",
            Self::Series => "run_series",
            Self::Profiles => "profile",
            Self::Parts | Self::PartSummaries | Self::PartSeries => "run_part",
        }
    }
}

/// Returns the next blobs of a kind after a run (or a part, as `run#place`), each with its run.
/// Returns none if the database is older than the kind.
pub async fn blobs(pool: &SqlitePool, kind: Blobs, after: &str) -> sqlx::Result<Vec<(String, Vec<u8>)>> {
    let table = sqlx::query_scalar("select count(*) from sqlite_master where name = ?").bind(kind.table());
    if table.fetch_one(pool).await.map(|count: i64| count == 0)? {
        return Ok(Vec::new());
    }
    sqlx::query_as(kind.batch_sql()).bind(after).bind(BATCH).fetch_all(pool).await
}

/// Returns the version of SQLite.
pub async fn sqlite_version(pool: &SqlitePool) -> sqlx::Result<String> {
    Ok(sqlx::query!(r#"select sqlite_version() as "version!: String""#).fetch_one(pool).await?.version)
}

/// Counts runs by phase. Only unfinished and failed runs have indexes; finished runs are the rest of all runs.
pub async fn phases(pool: &SqlitePool) -> sqlx::Result<Vec<(String, i64)>> {
    let mut phases: Vec<(String, i64)> = sqlx::query_as(
        "select phase, count(*) from run where phase not in ('finished', 'failed', 'cancelled', 'lost') group by phase
         union all
         select phase, count(*) from run where phase = 'failed' or phase = 'lost' or phase = 'cancelled' group by phase",
    )
    .fetch_all(pool)
    .await?;
    let others: i64 = phases.iter().map(|(_, count)| count).sum();
    phases.push(("finished".to_owned(), runs(pool).await? - others));
    Ok(phases)
}

/// Returns the newest stored time, unix ms; none in a new database.
pub async fn newest(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"select nullif(max(
               coalesce((select max(at) from audit), 0),
               coalesce((select max(queued_at) from run), 0),
               coalesce((select max(last_used_at) from session), 0),
               coalesce((select max(last_seen_at) from agent), 0)
           ), 0) as "at?: i64""#
    )
    .fetch_one(pool)
    .await
}

/// Returns when the longest-waiting run was queued, unix ms.
pub async fn waiting_since(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar("select min(queued_at) from run where phase = 'queued'").fetch_one(pool).await
}

/// Returns when the last run was imported, unix ms.
pub async fn last_import(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select queued_at from run where origin = 'import' order by seq desc limit 1")
        .fetch_optional(pool)
        .await
}

/// Returns the retention rule, when it was set (unix ms) and by whom; none if series are kept forever.
pub async fn rule(pool: &SqlitePool) -> sqlx::Result<Option<(RetentionRule, i64, String)>> {
    let row =
        sqlx::query!("select after_days, reduction, set_at, set_by from series_rule").fetch_optional(pool).await?;
    let Some(row) = row else { return Ok(None) };
    let after_days = u32::try_from(row.after_days).map_err(|fault| sqlx::Error::Decode(fault.into()))?;
    let reduction: Reduction = row.reduction.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))?;
    Ok(Some((RetentionRule { after_days, reduction }, row.set_at, row.set_by)))
}

/// Stores the retention rule.
pub async fn set_rule(pool: &SqlitePool, rule: RetentionRule, now: i64, act: &AuditEvent) -> sqlx::Result<()> {
    let (after_days, reduction) = (i64::from(rule.after_days), rule.reduction.as_str());
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert or replace into series_rule (only, after_days, reduction, set_at, set_by) values (1, ?, ?, ?, ?)",
        after_days,
        reduction,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?;
    audit::record(&mut transaction, act).await?;
    transaction.commit().await
}

/// Removes the retention rule; false if there was none.
pub async fn remove_rule(pool: &SqlitePool, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from series_rule").execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}
