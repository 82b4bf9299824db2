//! SQL of imports.

use brewbench_agent::reports::summary::Figures;
use sqlx::{AssertSqlSafe, Sqlite, SqliteConnection, SqlitePool, query::QueryAs, sqlite::SqliteArguments};

use super::figures::FigureColumns;
use crate::{
    app::ids::{ExperimentId, RunId},
    catalog::model::Engine,
    results::{
        import::About,
        verdict::{limits::Limits, model::RULES},
    },
    runs::{
        model::Run,
        store::row::{RunRow, decode},
        verdict::{Reason, Verdict},
    },
};

/// A summary that was read and judged.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// The run's id.
    pub id: RunId,
    /// What is known besides the summary.
    pub about: About,
    /// Who brought it.
    pub created_by: String,
    /// From the summary.
    pub figures: Figures,
    /// Judged from the figures.
    pub verdict: Verdict,
    /// What speaks against it.
    pub reasons: Vec<Reason>,
    /// By which limits it was judged.
    pub limits: Limits,
    /// What made the report.
    pub engine: Engine,
    /// The compressed summary.
    pub summary: Vec<u8>,
    /// Unix ms.
    pub now: i64,
}

/// What stores one summary as a run that has ended.
const RUN: &str = "
    insert into run (id, origin, target, version, size_name, vcpus, memory_bytes, scenario, parameters, vus, duration_ms,
        repetition, note, created_by, phase, queued_at, phase_at, finished_at, verdict, reasons, engine_name, engine_version, requests,
        failed, rps, measured_ms, avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms, data_received_bytes,
        data_sent_bytes, received_per_s, iterations, dropped_iterations, checks_passed, checks_failed, thresholds,
        thresholds_failed, in_turn, least_new_connections, most_new_connections)
    values (?, 'import', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'finished', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
        ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    returning *;
    insert into run_phase (run_id, phase, at) values (?, 'finished', ?);
    insert into run_summary (run_id, body) values (?, ?);
    insert into run_judgement (run_id, rules, limits, judged_at) values (?, ?, ?, ?);";

/// Only for those that have any.
const LABELS: &str = "
    insert into run_label (label, run_seq) select value, (select seq from run where id = ?) from json_each(?);";

/// Stores summaries as runs that have ended, all or none; committed when this returns.
///
/// The transaction is one string: each string is a trip to the thread that owns the connection, and while an import
/// makes its trips, all others wait.
pub async fn insert(pool: &SqlitePool, imports: Vec<NewImport>) -> sqlx::Result<Vec<Run>> {
    let mut connection = pool.acquire().await?;
    // A task of its own ends whatever becomes of the caller: the connection must not be left inside a transaction.
    let stored = tokio::spawn(async move {
        let stored = transaction(&mut connection, &imports).await;
        if stored.is_err() {
            // SQLite may have rolled back by itself, when the disk was full: then there is nothing to roll back.
            let _ = sqlx::query!("rollback").execute(&mut *connection).await;
        }
        stored
    });
    stored.await.map_err(decode)?
}

async fn transaction(connection: &mut SqliteConnection, imports: &[NewImport]) -> sqlx::Result<Vec<Run>> {
    let statements =
        imports.iter().map(|import| if import.about.labels.is_empty() { [RUN, ""] } else { [RUN, LABELS] });
    let statements = statements.flatten().collect::<String>();
    // Checked as it runs: what the macro infers of `returning *` makes empty texts of nulls that an index leaves out.
    let mut query = sqlx::query_as(AssertSqlSafe(format!("begin immediate; {statements} commit")));
    // What differs from folder to folder is not worth remembering.
    query = query.persistent(imports.len() == 1);
    for import in imports {
        query = bound(query, import)?;
    }
    // All of them, because a stream that is left early leaves statements undone.
    let rows: Vec<RunRow> = query.fetch_all(connection).await?;
    let labelled = |(row, import): (RunRow, &NewImport)| {
        let mut run = Run::try_from(row)?;
        run.labels.clone_from(&import.about.labels);
        run.labels.sort();
        Ok(run)
    };
    rows.into_iter().zip(imports).map(labelled).collect()
}

type Statements<'q> = QueryAs<'q, Sqlite, RunRow, SqliteArguments>;

fn bound<'q>(query: Statements<'q>, import: &'q NewImport) -> sqlx::Result<Statements<'q>> {
    let NewImport { id, about, created_by, verdict, engine, summary, now, .. } = import;
    let verdict = verdict.as_str();
    let reasons = serde_json::to_string(&import.reasons).map_err(decode)?;
    let limits = serde_json::to_string(&import.limits).map_err(decode)?;
    let parameters = serde_json::to_string(&about.parameters).map_err(decode)?;
    let size = about.size.as_ref();
    let (size_name, vcpus) = (size.map(|size| &size.name), size.map(|size| size.vcpus));
    let memory_bytes = size.map(|size| size.memory_bytes.cast_signed());
    let vus = import.figures.vus_max.or(about.vus).map(u64::cast_signed);
    #[expect(clippy::cast_possible_truncation, reason = "a load lasts some days at most")]
    let duration_ms = about.duration_s.map(|seconds| (seconds * 1_000.0).round() as i64);
    let figures = FigureColumns::from(&import.figures);
    let mut query = query
        .bind(id)
        .bind(&about.target)
        .bind(&about.version)
        .bind(size_name)
        .bind(vcpus)
        .bind(memory_bytes)
        .bind(&about.scenario)
        .bind(parameters)
        .bind(vus)
        .bind(duration_ms)
        .bind(about.repetition)
        .bind(&about.note)
        .bind(created_by)
        .bind(now)
        .bind(now)
        .bind(now)
        .bind(verdict)
        .bind(reasons)
        .bind(&engine.name)
        .bind(&engine.version)
        .bind(figures.requests)
        .bind(figures.failed)
        .bind(figures.rps)
        .bind(figures.measured_ms)
        .bind(figures.avg_ms)
        .bind(figures.min_ms)
        .bind(figures.p50_ms)
        .bind(figures.p90_ms)
        .bind(figures.p95_ms)
        .bind(figures.p99_ms)
        .bind(figures.p999_ms)
        .bind(figures.max_ms)
        .bind(figures.data_received_bytes)
        .bind(figures.data_sent_bytes)
        .bind(figures.received_per_s)
        .bind(figures.iterations)
        .bind(figures.dropped_iterations)
        .bind(figures.checks_passed)
        .bind(figures.checks_failed)
        .bind(figures.thresholds)
        .bind(figures.thresholds_failed)
        .bind(about.in_turn)
        .bind(figures.least_new_connections)
        .bind(figures.most_new_connections)
        .bind(id)
        .bind(now)
        .bind(id)
        .bind(summary)
        .bind(id)
        .bind(RULES)
        .bind(limits)
        .bind(now);
    if !about.labels.is_empty() {
        let labels = serde_json::to_string(&about.labels).map_err(decode)?;
        query = query.bind(id).bind(labels);
    }
    Ok(query)
}

/// Makes imported runs those of an experiment.
pub async fn gather(connection: &mut SqliteConnection, ids: &[RunId], experiment: &ExperimentId) -> sqlx::Result<()> {
    let ids = serde_json::to_string(ids).map_err(decode)?;
    sqlx::query!(
        "update run set experiment_id = ?2
         where id in (select value from json_each(?1)) and origin = 'import' and experiment_id is null",
        ids,
        experiment
    )
    .execute(connection)
    .await?;
    Ok(())
}
