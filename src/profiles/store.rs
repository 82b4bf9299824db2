//! SQL of profiles: reads those of runs.

use brewbench_wire::profile::{ProfileKind, ProfileQuality, ProfileSource};
use sqlx::SqlitePool;

use crate::app::{db::decode, ids::RunId};

/// A stored profile.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredProfile {
    /// The run.
    pub run: RunId,
    /// What it counts.
    pub kind: ProfileKind,
    /// Where it comes from.
    pub source: ProfileSource,
    /// How complete it is.
    pub quality: ProfileQuality,
    /// The stacks in the pprof format, compressed with gzip; none if retention has deleted them.
    pub body: Option<Vec<u8>>,
}

/// Returns all profiles of runs, in order of the runs' submission.
pub async fn of_runs(pool: &SqlitePool, runs: &[RunId]) -> sqlx::Result<Vec<StoredProfile>> {
    let ids = serde_json::to_string(runs).map_err(decode)?;
    let rows = sqlx::query!(
        r#"select profile.run_id as "run!: RunId", profile.kind as "kind!", profile.source as "source!",
                  profile.quality as "quality!", profile.body
           from profile join run on run.id = profile.run_id
           where profile.run_id in (select value from json_each(?)) and run.deleted_at is null
           order by run.seq, profile.kind"#,
        ids
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(StoredProfile {
                run: row.run,
                kind: row.kind.parse().map_err(|fault: String| decode(fault))?,
                source: row.source.parse().map_err(|fault: String| decode(fault))?,
                quality: serde_json::from_str(&row.quality).map_err(decode)?,
                body: row.body,
            })
        })
        .collect()
}
