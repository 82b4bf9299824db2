//! SQL of what each agent has done of a run that several do.

use sqlx::{SqliteConnection, SqlitePool};

use crate::app::ids::RunId;

/// One agent's part.
#[derive(Clone, Debug)]
pub struct PartRow {
    /// 0 is the target's agent; from 1 on they are the generators, in the order of their segments.
    pub place: i64,
    /// Whose it is.
    pub agent: String,
    /// Its clock minus the server's, ms.
    pub clock_offset_ms: Option<f64>,
    /// How far that may be wrong, ms.
    pub clock_error_ms: Option<f64>,
    /// Its outcome without summary and series, compressed; none until it came.
    pub outcome: Option<Vec<u8>>,
    /// k6's summary of its part, compressed.
    pub summary: Option<Vec<u8>>,
    /// Its series, packed.
    pub series: Option<Vec<u8>>,
}

/// All parts of a run, by place.
pub async fn of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<PartRow>> {
    sqlx::query_as!(
        PartRow,
        "select place, agent, clock_offset_ms, clock_error_ms, outcome, summary, series from run_part
         where run_id = ? order by place",
        run
    )
    .fetch_all(pool)
    .await
}

/// A part without what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PartState {
    /// As in [`PartRow`].
    pub place: i64,
    /// Whose it is.
    pub agent: String,
    /// Its clock minus the server's, ms.
    pub clock_offset_ms: Option<f64>,
    /// How far that may be wrong, ms.
    pub clock_error_ms: Option<f64>,
    /// Whether its result came.
    pub delivered: bool,
}

/// How far those are who do a run, by place.
pub async fn states(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<PartState>> {
    sqlx::query_as!(
        PartState,
        r#"select place, agent, clock_offset_ms, clock_error_ms, outcome is not null as "delivered!: bool"
           from run_part where run_id = ? order by place"#,
        run
    )
    .fetch_all(pool)
    .await
}

/// The places of which the result is there.
pub async fn delivered(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Vec<i64>> {
    let rows = sqlx::query!("select place from run_part where run_id = ? and outcome is not null order by place", run)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(|row| row.place).collect())
}

/// Whether an agent makes a part of the load of a run.
pub async fn generates(connection: &mut SqliteConnection, run: &RunId, agent: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!("select place from run_part where run_id = ? and agent = ? and place > 0", run, agent)
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// What came of a part.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// As in [`PartRow`].
    pub outcome: &'a [u8],
    /// As in [`PartRow`].
    pub summary: Option<&'a [u8]>,
    /// As in [`PartRow`].
    pub series: Option<&'a [u8]>,
}

/// Keeps what came of a part, which ends the lease of its agent. False if there is something already.
pub async fn keep(
    connection: &mut SqliteConnection,
    run: &RunId,
    place: i64,
    Came { outcome, summary, series }: Came<'_>,
) -> sqlx::Result<bool> {
    let kept = sqlx::query!(
        "update run_part set outcome = ?3, summary = ?4, series = ?5
         where run_id = ?1 and place = ?2 and outcome is null",
        run,
        place,
        outcome,
        summary,
        series
    )
    .execute(&mut *connection)
    .await?
    .rows_affected()
        > 0;
    Ok(kept)
}

/// The run waits again: others may do it.
pub async fn forget(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<()> {
    sqlx::query!("delete from run_part where run_id = ?", run).execute(connection).await?;
    Ok(())
}

/// The series of the parts go; what was seen in them is kept with the run.
pub async fn drop_series(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<()> {
    sqlx::query!("update run_part set series = null where run_id = ? and series is not null", run)
        .execute(connection)
        .await?;
    Ok(())
}
