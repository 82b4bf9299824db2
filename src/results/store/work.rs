//! SQL of the work done by a run's requests, and of its warm-up.

use brewbench_agent::wire::{outcome::WarmUp, work_done::WorkDone};
use sqlx::SqliteConnection;

use crate::app::{db::decode, ids::RunId};

/// Stores the duration of an adaptive warm-up and whether the target became steady.
pub async fn note_warm_up(connection: &mut SqliteConnection, run: &RunId, warm_up: WarmUp) -> sqlx::Result<()> {
    let (took_ms, steady) = (warm_up.took_ms.cast_signed(), warm_up.steady);
    sqlx::query!("update run set warmed_up_ms = ?2, warm_up_steady = ?3 where id = ?1", run, took_ms, steady)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores statuses, protocols and new connections, as k6's tags report them.
pub async fn note(connection: &mut SqliteConnection, run: &RunId, work: &WorkDone) -> sqlx::Result<()> {
    let WorkDone { statuses, protocols, new_connections } = work;
    let json = |counts: &Option<_>| counts.as_ref().map(serde_json::to_string).transpose().map_err(decode);
    let (statuses, protocols) = (json(statuses)?, json(protocols)?);
    let new_connections = new_connections.map(u64::cast_signed);
    sqlx::query!(
        "update run set min_new_connections = coalesce(?2, min_new_connections),
             max_new_connections = coalesce(?2, max_new_connections), statuses = ?3, protocols = ?4
         where id = ?1",
        run,
        new_connections,
        statuses,
        protocols
    )
    .execute(connection)
    .await?;
    Ok(())
}
