//! SQL of the participants of distributed runs. Their parts are in [`crate::results::store::parts`].

use sqlx::{SqliteConnection, SqlitePool};

use crate::app::ids::{AgentId, ExperimentId, RunId};

/// A participant of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// The name of its agent.
    pub agent: String,
    /// Whether its part is stored.
    pub has_delivered: bool,
}

/// Stores the participants of a run: the host, and the generators in the order of their segments. Removes the parts of
/// an earlier attempt.
pub async fn begin(
    connection: &mut SqliteConnection,
    run: &RunId,
    host: AgentId,
    generators: &[AgentId],
) -> sqlx::Result<()> {
    sqlx::query!("delete from run_part where run_id = ?", run).execute(&mut *connection).await?;
    for (place, agent) in (0_i64..).zip([host].iter().chain(generators)) {
        sqlx::query!("insert into run_part (run_id, place, agent_id) values (?, ?, ?)", run, place, agent)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Returns the participants of a leased run, the host first; none if the run waits, has ended or is on one machine.
pub async fn of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<Participant>> {
    sqlx::query_as!(
        Participant,
        r#"select agent.name as agent, run_part.outcome is not null as "has_delivered!: bool"
           from run_part join run on run.id = run_part.run_id join agent on agent.id = run_part.agent_id
           where run_part.run_id = ? and run.phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')
           order by place"#,
        run
    )
    .fetch_all(pool)
    .await
}

/// Stores the clock of a participant, milliseconds.
pub async fn store_clock(
    pool: &SqlitePool,
    run: &RunId,
    place: i64,
    offset_ms: f64,
    error_ms: f64,
) -> sqlx::Result<()> {
    sqlx::query!(
        "update run_part set clock_offset_ms = ?3, clock_error_ms = ?4 where run_id = ?1 and place = ?2",
        run,
        place,
        offset_ms,
        error_ms
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Returns the experiment of a run, if it has one.
pub async fn experiment_of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Option<ExperimentId>> {
    let row = sqlx::query!(r#"select experiment_id as "experiment_id: ExperimentId" from run where id = ?"#, run)
        .fetch_optional(pool)
        .await?;
    Ok(row.and_then(|row| row.experiment_id))
}
