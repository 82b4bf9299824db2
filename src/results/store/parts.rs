//! SQL of the parts of a distributed run, one per agent.

use sqlx::{SqliteConnection, SqlitePool};

use crate::app::ids::{AgentId, RunId};

/// One agent's part.
#[derive(Clone, Debug)]
pub struct PartRow {
    /// 0 is the host; the generators follow from 1 in the order of their segments.
    pub place: i64,
    /// Its agent.
    pub agent_id: AgentId,
    /// The name of its agent.
    pub agent: String,
    /// Its clock minus the server's, ms.
    pub clock_offset_ms: Option<f64>,
    /// Maximum error of the offset, ms.
    pub clock_error_ms: Option<f64>,
    /// Its outcome without summary and series, compressed; None until it is delivered.
    pub outcome: Option<Vec<u8>>,
    /// k6's summary of its part, compressed.
    pub summary: Option<Vec<u8>>,
    /// Its series, packed.
    pub series: Option<Vec<u8>>,
}

/// Lists all parts of a run, by place.
pub async fn list(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<PartRow>> {
    sqlx::query_as!(
        PartRow,
        r#"select place, agent_id as "agent_id!: AgentId", agent.name as agent, clock_offset_ms, clock_error_ms, outcome,
             summary, series
         from run_part join agent on agent.id = run_part.agent_id
         where run_id = ? order by place"#,
        run
    )
    .fetch_all(pool)
    .await
}

/// A part without its result.
#[derive(Clone, Debug, PartialEq)]
pub struct PartState {
    /// As in [`PartRow`].
    pub place: i64,
    /// The name of its agent.
    pub agent: String,
    /// Its clock minus the server's, ms.
    pub clock_offset_ms: Option<f64>,
    /// Maximum error of the offset, ms.
    pub clock_error_ms: Option<f64>,
    /// Whether its result is stored.
    pub delivered: bool,
}

/// Lists the states of all parts of a run, by place.
pub async fn states(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<PartState>> {
    sqlx::query_as!(
        PartState,
        r#"select place, agent.name as agent, clock_offset_ms, clock_error_ms, outcome is not null as "delivered!: bool"
           from run_part join agent on agent.id = run_part.agent_id where run_id = ? order by place"#,
        run
    )
    .fetch_all(pool)
    .await
}

/// Lists the places whose result is stored.
pub async fn delivered(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Vec<i64>> {
    let rows = sqlx::query!("select place from run_part where run_id = ? and outcome is not null order by place", run)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(|row| row.place).collect())
}

/// Whether an agent is a generator of a run.
pub async fn is_generator(connection: &mut SqliteConnection, run: &RunId, agent: AgentId) -> sqlx::Result<bool> {
    let row = sqlx::query!("select place from run_part where run_id = ? and agent_id = ? and place > 0", run, agent)
        .fetch_optional(connection)
        .await?;
    Ok(row.is_some())
}

/// The result of a part.
#[derive(Clone, Copy, Debug)]
pub struct PartResult<'a> {
    /// As in [`PartRow`].
    pub outcome: &'a [u8],
    /// As in [`PartRow`].
    pub summary: Option<&'a [u8]>,
    /// As in [`PartRow`].
    pub series: Option<&'a [u8]>,
}

/// Stores the result of a part, which ends its agent's lease; false if it already has one.
pub async fn store(
    connection: &mut SqliteConnection,
    run: &RunId,
    place: i64,
    PartResult { outcome, summary, series }: PartResult<'_>,
) -> sqlx::Result<bool> {
    let stored = sqlx::query!(
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
    Ok(stored)
}

/// Deletes the parts of a run that returns to the queue: other agents may get it.
pub async fn forget(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<()> {
    sqlx::query!("delete from run_part where run_id = ?", run).execute(connection).await?;
    Ok(())
}

/// Deletes the series of the parts; the run keeps the merged one.
pub async fn drop_series(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<()> {
    sqlx::query!("update run_part set series = null where run_id = ? and series is not null", run)
        .execute(connection)
        .await?;
    Ok(())
}
