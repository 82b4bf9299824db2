//! SQL of resource costs.

use sqlx::SqliteConnection;

use crate::{app::ids::RunId, results::cost::Cost};

/// Stores the cost of a run. Values that are no longer known, because the series was deleted, stay as stored.
pub async fn note(connection: &mut SqliteConnection, run: &RunId, cost: Cost) -> sqlx::Result<()> {
    let Cost { cpu_us, memory_bytes, throttled_share, startup_ms, idle_memory_bytes, counts } = cost;
    let idle_memory = idle_memory_bytes.map(u64::cast_signed);
    let (cpu, memory) = (cpu_us.map(u64::cast_signed), memory_bytes.map(u64::cast_signed));
    let counts = counts
        .map(|counts| serde_json::to_string(&counts))
        .transpose()
        .map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query!(
        "update run set target_cpu_us = coalesce(?2, target_cpu_us),
             target_memory_bytes = coalesce(?3, target_memory_bytes),
             throttled_share = coalesce(?4, throttled_share), startup_ms = coalesce(?5, startup_ms),
             idle_memory_bytes = coalesce(?6, idle_memory_bytes), counters = coalesce(?7, counters)
         where id = ?1",
        run,
        cpu,
        memory,
        throttled_share,
        startup_ms,
        idle_memory,
        counts
    )
    .execute(connection)
    .await?;
    Ok(())
}
