//! SQL of comparisons.

use std::collections::BTreeSet;

use rusqlite::Row;
use sqlx::SqlitePool;

use crate::{
    app::{
        db::decode,
        ids::ExperimentId,
        rows::{Fault, Rows},
    },
    compare::{builder::CandidateRun, cache::Version},
    runs::{load, model::RunSpec, store::spec},
};

/// The form offers what the last runs measured; older ones are chosen in the history.
const MAX_RECENT: i64 = 2_000;

const RECENT: &str = "
    select id, experiment_id, finished_at, target, version, size_name, scenario, parameters, load, vus, spec, engine,
        (select json_group_array(label) from run_label where run_seq = run.seq)
    from run indexed by overview_run_finished
    where finished_at is not null and deleted_at is null and phase = 'finished' and verdict <> 'invalid'
    order by finished_at desc limit ?";

/// Returns how often the inputs of comparisons have changed.
pub async fn version(pool: &SqlitePool) -> sqlx::Result<Version> {
    sqlx::query_scalar!("select changes from comparison_inputs").fetch_one(pool).await.map(Version)
}

/// Whether any of these experiments searches for a knee.
pub async fn any_knee_search(pool: &SqlitePool, experiments: &BTreeSet<&ExperimentId>) -> sqlx::Result<bool> {
    let ids = serde_json::to_string(experiments).map_err(decode)?;
    let found = sqlx::query_scalar!(
        r#"select exists (
            select 1 from experiment
            where id in (select value from json_each(?)) and json_extract(plan, '$.knee') is not null
        ) as "is: bool""#,
        ids
    );
    found.fetch_one(pool).await
}

/// Returns the last runs that count, newest first.
pub async fn recent(rows: &Rows) -> sqlx::Result<Vec<CandidateRun>> {
    rows.read(|connection| {
        let mut statement = connection.prepare_cached(RECENT)?;
        let mut rows = statement.query([MAX_RECENT])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            all.push(measured(row)?);
        }
        Ok(all)
    })
    .await
}

fn measured(row: &Row) -> Result<CandidateRun, Fault> {
    let unknown = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
    let (parameters, load, vus): (String, Option<String>, Option<i64>) = (row.get(7)?, row.get(8)?, row.get(9)?);
    let load = load.as_deref().map(load::read).transpose()?;
    let spec = RunSpec { load, ..spec::rest(&row.get::<_, String>(10)?)? };
    let load = match load::describe_with(&spec, load::with_unusual_max_vus) {
        Some(text) => Some(text.replace('\u{a0}', " ")),
        None => vus.map(|count| format!("{count} {}", if count == 1 { "VU" } else { "VUs" })),
    };
    let scenario = match parameters.as_str() {
        "{}" => unknown(row.get(6)?),
        parameters => format!("{} {parameters}", unknown(row.get(6)?)),
    };
    Ok(CandidateRun {
        id: row.get::<_, String>(0)?.into(),
        experiment: row.get::<_, Option<String>>(1)?.map(Into::into),
        finished_at_ms: row.get(2)?,
        target: row.get(3)?,
        version: row.get(4)?,
        values: [scenario, unknown(row.get(5)?), unknown(load), unknown(row.get(11)?)],
        labels: serde_json::from_str(&row.get::<_, String>(12)?)?,
    })
}
