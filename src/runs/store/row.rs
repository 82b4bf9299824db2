//! Reads rows of the table `run` into [`Run`].

use rusqlite::{Connection, Params};

use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
        rows::Fault,
    },
    catalog::model::Engine,
    metrics::Figures,
    runs::{
        model::{Origin, Run, RunEnforced},
        store::spec::{self, Columns, SpecColumns},
    },
};

/// A row of `run`, one field per column.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct RunRow {
    /// Sequence number in order of submission.
    pub seq: i64,
    /// The run's id.
    pub id: RunId,
    pub(crate) experiment_id: Option<ExperimentId>,
    pub(crate) retry_of: Option<RunId>,
    pub(crate) origin: String,
    #[sqlx(flatten)]
    pub(crate) spec: SpecColumns,
    pub(crate) version: Option<String>,
    pub(crate) target_kind: Option<String>,
    pub(crate) target_identity: Option<String>,
    pub(crate) repetition: i64,
    pub(crate) created_by: String,
    pub(crate) agent: Option<String>,
    pub(crate) phase: String,
    pub(crate) queued_at: i64,
    pub(crate) phase_at: i64,
    pub(crate) started_at: Option<i64>,
    pub(crate) finished_at: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) verdict: Option<String>,
    pub(crate) reasons: String,
    pub(crate) enforced_cpu: Option<String>,
    pub(crate) enforced_memory: Option<String>,
    pub(crate) engine_version: Option<String>,
    pub(crate) engine_name: Option<String>,
    pub(crate) labels: String,
    pub(crate) note: Option<String>,
    pub(crate) interleaved: Option<i64>,
    pub(crate) figures: Option<String>,
}

/// The columns of a row in reading order.
pub(crate) const COLUMNS: &str = "seq, id, experiment_id, retry_of, origin, version, target_kind, target_identity, \
    repetition, created_by, agent, phase, queued_at, phase_at, started_at, finished_at, error, verdict, reasons, \
    enforced_cpu, enforced_memory, engine_version, engine_name, labels, note, interleaved, figures";

impl RunRow {
    /// Reads a row of a statement that selects [`COLUMNS`] and those of the spec.
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns::new(row);
        Ok(Self {
            seq: columns.read()?,
            id: columns.read()?,
            experiment_id: columns.read()?,
            retry_of: columns.read()?,
            origin: columns.read()?,
            version: columns.read()?,
            target_kind: columns.read()?,
            target_identity: columns.read()?,
            repetition: columns.read()?,
            created_by: columns.read()?,
            agent: columns.read()?,
            phase: columns.read()?,
            queued_at: columns.read()?,
            phase_at: columns.read()?,
            started_at: columns.read()?,
            finished_at: columns.read()?,
            error: columns.read()?,
            verdict: columns.read()?,
            reasons: columns.read()?,
            enforced_cpu: columns.read()?,
            enforced_memory: columns.read()?,
            engine_version: columns.read()?,
            engine_name: columns.read()?,
            labels: columns.read()?,
            note: columns.read()?,
            interleaved: columns.read()?,
            figures: columns.read()?,
            spec: SpecColumns::read(&mut columns)?,
        })
    }
}

/// Returns the runs of a statement; `rest` follows `select … from run`.
pub(crate) fn select(connection: &Connection, rest: &str, values: impl Params) -> Result<Vec<Run>, Fault> {
    let mut statement = connection.prepare_cached(&format!("select {COLUMNS}, {} from run {rest}", spec::COLUMNS))?;
    let rows = statement.query_map(values, RunRow::read)?;
    rows.map(|row| Ok(Run::try_from(row?)?)).collect()
}

pub(crate) fn integer<T: TryFrom<i64, Error: Into<Box<dyn std::error::Error + Send + Sync>>>>(
    value: Option<i64>,
) -> sqlx::Result<Option<T>> {
    value.map(T::try_from).transpose().map_err(decode)
}

impl TryFrom<RunRow> for Run {
    type Error = sqlx::Error;

    fn try_from(row: RunRow) -> sqlx::Result<Self> {
        let RunRow {
            seq: _,
            id,
            experiment_id,
            retry_of,
            origin,
            spec,
            version,
            target_kind,
            target_identity,
            repetition,
            created_by,
            agent,
            phase,
            queued_at,
            phase_at,
            started_at,
            finished_at,
            error,
            verdict,
            reasons,
            enforced_cpu,
            enforced_memory,
            engine_version,
            engine_name,
            labels,
            note,
            interleaved,
            figures,
        } = row;
        let origin = if origin == "import" { Origin::Import } else { Origin::Agent };
        Ok(Self {
            id,
            experiment: experiment_id,
            retry_of,
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
            origin,
            interleaved: interleaved.map_or(origin == Origin::Agent, |is| is == 1),
            spec: spec.try_into()?,
            version,
            repetition: u32::try_from(repetition).map_err(decode)?,
            phase: phase.parse().map_err(decode)?,
            verdict: verdict.map(|text| text.parse()).transpose().map_err(|fault: String| decode(fault))?,
            reasons: serde_json::from_str(&reasons).map_err(decode)?,
            error,
            figures: Figures::from_stored(figures.as_deref()).map_err(decode)?,
            enforced: enforced_cpu.zip(enforced_memory).map(|(cpu, memory)| RunEnforced { cpu, memory }),
            agent,
            engine: engine_name.map(|name| Engine { name, version: engine_version }),
            target_kind: target_kind.map(|kind| kind.parse().map_err(|fault: String| decode(fault))).transpose()?,
            target_identity,
            created_by,
            queued_at_ms: queued_at,
            phase_at_ms: phase_at,
            started_at_ms: started_at,
            finished_at_ms: finished_at,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use sqlx::{AssertSqlSafe, Row};

    use super::*;
    use crate::{
        app::db,
        metrics::{METRICS, all_known, definition::MetricDef},
    };

    /// Inserts a row with a different value in each column.
    async fn insert(pool: &sqlx::SqlitePool) {
        let columns =
            sqlx::query("select name, type from pragma_table_info('run')").fetch_all(pool).await.expect("columns");
        let (mut names, mut values) = (String::new(), String::new());
        for (place, column) in columns.iter().enumerate() {
            let separator = if place == 0 { "" } else { ", " };
            let value = match column.get::<&str, _>("type") {
                "REAL" | "real" => format!("{place}.1234567890123457"),
                "TEXT" | "text" => format!("'{place}'"),
                _ => place.to_string(),
            };
            write!(names, "{separator}{}", column.get::<&str, _>("name")).expect("room");
            write!(values, "{separator}{value}").expect("room");
        }
        let mut connection = pool.acquire().await.expect("a connection");
        for sql in ["pragma foreign_keys = off", "pragma ignore_check_constraints = on"] {
            sqlx::query(sql).execute(&mut *connection).await.expect("a pragma");
        }
        let insert = format!("insert into run ({names}) values ({values})");
        sqlx::query(AssertSqlSafe(insert)).execute(&mut *connection).await.expect("a row");
    }

    #[tokio::test]
    async fn every_column_is_read_into_its_own_field_to_the_last_bit() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = db::open(folder.path()).await.expect("a database");
        insert(&db.write).await;
        let by_name: RunRow = sqlx::query_as("select * from run").fetch_one(&db.read).await.expect("a row");
        let read = |connection: &Connection| {
            Ok(connection.query_row(&format!("select {COLUMNS}, {} from run", spec::COLUMNS), [], RunRow::read)?)
        };
        assert_eq!(db.rows.read(read).await.expect("a row"), by_name);
        db.rows.close().await;
        assert!(db.rows.read(read).await.is_err(), "a closed database is not read");
    }

    /// Sorting and showing must agree, or a page would continue at the wrong run.
    #[tokio::test]
    async fn every_metric_is_sorted_by_the_figure_that_is_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let db = db::open(folder.path()).await.expect("a database");
        let figures = all_known();
        let insert = "insert into run (id, origin, target, repetition, created_by, phase, queued_at, phase_at, figures)
            values ('a', 'import', 'servy', 1, 'ada', 'finished', 1, 1, ?)";
        let stored = figures.to_stored().expect("JSON");
        sqlx::query(insert).bind(stored).execute(&db.write).await.expect("a run");
        for MetricDef { key, sql, index, get, .. } in METRICS {
            let index = index.map_or("not indexed".to_owned(), |index| format!("indexed by {index}"));
            let select = format!("select cast({sql} as real) from run {index} where {sql} is not null order by {sql}");
            let sorted_by: f64 = sqlx::query_scalar(AssertSqlSafe(select)).fetch_one(&db.read).await.expect("a figure");
            assert_eq!(get(&figures), Some(sorted_by), "{key}");
        }
    }
}
