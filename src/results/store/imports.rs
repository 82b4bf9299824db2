//! SQL of imports.

use std::{
    slice,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_wire::reports::{read::read, report::Report, summary::Figures};
use rusqlite::{Connection, OptionalExtension, ToSql, TransactionBehavior, params};
use sqlx::SqliteConnection;
use tokio::sync::oneshot;

use crate::{
    app::{
        db::{Db, decode},
        ids::{ExperimentId, RunId},
        rows::Fault,
    },
    catalog::model::Engine,
    metrics,
    results::{
        blob,
        import::about::About,
        verdict::{limits::Limits, model::RULES},
    },
    runs::{
        model::{Run, RunSpec},
        store::{row::select, spec::SpecColumns},
        verdict::{Reason, Verdict},
    },
};

/// An imported summary with its verdict.
#[derive(Clone, Debug)]
pub struct NewImport {
    /// The run's id.
    pub id: RunId,
    /// Its metadata.
    pub about: About,
    /// The user who imported it.
    pub created_by: String,
    /// Its metrics.
    pub figures: Figures,
    /// Its verdict.
    pub verdict: Verdict,
    /// Reasons of the verdict.
    pub reasons: Vec<Reason>,
    /// Limits that it was judged by.
    pub limits: Limits,
    /// The load generator that wrote it.
    pub engine: Engine,
    /// The compressed summary.
    pub summary: Vec<u8>,
    /// The SHA-256 of the file, in hex.
    pub sha256: String,
    /// Time of the import, unix ms.
    pub now: i64,
}

/// Inserts a finished run.
const RUN: &str = "
    insert into run (id, origin, target, version, size_name, vcpus, memory_bytes, replicas, scenario, parameters, vus, duration_ms,
        repetition, note, created_by, phase, queued_at, phase_at, finished_at, verdict, reasons, engine_name, engine_version,
        interleaved, figures, plan_key)
    values (?, 'import', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'finished', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

const PHASE: &str = "insert into run_phase (run_id, phase, at) values (?, 'finished', ?)";
const SUMMARY: &str = "insert into run_summary (run_id, body, sha256) values (?, ?, ?)";
/// Finds a run of the same cell with the same file. A cross join keeps the order: a digest has few runs, a version
/// many.
const SAME: &str = "
    select run.id, run.repetition from run_summary cross join run on run.id = run_summary.run_id
    where sha256 = ? and deleted_at is null and target = ? and version is ? and vcpus is ? and memory_bytes is ?
        and replicas = ? and scenario is ? and parameters = ?";
const JUDGEMENT: &str = "insert into run_judgement (run_id, rules, limits, judged_at) values (?, ?, ?, ?)";
const LABELS: &str =
    "insert into run_label (label, run_seq) select value, (select seq from run where id = ?) from json_each(?)";

/// Finds runs of the same cell with as many requests and about the same mean latency: their files may be another form of
/// the same result.
const AS_MANY: &str = "
    select run.id, run.repetition, body from run join run_summary on run.id = run_summary.run_id
    where target = ? and version is ? and vcpus is ? and memory_bytes is ? and replicas = ? and scenario is ?
        and parameters = ? and origin = 'import' and deleted_at is null and figures ->> 'requests' = ?
        and ifnull(abs(figures ->> 'avg_ms' / ? - 1) < 0.02, 1)";

/// A file that is stored already: one measurement would count as two repetitions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "this {} was imported before, as run {of} (repetition {repetition}): one measurement is no second repetition; delete \
     that run to import the file again",
    if *.is_same_file { "file" } else { "result, in another form," }
)]
pub struct AlreadyImported {
    /// Whether it is the same file.
    pub is_same_file: bool,
    /// The run that is stored.
    pub of: RunId,
    /// Its repetition.
    pub repetition: u32,
    /// The run that was to be stored.
    pub run: RunId,
}

/// Uploads waiting to be stored.
///
/// The first to get the connection stores all of them in one transaction, so that many uploads share one sync to disk.
#[derive(Clone, Debug, Default)]
pub struct PendingImports(Arc<Mutex<Vec<Upload>>>);

/// The imports of one request; all or none are stored.
#[derive(Debug)]
struct Upload {
    imports: Vec<NewImport>,
    stored: oneshot::Sender<sqlx::Result<Vec<Run>>>,
}

impl PendingImports {
    fn uploads(&self) -> MutexGuard<'_, Vec<Upload>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores summaries as finished runs, all or none; committed when this returns.
pub async fn insert(db: &Db, waiting: &PendingImports, imports: Vec<NewImport>) -> sqlx::Result<Vec<Run>> {
    let (stored, mut answer) = oneshot::channel();
    waiting.uploads().push(Upload { imports, stored });
    tokio::select! {
        stored = &mut answer => return stored.map_err(decode)?,
        turn = db.write.acquire() => {
            let (turn, uploads) = (turn?, std::mem::take(&mut *waiting.uploads()));
            if !uploads.is_empty() {
                let rows = db.rows.clone();
                // A separate task: other callers wait for it even if this one is dropped.
                tokio::spawn(async move {
                    if let Err(fault) = rows.write(turn, |connection| store(connection, uploads)).await {
                        tracing::error!(%fault, "failed to store imports");
                    }
                });
            }
        }
    }
    answer.await.map_err(decode)?
}

/// Stores uploads in one transaction, or each in its own if that fails, so that one bad upload fails alone.
fn store(connection: &mut Connection, mut uploads: Vec<Upload>) {
    // Their callers are gone and would get no acknowledgement.
    uploads.retain(|upload| !upload.stored.is_closed());
    if let Ok(all) = transaction(connection, &uploads) {
        for (upload, runs) in uploads.into_iter().zip(all) {
            let _ = upload.stored.send(Ok(runs));
        }
        return;
    }
    for upload in uploads {
        let stored = transaction(connection, slice::from_ref(&upload));
        let runs = stored.map(|runs| runs.into_iter().flatten().collect());
        let _ = upload.stored.send(runs.map_err(sqlx::Error::Decode));
    }
}

fn transaction(connection: &mut Connection, uploads: &[Upload]) -> Result<Vec<Vec<Run>>, Fault> {
    // Rolled back when it is dropped without a commit.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let all: Vec<Vec<Run>> = uploads
        .iter()
        .map(|upload| upload.imports.iter().map(|import| insert_run(&transaction, import)).collect())
        .collect::<Result<_, Fault>>()?;
    transaction.commit()?;
    Ok(all)
}

fn insert_run(connection: &Connection, import: &NewImport) -> Result<Run, Fault> {
    let NewImport { id, about, summary, limits, now, .. } = import;
    unless_imported(connection, import)?;
    let id = id.as_str();
    run(connection, import)?;
    connection.prepare_cached(PHASE)?.execute(params![id, now])?;
    connection.prepare_cached(SUMMARY)?.execute(params![id, summary, import.sha256])?;
    connection.prepare_cached(JUDGEMENT)?.execute(params![id, RULES, serde_json::to_string(limits)?, now])?;
    if !about.labels.is_empty() {
        connection.prepare_cached(LABELS)?.execute(params![id, serde_json::to_string(&about.labels)?])?;
    }
    let stored = select(connection, "where id = ?", [id])?;
    stored.into_iter().next().ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

/// Fails if the same file is stored for the same cell.
fn unless_imported(connection: &Connection, import: &NewImport) -> Result<(), Fault> {
    let NewImport { id, about, sha256, .. } = import;
    let columns = SpecColumns::from(&about.spec);
    let cell: [&dyn ToSql; 7] = [
        &columns.target,
        &about.version,
        &columns.vcpus,
        &columns.memory_bytes,
        &columns.replicas,
        &columns.scenario,
        &columns.parameters,
    ];
    let mut statement = connection.prepare_cached(SAME)?;
    let same_file = [&[sha256 as &dyn ToSql], &cell[..]].concat();
    let found =
        statement.query_row(same_file.as_slice(), |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let again = |is_same_file, (of, repetition): (String, u32)| AlreadyImported {
        is_same_file,
        of: of.into(),
        repetition,
        run: id.clone(),
    };
    if let Some(found) = found {
        return Err(again(true, found).into());
    }
    match in_another_form(connection, import, &cell)? {
        Some(found) => Err(again(false, found).into()),
        None => Ok(()),
    }
}

/// Returns the run and repetition that the same result is stored as, such as its text beside its JSON.
fn in_another_form(
    connection: &Connection,
    NewImport { figures, summary, .. }: &NewImport,
    cell: &[&dyn ToSql],
) -> Result<Option<(String, u32)>, Fault> {
    let report = |packed: &[u8]| {
        let reports = read(&blob::unpack(packed).ok()?[..]).ok()?.reports;
        <[Report; 1]>::try_from(reports).ok().map(|[report]| report)
    };
    let requests = i64::try_from(figures.requests)?;
    let alike: [&dyn ToSql; 2] = [&requests, &figures.latency.avg_ms];
    let mut statement = connection.prepare_cached(AS_MANY)?;
    let mut rows = statement.query([cell, &alike[..]].concat().as_slice())?;
    while let Some(row) = rows.next()? {
        let body: Vec<u8> = row.get(2)?;
        let both = report(summary).zip(report(&body));
        if both.is_some_and(|(own, other)| own.is_same_result(&other)) {
            return Ok(Some((row.get(0)?, row.get(1)?)));
        }
    }
    Ok(None)
}

/// Returns what an import measured, as far as it is known.
fn spec(NewImport { about, figures, .. }: &NewImport) -> RunSpec {
    // The connections of an index may not have been open.
    let stated = about.spec.vus.filter(|_| figures.connections.is_none());
    let vus = figures.vus_max.and_then(|vus| u32::try_from(vus).ok()).or(stated);
    RunSpec { vus, ..about.spec.clone() }
}

fn run(connection: &Connection, import: &NewImport) -> Result<(), Fault> {
    let NewImport { id, about, created_by, verdict, engine, now, .. } = import;
    let spec = spec(import);
    let columns = SpecColumns::from(&spec);
    connection.prepare_cached(RUN)?.execute(params![
        id.as_str(),
        columns.target,
        about.version,
        columns.size_name,
        columns.vcpus,
        columns.memory_bytes,
        columns.replicas,
        columns.scenario,
        columns.parameters,
        columns.vus,
        columns.duration_ms,
        about.repetition,
        about.note,
        created_by,
        now,
        now,
        now,
        verdict.as_str(),
        serde_json::to_string(&import.reasons)?,
        engine.name,
        engine.version,
        about.interleaved,
        metrics::Figures::from(&import.figures).to_stored()?,
        spec.plan_key(),
    ])?;
    Ok(())
}

/// Assigns imported runs to an experiment.
pub async fn assign_to_experiment(
    connection: &mut SqliteConnection,
    ids: &[RunId],
    experiment: &ExperimentId,
) -> sqlx::Result<()> {
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
