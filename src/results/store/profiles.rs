//! SQL of profiles: stores those of a run.

use brewbench_agent::wire::profile::{MOST_BYTES, Profiled, RunProfile};
use sqlx::SqliteConnection;

use crate::{app::ids::RunId, runs::store::row::decode};

/// Stores the profiles of a run, replacing those of an earlier result. Drops those that are too large: no agent sends them.
pub async fn store(connection: &mut SqliteConnection, run: &RunId, profiled: &Profiled) -> sqlx::Result<()> {
    for RunProfile { kind, source, data, quality } in &profiled.profiles {
        if data.as_bytes().len() > MOST_BYTES {
            tracing::warn!(run = run.as_str(), kind = kind.as_str(), "dropped a profile that is too large");
            continue;
        }
        let (kind, source, body) = (kind.as_str(), source.as_str(), data.as_bytes());
        let quality = serde_json::to_string(quality).map_err(decode)?;
        sqlx::query!(
            "insert or replace into profile (run_id, kind, source, body, quality) values (?, ?, ?, ?, ?)",
            run,
            kind,
            source,
            body,
            quality
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(())
}
