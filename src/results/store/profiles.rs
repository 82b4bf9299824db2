//! SQL of profiles: stores those of a run.

use brewbench_wire::profile::RunProfile;
use sqlx::SqliteConnection;

use crate::app::{db::decode, ids::RunId};

/// Stores the profiles of a run, replacing those of an earlier result.
pub async fn store(connection: &mut SqliteConnection, run: &RunId, profiles: &[&RunProfile]) -> sqlx::Result<()> {
    for RunProfile { kind, source, data, quality } in profiles {
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
