//! SQL of who does a run together. What they deliver is in [`crate::results::store::parts`].

use sqlx::{SqliteConnection, SqlitePool};

use crate::app::ids::{ExperimentId, RunId};

/// One who takes part in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub agent: String,
    /// Whether its part is stored.
    pub has_delivered: bool,
}

/// Enters those who do a run together: who runs the target, and the others in the order of their segments. Whatever an
/// earlier try left is gone.
pub async fn begin(
    connection: &mut SqliteConnection,
    run: &RunId,
    host: &str,
    generators: &[String],
) -> sqlx::Result<()> {
    sqlx::query!("delete from run_part where run_id = ?", run).execute(&mut *connection).await?;
    for (place, agent) in (0_i64..).zip([host].into_iter().chain(generators.iter().map(String::as_str))) {
        sqlx::query!("insert into run_part (run_id, place, agent) values (?, ?, ?)", run, place, agent)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Those who do a run that goes on, who runs the target first; nobody for one that has ended or waits, or that one agent
/// does alone.
pub async fn of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Vec<Member>> {
    sqlx::query_as!(
        Member,
        r#"select run_part.agent, run_part.outcome is not null as "has_delivered!: bool"
           from run_part join run on run.id = run_part.run_id
           where run_part.run_id = ? and run.phase in ('leased', 'preparing', 'warming_up', 'measuring', 'collecting')
           order by place"#,
        run
    )
    .fetch_all(pool)
    .await
}

/// Keeps what is known of the clock of one who takes part, milliseconds.
pub async fn keep_clock(pool: &SqlitePool, run: &RunId, place: i64, offset_ms: f64, error_ms: f64) -> sqlx::Result<()> {
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

/// The experiment of a run, if it has one.
pub async fn experiment_of(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Option<ExperimentId>> {
    let row = sqlx::query!(r#"select experiment_id as "experiment_id: ExperimentId" from run where id = ?"#, run)
        .fetch_optional(pool)
        .await?;
    Ok(row.and_then(|row| row.experiment_id))
}
