//! SQL of annotations of changes; [`pins`] has the SQL of pins.

pub mod pins;

use sqlx::{SqliteConnection, SqlitePool, sqlite::SqliteQueryResult};

use super::cell::TrendCell;
use crate::{
    app::{db::decode, ids::RunId},
    auth::{audit::AuditEvent, store::audit},
    trends::model::Annotation,
};

/// An annotation with the properties that identify its change.
#[derive(Clone, Debug, PartialEq)]
pub struct AnnotatedChange {
    /// When the first run after it began, unix ms. It locates the change if that run was deleted.
    pub run_at_ms: i64,
    /// Whether values are higher after it.
    pub rise: bool,
    /// After ÷ before, when it was annotated.
    pub ratio: f64,
    /// The annotation.
    pub annotation: Annotation,
}

/// Returns the annotations of a metric of a cell, oldest change first. Annotations from before load generators were
/// part of a cell apply to the cell of their run.
pub async fn of_cell(pool: &SqlitePool, cell: &TrendCell, metric: &str) -> sqlx::Result<Vec<AnnotatedChange>> {
    let rows = sqlx::query!(
        "select run_id, run_at, rise, ratio, status, note, annotated_by, annotated_at from trend_annotation
         where metric = ?1
             and (cell = ?2 or cell = ?3 and exists (select 1 from run where id = run_id and engine is ?4))
         order by run_at, run_id",
        metric,
        cell.id,
        cell.earlier_id,
        cell.engine
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let status = row.status.parse().map_err(|fault: String| decode(fault))?;
            let annotation = Annotation {
                run: row.run_id.into(),
                status,
                note: row.note,
                by: row.annotated_by,
                at_ms: row.annotated_at,
            };
            Ok(AnnotatedChange { run_at_ms: row.run_at, rise: row.rise == 1, ratio: row.ratio, annotation })
        })
        .collect()
}

/// Returns a number that is another one after each change of the annotations.
pub async fn annotations(pool: &SqlitePool) -> sqlx::Result<i64> {
    let sum =
        sqlx::query_scalar!(r#"select count(*) + coalesce(sum(annotated_at), 0) as "sum!: i64" from trend_annotation"#);
    sum.fetch_one(pool).await
}

/// Stores an annotation of a change, instead of the one of `before` if there is one.
pub async fn annotate(
    pool: &SqlitePool,
    cell: &TrendCell,
    metric: &str,
    annotated: &AnnotatedChange,
    before: Option<&RunId>,
    event: &AuditEvent,
) -> sqlx::Result<()> {
    let AnnotatedChange { run_at_ms, rise, ratio, annotation: Annotation { run, status, note, by, at_ms } } = annotated;
    let (status, rise) = (status.as_str(), i64::from(*rise));
    let mut transaction = pool.begin().await?;
    if let Some(before) = before {
        remove(&mut transaction, cell, metric, before).await?;
    }
    sqlx::query!(
        "insert or replace into trend_annotation
             (target, cell, metric, run_id, run_at, rise, ratio, status, note, annotated_by, annotated_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        cell.target,
        cell.id,
        metric,
        run,
        run_at_ms,
        rise,
        ratio,
        status,
        note,
        by,
        at_ms
    )
    .execute(&mut *transaction)
    .await?;
    audit::record(&mut transaction, event).await?;
    transaction.commit().await
}

/// Deletes the annotation of a change. Returns false if there is none.
pub async fn delete(
    pool: &SqlitePool,
    cell: &TrendCell,
    metric: &str,
    run: &RunId,
    event: &AuditEvent,
) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = remove(&mut transaction, cell, metric, run).await?;
    audit::commit(transaction, &done, event).await
}

async fn remove(
    connection: &mut SqliteConnection,
    cell: &TrendCell,
    metric: &str,
    run: &RunId,
) -> sqlx::Result<SqliteQueryResult> {
    sqlx::query!(
        "delete from trend_annotation where cell in (?, ?) and metric = ? and run_id = ?",
        cell.id,
        cell.earlier_id,
        metric,
        run
    )
    .execute(connection)
    .await
}
