//! SQL of the code that runs measured.

use sqlx::SqliteConnection;

use crate::{
    app::{db::decode, ids::RunId},
    results::verdict::code::Earlier,
    runs::verdict::Reason,
};

/// A run that has been judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The scenario's name.
    pub scenario: Option<String>,
    /// Reasons of its verdict.
    pub reasons: Vec<Reason>,
}

/// Loads the judgement of a run, if it has one.
pub async fn judged(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Option<Judged>> {
    let row = sqlx::query!("select scenario, reasons from run where id = ? and verdict is not null", run)
        .fetch_optional(connection)
        .await?;
    row.map(|row| Ok(Judged { scenario: row.scenario, reasons: serde_json::from_str(&row.reasons).map_err(decode)? }))
        .transpose()
}

/// Returns the run before this one in its cell, on its agent and in its version, if both are identified.
pub async fn earlier(connection: &mut SqliteConnection, run: &RunId) -> sqlx::Result<Option<Earlier>> {
    let row = sqlx::query!(
        r#"select earlier.id as "id!: RunId", earlier.target_identity as "identity!", asked.target_identity as "later!",
                  asked.version as "version!"
           from run as asked
           join run as earlier indexed by run_cell on earlier.cell_key = asked.cell_key and earlier.seq < asked.seq
           where asked.id = ?1 and asked.target_identity is not null and asked.version is not null
               and earlier.target_identity is not null and earlier.version = asked.version
               and earlier.agent_id is asked.agent_id and earlier.phase = 'finished'
           order by earlier.seq desc limit 1"#,
        run
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Earlier { run: row.id, identity: row.identity, later: row.later, version: row.version }))
}
