//! SQL of what requests cost.

use sqlx::SqliteConnection;

use crate::results::cost::Cost;

/// Notes what a run's requests cost.
pub async fn note(connection: &mut SqliteConnection, run: &str, cost: Cost) -> sqlx::Result<()> {
    let (cpu, memory) = (cost.cpu_us.map(u64::cast_signed), cost.memory_bytes.map(u64::cast_signed));
    sqlx::query!(
        "update run set target_cpu_us = ?2, target_memory_bytes = ?3, throttled_share = ?4 where id = ?1",
        run,
        cpu,
        memory,
        cost.throttled_share
    )
    .execute(connection)
    .await?;
    Ok(())
}
