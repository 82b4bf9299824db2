//! SQL of who does a run together, and for how long each of them counts as alive. What they deliver is in
//! [`crate::results::store::parts`].

use sqlx::{SqliteConnection, SqlitePool};

/// One who takes part in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub agent: String,
    /// Whether its part is stored.
    pub has_delivered: bool,
}

/// Those who make the load of a run, for whom their server waits.
#[derive(Clone, Debug)]
pub struct HeldPart {
    /// The run.
    pub run: String,
    /// Who makes a part of its load.
    pub agent: String,
}

/// Enters those who do a run together: who runs the target, and the others in the order of their segments. Whatever an
/// earlier try left is gone.
pub async fn begin(
    connection: &mut SqliteConnection,
    run: &str,
    host: &str,
    generators: &[String],
    expires: i64,
) -> sqlx::Result<()> {
    sqlx::query!("delete from run_part where run_id = ?", run).execute(&mut *connection).await?;
    for (place, agent) in (0_i64..).zip([host].into_iter().chain(generators.iter().map(String::as_str))) {
        // The run's own lease is that of who runs the target.
        let expires = (place > 0).then_some(expires);
        sqlx::query!(
            "insert into run_part (run_id, place, agent, lease_expires_at) values (?, ?, ?, ?)",
            run,
            place,
            agent,
            expires
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}

/// Those who do a run that goes on, who runs the target first; nobody for one that has ended or waits, or that one agent
/// does alone.
pub async fn of(pool: &SqlitePool, run: &str) -> sqlx::Result<Vec<Member>> {
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

/// An agent that makes a part of a run's load has given a sign of life; false if it makes none.
pub async fn prolong(pool: &SqlitePool, run: &str, agent: &str, expires: i64) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update run_part set lease_expires_at = ?3 where run_id = ?1 and agent = ?2 and lease_expires_at is not null",
        run,
        agent,
        expires
    )
    .execute(pool)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Prolongs all of them: a server that was away itself can't blame its agents for silence.
pub async fn prolong_all(pool: &SqlitePool, expires: i64) -> sqlx::Result<()> {
    sqlx::query!("update run_part set lease_expires_at = ? where lease_expires_at is not null", expires)
        .execute(pool)
        .await?;
    Ok(())
}

/// The runs of whose load an agent makes a part, by our books.
pub async fn held_by(pool: &SqlitePool, agent: &str) -> sqlx::Result<Vec<HeldPart>> {
    sqlx::query_as!(
        HeldPart,
        "select run_id as run, agent from run_part indexed by run_part_leased
         where agent = ? and lease_expires_at is not null",
        agent
    )
    .fetch_all(pool)
    .await
}

/// Those who were silent for too long.
pub async fn expired(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<HeldPart>> {
    sqlx::query_as!(
        HeldPart,
        "select run_id as run, agent from run_part indexed by run_part_leased
         where lease_expires_at is not null and lease_expires_at <= ?",
        now
    )
    .fetch_all(pool)
    .await
}

/// Keeps what is known of the clock of one who takes part, milliseconds.
pub async fn keep_clock(pool: &SqlitePool, run: &str, place: i64, offset_ms: f64, error_ms: f64) -> sqlx::Result<()> {
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
pub async fn experiment_of(pool: &SqlitePool, run: &str) -> sqlx::Result<Option<String>> {
    let row = sqlx::query!("select experiment_id from run where id = ?", run).fetch_optional(pool).await?;
    Ok(row.and_then(|row| row.experiment_id))
}
