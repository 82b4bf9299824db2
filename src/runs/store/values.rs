//! Values offered by the filters of the history.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::app::rows::{Fault, Rows};

/// Existing values of runs, by form field; limited to `OFFERED` each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values {
    /// Names of targets.
    pub target: Vec<String>,
    /// Versions.
    pub version: Vec<String>,
    /// Names of machine sizes.
    pub size: Vec<String>,
    /// Names of scenarios.
    pub scenario: Vec<String>,
    /// Names of agents.
    pub agent: Vec<String>,
    /// Load generators.
    pub engine: Vec<String>,
    /// Users who submitted runs.
    pub created_by: Vec<String>,
    /// Labels.
    pub label: Vec<String>,
}

/// Maximum number of values per field.
const OFFERED: usize = 100;

/// The last values read and the change counter at that time (migration 36); cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LastValues(Arc<Mutex<Option<(i64, Values)>>>);

impl LastValues {
    /// Returns the values of all runs; reads them again if any has changed.
    pub async fn read(&self, rows: &Rows) -> sqlx::Result<Values> {
        let last = Arc::clone(&self.0);
        rows.read(move |connection| {
            // Read the counter first, so that the values are never older than it.
            let changes: i64 =
                connection.prepare_cached("select changes from run_values")?.query_row([], |row| row.get(0))?;
            let known = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((_, values)) = known.filter(|(known, _)| *known == changes) {
                return Ok(values);
            }
            let values = values(connection)?;
            *last.lock().unwrap_or_else(PoisonError::into_inner) = Some((changes, values.clone()));
            Ok(values)
        })
        .await
    }
}

fn values(connection: &Connection) -> Result<Values, Fault> {
    let read = |table: &str, column: &str| offered(connection, table, column);
    Ok(Values {
        target: read("run", "target")?,
        version: read("run", "version")?,
        size: read("run", "size_name")?,
        scenario: read("run", "scenario")?,
        agent: agents(connection)?,
        engine: read("run", "engine")?,
        created_by: read("run", "created_by")?,
        label: read("run_label", "label")?,
    })
}

fn agents(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let select = format!(
        "select name from agent where exists (select 1 from run where run.agent_id = agent.id)
         order by name limit {OFFERED}"
    );
    connection.prepare_cached(&select)?.query_map([], |row| row.get(0))?.collect()
}

/// Finds each value from the previous one, which takes as many steps as there are values, not runs.
fn offered(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<Vec<String>> {
    let select = format!(
        "with recursive v(x) as (select min({column}) from {table} union all
             select (select min({column}) from {table} where {column} > v.x) from v where v.x is not null
             limit {OFFERED}) select x from v where x is not null"
    );
    connection.prepare_cached(&select)?.query_map([], |row| row.get(0))?.collect()
}
