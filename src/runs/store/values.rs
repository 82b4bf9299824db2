//! The values that the filters of the history offer.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::app::rows::{Fault, Rows};

/// Values that runs have, by the field of the form that offers them; a few of each.
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
    /// Who submitted.
    pub person: Vec<String>,
    /// Labels.
    pub label: Vec<String>,
}

/// How many values a field offers.
const OFFERED: usize = 100;

/// The values as they were read last, with the number of changes before that (migration 36); cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LastValues(Arc<Mutex<Option<(i64, Values)>>>);

impl LastValues {
    /// The values of all runs; read again if any has changed.
    pub async fn read(&self, rows: &Rows) -> sqlx::Result<Values> {
        let last = Arc::clone(&self.0);
        rows.read(move |connection| {
            // Before the values: what is read later is as new or newer.
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
    let of = |table: &str, column: &str| offered(connection, table, column);
    Ok(Values {
        target: of("run", "target")?,
        version: of("run", "version")?,
        size: of("run", "size_name")?,
        scenario: of("run", "scenario")?,
        agent: of("run", "agent")?,
        engine: of("run", "engine")?,
        person: of("run", "created_by")?,
        label: of("run_label", "label")?,
    })
}

/// Finds each value by the one before it: this takes as many steps as there are values, not as there are runs.
fn offered(connection: &Connection, table: &str, column: &str) -> rusqlite::Result<Vec<String>> {
    let select = format!(
        "with recursive v(x) as (select min({column}) from {table} union all
             select (select min({column}) from {table} where {column} > v.x) from v where v.x is not null
             limit {OFFERED}) select x from v where x is not null"
    );
    connection.prepare_cached(&select)?.query_map([], |row| row.get(0))?.collect()
}
