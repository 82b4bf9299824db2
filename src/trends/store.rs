//! SQL of judgements of changes; [`pins`] has the SQL of pins.

pub mod pins;

use sqlx::SqlitePool;

use super::cell::Cell;
use crate::{app::ids::RunId, trends::model::Judgement};

/// A judgement with the properties that identify its change.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedChange {
    /// When the first run after it began, unix ms. It locates the change if that run was deleted.
    pub run_at_ms: i64,
    /// Whether values are higher after it.
    pub rise: bool,
    /// After ÷ before, when it was judged.
    pub ratio: f64,
    /// The judgement.
    pub judgement: Judgement,
}

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

/// Returns the judgements of a metric of a cell, oldest change first. Judgements from before load generators were part
/// of a cell apply to the cell of their run.
pub async fn of_cell(pool: &SqlitePool, cell: &Cell, metric: &str) -> sqlx::Result<Vec<JudgedChange>> {
    let rows = sqlx::query!(
        "select run_id, run_at, rise, ratio, ruling, note, judged_by, judged_at from trend_judgement
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
            let ruling = row.ruling.parse().map_err(|fault: String| decode(fault))?;
            let judgement =
                Judgement { run: row.run_id.into(), ruling, note: row.note, by: row.judged_by, at_ms: row.judged_at };
            Ok(JudgedChange { run_at_ms: row.run_at, rise: row.rise == 1, ratio: row.ratio, judgement })
        })
        .collect()
}

/// Stores a judgement of a change and replaces an earlier one.
pub async fn judge(pool: &SqlitePool, cell: &Cell, metric: &str, judged: &JudgedChange) -> sqlx::Result<()> {
    let JudgedChange { run_at_ms, rise, ratio, judgement: Judgement { run, ruling, note, by, at_ms } } = judged;
    let (ruling, rise) = (ruling.as_str(), i64::from(*rise));
    sqlx::query!(
        "insert or replace into trend_judgement
             (target, cell, metric, run_id, run_at, rise, ratio, ruling, note, judged_by, judged_at)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        cell.target,
        cell.id,
        metric,
        run,
        run_at_ms,
        rise,
        ratio,
        ruling,
        note,
        by,
        at_ms
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Removes the judgement of a change. Returns false if there is none.
pub async fn withdraw(pool: &SqlitePool, cell: &Cell, metric: &str, run: &RunId) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "delete from trend_judgement where cell in (?, ?) and metric = ? and run_id = ?",
        cell.id,
        cell.earlier_id,
        metric,
        run
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected() > 0)
}
