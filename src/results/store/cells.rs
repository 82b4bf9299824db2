//! SQL of the runs that are judged together: those of one cell in one experiment.

use brewbench_wire::load::Load;
use sqlx::SqliteConnection;

use crate::{
    app::{db::decode, ids::RunId},
    runs::{
        load,
        verdict::{Reason, Verdict},
    },
};

/// A run that is judged together with others.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its id.
    pub id: RunId,
    /// The scenario's name.
    pub scenario: Option<String>,
    /// Its load.
    pub load: Option<Load>,
    /// As judged.
    pub verdict: Verdict,
    /// As judged.
    pub reasons: Vec<Reason>,
}

/// Lists the finished runs of a run's cell in its experiment that have a complete series, in their order, including
/// deleted runs that can be restored. Empty unless one agent measured the run in an experiment.
pub async fn members(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Vec<Member>> {
    let rows = sqlx::query!(
        r#"select run.id as "id!: RunId", run.scenario, run.load, run.verdict as "verdict!", run.reasons
           from run as asked
           join run on run.experiment_id = asked.experiment_id and run.cell_key = asked.cell_key
           where asked.id = ?1 and run.phase = 'finished' and run.verdict is not null and run.origin = 'agent'
               and run.generators = '[]' and run.cluster_generators = 0
               and exists (select 1 from run_series where run_id = run.id)
               and not exists (select 1 from run_series_reduced where run_id = run.id)
           order by run.seq"#,
        run
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Member {
                id: row.id,
                scenario: row.scenario,
                load: row.load.as_deref().map(load::read).transpose().map_err(decode)?,
                verdict: row.verdict.parse().map_err(|fault: String| decode(fault))?,
                reasons: serde_json::from_str(&row.reasons).map_err(decode)?,
            })
        })
        .collect()
}

/// Returns the packed series of a run.
pub async fn series(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Option<Vec<u8>>> {
    let row = sqlx::query!("select body from run_series where run_id = ?", run).fetch_optional(connection).await?;
    Ok(row.map(|row| row.body))
}
