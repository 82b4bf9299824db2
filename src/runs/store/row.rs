//! Reads rows of the table `run` into [`Run`].

use rusqlite::{Connection, Params, types::FromSql};

use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::Fault,
    },
    catalog::model::Engine,
    metrics::Figures,
    runs::{
        load,
        model::{Origin, Run, RunEnforced, RunSize},
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
    pub(crate) target: String,
    pub(crate) version: Option<String>,
    pub(crate) target_kind: Option<String>,
    pub(crate) target_identity: Option<String>,
    pub(crate) size_name: Option<String>,
    pub(crate) vcpus: Option<f64>,
    pub(crate) memory_bytes: Option<i64>,
    pub(crate) replicas: u32,
    pub(crate) scenario: Option<String>,
    pub(crate) scenario_sha256: Option<String>,
    pub(crate) parameters: String,
    pub(crate) vus: Option<i64>,
    pub(crate) duration_ms: Option<i64>,
    pub(crate) warm_up_ms: Option<i64>,
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
    pub(crate) load: Option<String>,
    pub(crate) generators: String,
    pub(crate) interleaved: Option<i64>,
    pub(crate) warm_up_auto: i64,
    pub(crate) profiled: i64,
    pub(crate) cluster_generators: i64,
    pub(crate) figures: Option<String>,
}

/// The columns of a row in reading order.
pub(crate) const COLUMNS: &str = "seq, id, experiment_id, retry_of, origin, target, version, target_kind, \
    target_identity, size_name, vcpus, memory_bytes, replicas, scenario, scenario_sha256, parameters, vus, \
    duration_ms, warm_up_ms, repetition, created_by, agent, phase, queued_at, phase_at, started_at, finished_at, \
    error, verdict, reasons, enforced_cpu, enforced_memory, engine_version, engine_name, labels, note, load, \
    generators, interleaved, warm_up_auto, profiled, cluster_generators, figures";

/// Reads the columns of a row by position, because a lookup by name would take longer than the read.
struct Columns<'r> {
    row: &'r rusqlite::Row<'r>,
    at: usize,
}

impl Columns<'_> {
    fn next<T: FromSql>(&mut self) -> rusqlite::Result<T> {
        self.at += 1;
        self.row.get(self.at - 1)
    }
}

impl RunRow {
    /// Reads a row of a statement that selects [`COLUMNS`].
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns { row, at: 0 };
        Ok(Self {
            seq: columns.next()?,
            id: columns.next()?,
            experiment_id: columns.next()?,
            retry_of: columns.next()?,
            origin: columns.next()?,
            target: columns.next()?,
            version: columns.next()?,
            target_kind: columns.next()?,
            target_identity: columns.next()?,
            size_name: columns.next()?,
            vcpus: columns.next()?,
            memory_bytes: columns.next()?,
            replicas: columns.next()?,
            scenario: columns.next()?,
            scenario_sha256: columns.next()?,
            parameters: columns.next()?,
            vus: columns.next()?,
            duration_ms: columns.next()?,
            warm_up_ms: columns.next()?,
            repetition: columns.next()?,
            created_by: columns.next()?,
            agent: columns.next()?,
            phase: columns.next()?,
            queued_at: columns.next()?,
            phase_at: columns.next()?,
            started_at: columns.next()?,
            finished_at: columns.next()?,
            error: columns.next()?,
            verdict: columns.next()?,
            reasons: columns.next()?,
            enforced_cpu: columns.next()?,
            enforced_memory: columns.next()?,
            engine_version: columns.next()?,
            engine_name: columns.next()?,
            labels: columns.next()?,
            note: columns.next()?,
            load: columns.next()?,
            generators: columns.next()?,
            interleaved: columns.next()?,
            warm_up_auto: columns.next()?,
            profiled: columns.next()?,
            cluster_generators: columns.next()?,
            figures: columns.next()?,
        })
    }
}

/// Returns the runs of a statement; `rest` follows `select … from run`.
pub(crate) fn select(connection: &Connection, rest: &str, values: impl Params) -> Result<Vec<Run>, Fault> {
    let mut statement = connection.prepare_cached(&format!("select {COLUMNS} from run {rest}"))?;
    let rows = statement.query_map(values, RunRow::read)?;
    rows.map(|row| Ok(Run::try_from(row?)?)).collect()
}

pub(crate) fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
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
            target,
            version,
            target_kind,
            target_identity,
            size_name,
            vcpus,
            memory_bytes,
            replicas,
            scenario,
            scenario_sha256,
            parameters,
            vus,
            duration_ms,
            warm_up_ms,
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
            load,
            generators,
            interleaved,
            warm_up_auto,
            profiled,
            cluster_generators,
            figures,
        } = row;
        let origin = if origin == "import" { Origin::Import } else { Origin::Agent };
        let size = match (size_name, vcpus, memory_bytes) {
            (Some(name), Some(vcpus), Some(memory)) => {
                Some(RunSize { name, vcpus, memory_bytes: u64::try_from(memory).map_err(decode)?, replicas })
            }
            _ => None,
        };
        Ok(Self {
            id,
            experiment: experiment_id,
            retry_of,
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
            origin,
            interleaved: interleaved.map_or(origin == Origin::Agent, |is| is == 1),
            target,
            version,
            size,
            scenario,
            scenario_sha256,
            parameters: serde_json::from_str(&parameters).map_err(decode)?,
            load: load.as_deref().map(load::read).transpose().map_err(decode)?,
            vus: integer(vus)?,
            repetition: u32::try_from(repetition).map_err(decode)?,
            profiled: profiled != 0,
            phase: phase.parse().map_err(decode)?,
            verdict: verdict.map(|text| text.parse()).transpose().map_err(|fault: String| decode(fault))?,
            reasons: serde_json::from_str(&reasons).map_err(decode)?,
            error,
            figures: Figures::from_stored(figures.as_deref()).map_err(decode)?,
            warm_up_s: warm_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_auto: warm_up_auto != 0,
            duration_s: duration_ms.map(|ms| ms as f64 / 1_000.0),
            enforced: enforced_cpu.zip(enforced_memory).map(|(cpu, memory)| RunEnforced { cpu, memory }),
            agent,
            generators: serde_json::from_str(&generators).map_err(decode)?,
            cluster_generators: u32::try_from(cluster_generators).map_err(decode)?,
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
            Ok(connection.query_row(&format!("select {COLUMNS} from run"), [], RunRow::read)?)
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
