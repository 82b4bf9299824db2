//! Reads rows of the table `run` into [`Run`].

use rusqlite::{Connection, Params};

use crate::{
    app::{
        ids::{ExperimentId, RunId},
        rows::Fault,
    },
    catalog::model::Engine,
    metrics::{Figures, counters::Counts},
    runs::{
        model::{Origin, Run, RunEnforced},
        store::spec::{self, Columns, SpecColumns},
        work::RunWork,
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
    pub(crate) requests: Option<i64>,
    pub(crate) failed: Option<i64>,
    pub(crate) rps: Option<f64>,
    pub(crate) measured_ms: Option<f64>,
    pub(crate) avg_ms: Option<f64>,
    pub(crate) min_ms: Option<f64>,
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p90_ms: Option<f64>,
    pub(crate) p95_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    pub(crate) p999_ms: Option<f64>,
    pub(crate) max_ms: Option<f64>,
    pub(crate) data_received_bytes: Option<f64>,
    pub(crate) data_sent_bytes: Option<f64>,
    pub(crate) iterations: Option<i64>,
    pub(crate) dropped_iterations: Option<i64>,
    pub(crate) checks_passed: Option<i64>,
    pub(crate) checks_failed: Option<i64>,
    pub(crate) thresholds: Option<i64>,
    pub(crate) thresholds_failed: Option<i64>,
    pub(crate) enforced_cpu: Option<String>,
    pub(crate) enforced_memory: Option<String>,
    pub(crate) engine_version: Option<String>,
    pub(crate) engine_name: Option<String>,
    pub(crate) labels: String,
    pub(crate) note: Option<String>,
    pub(crate) target_cpu_us: Option<i64>,
    pub(crate) target_memory_bytes: Option<i64>,
    pub(crate) received_per_s: Option<f64>,
    pub(crate) interleaved: Option<i64>,
    pub(crate) min_new_connections: Option<i64>,
    pub(crate) max_new_connections: Option<i64>,
    pub(crate) statuses: Option<String>,
    pub(crate) protocols: Option<String>,
    pub(crate) warmed_up_ms: Option<i64>,
    pub(crate) warm_up_steady: Option<i64>,
    pub(crate) throttled_share: Option<f64>,
    pub(crate) startup_ms: Option<f64>,
    pub(crate) idle_memory_bytes: Option<i64>,
    pub(crate) counters: Option<String>,
}

/// The columns of a row in reading order.
pub(crate) const COLUMNS: &str = "seq, id, experiment_id, retry_of, origin, version, target_kind, target_identity, \
    repetition, created_by, agent, phase, \
    queued_at, phase_at, started_at, finished_at, error, verdict, reasons, requests, failed, rps, measured_ms, \
    avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms, data_received_bytes, data_sent_bytes, \
    iterations, dropped_iterations, checks_passed, checks_failed, thresholds, thresholds_failed, enforced_cpu, \
    enforced_memory, engine_version, engine_name, labels, note, target_cpu_us, target_memory_bytes, \
    received_per_s, interleaved, min_new_connections, max_new_connections, statuses, protocols, \
    warmed_up_ms, warm_up_steady, throttled_share, startup_ms, idle_memory_bytes, counters";

impl RunRow {
    /// Reads a row of a statement that selects [`COLUMNS`] and those of the spec.
    pub(crate) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns::of(row);
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
            requests: columns.read()?,
            failed: columns.read()?,
            rps: columns.read()?,
            measured_ms: columns.read()?,
            avg_ms: columns.read()?,
            min_ms: columns.read()?,
            p50_ms: columns.read()?,
            p90_ms: columns.read()?,
            p95_ms: columns.read()?,
            p99_ms: columns.read()?,
            p999_ms: columns.read()?,
            max_ms: columns.read()?,
            data_received_bytes: columns.read()?,
            data_sent_bytes: columns.read()?,
            iterations: columns.read()?,
            dropped_iterations: columns.read()?,
            checks_passed: columns.read()?,
            checks_failed: columns.read()?,
            thresholds: columns.read()?,
            thresholds_failed: columns.read()?,
            enforced_cpu: columns.read()?,
            enforced_memory: columns.read()?,
            engine_version: columns.read()?,
            engine_name: columns.read()?,
            labels: columns.read()?,
            note: columns.read()?,
            target_cpu_us: columns.read()?,
            target_memory_bytes: columns.read()?,
            received_per_s: columns.read()?,
            interleaved: columns.read()?,
            min_new_connections: columns.read()?,
            max_new_connections: columns.read()?,
            statuses: columns.read()?,
            protocols: columns.read()?,
            warmed_up_ms: columns.read()?,
            warm_up_steady: columns.read()?,
            throttled_share: columns.read()?,
            startup_ms: columns.read()?,
            idle_memory_bytes: columns.read()?,
            counters: columns.read()?,
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

pub(crate) fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

pub(crate) fn integer<T: TryFrom<i64, Error: Into<Box<dyn std::error::Error + Send + Sync>>>>(
    value: Option<i64>,
) -> sqlx::Result<Option<T>> {
    value.map(T::try_from).transpose().map_err(decode)
}

#[expect(clippy::too_many_lines, reason = "one line a column: the list is the point")]
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
            requests,
            failed,
            rps,
            measured_ms,
            avg_ms,
            min_ms,
            p50_ms,
            p90_ms,
            p95_ms,
            p99_ms,
            p999_ms,
            max_ms,
            data_received_bytes,
            data_sent_bytes,
            iterations,
            dropped_iterations,
            checks_passed,
            checks_failed,
            thresholds,
            thresholds_failed,
            enforced_cpu,
            enforced_memory,
            engine_version,
            engine_name,
            labels,
            note,
            target_cpu_us,
            target_memory_bytes,
            received_per_s,
            interleaved,
            min_new_connections,
            max_new_connections,
            statuses,
            protocols,
            warmed_up_ms,
            warm_up_steady,
            throttled_share,
            startup_ms,
            idle_memory_bytes,
            counters,
        } = row;
        let origin = if origin == "import" { Origin::Import } else { Origin::Agent };
        let (requests, failed) = (integer::<u64>(requests)?, integer::<u64>(failed)?);
        let counts = |text: Option<String>| text.as_deref().map(serde_json::from_str).transpose().map_err(decode);
        let counters: Option<Counts> = counters.as_deref().map(serde_json::from_str).transpose().map_err(decode)?;
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
            figures: Figures {
                error_rate: requests
                    .zip(failed)
                    .filter(|(total, _)| *total > 0)
                    .map(|(total, failed)| failed as f64 / total as f64),
                cpu_ms_per_request: requests
                    .zip(target_cpu_us)
                    .filter(|(total, _)| *total > 0)
                    .map(|(total, us)| us as f64 / 1_000.0 / total as f64),
                target_memory_bytes: integer(target_memory_bytes)?,
                requests,
                failed,
                rps,
                avg_ms,
                min_ms,
                p50_ms,
                p90_ms,
                p95_ms,
                p99_ms,
                p999_ms,
                max_ms,
                measured_s: measured_ms.map(|ms| ms / 1_000.0),
                throttled_share,
                startup_ms,
                idle_memory_bytes: integer(idle_memory_bytes)?,
                counters: counters.unwrap_or_default().per_request(requests),
                data_received_bytes,
                data_sent_bytes,
                received_per_s: received_per_s.or_else(|| {
                    let seconds = measured_ms.filter(|ms| *ms > 0.0).map(|ms| ms / 1_000.0);
                    data_received_bytes.zip(seconds).map(|(bytes, seconds)| bytes / seconds)
                }),
            },
            iterations: integer(iterations)?,
            dropped_iterations: integer(dropped_iterations)?,
            work: RunWork::new(requests, integer(iterations)?, data_received_bytes)
                .with_sent(data_sent_bytes, requests)
                .with_connections(integer(min_new_connections)?, integer(max_new_connections)?, requests)
                .with_counts(counts(statuses)?, counts(protocols)?),
            checks_passed: integer(checks_passed)?,
            checks_failed: integer(checks_failed)?,
            thresholds: integer(thresholds)?,
            thresholds_failed: integer(thresholds_failed)?,
            warmed_up_s: warmed_up_ms.map(|ms| ms as f64 / 1_000.0),
            warm_up_steady: warm_up_steady.map(|steady| steady != 0),
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
    use crate::app::db;

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
}
