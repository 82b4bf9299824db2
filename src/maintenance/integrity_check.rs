//! The integrity check: finds SQLite damage, dangling references and unreadable blobs.

use std::path::{Path, PathBuf};

use brewbench_wire::{profile::pprof, series::Packed};
use serde::Serialize;
use sqlx::{SqlitePool, error::DatabaseError};

use crate::{
    app::db::{self, OpenError},
    maintenance::{self, store::Blobs},
    results::blob,
    web::format::plural,
};

/// How many unreadable blobs of one kind are listed individually.
const MAX_LISTED: usize = 10;

/// The result of an integrity check.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The database file.
    pub file: PathBuf,
    /// Its newest migration.
    pub migration: Option<i64>,
    /// Number of runs.
    pub runs: i64,
    /// Number of blobs (summaries, series, …) that were read.
    pub blobs: usize,
    /// Why the database is unusable, if it is.
    pub unfit: Option<String>,
    /// Problems found, one sentence each.
    pub faults: Vec<String>,
}

impl Findings {
    /// Whether the check found no problem.
    pub fn is_well(&self) -> bool {
        self.unfit.is_none() && self.faults.is_empty()
    }
}

/// Checks the database of a data folder, even while a server uses it.
pub async fn of_folder(data: &Path) -> Result<Findings, OpenError> {
    check(&data.join(db::FILE)).await
}

/// Checks a database file.
pub async fn check(file: &Path) -> Result<Findings, OpenError> {
    let mut found = Findings { file: file.to_owned(), ..Findings::default() };
    let checked = match db::open_existing(file).await {
        Ok(pool) => {
            let result = check_pool(&pool, &mut found).await;
            pool.close().await;
            result
        }
        Err(OpenError::Sqlite(_, fault)) => Err(fault),
        Err(other) => return Err(other),
    };
    match checked {
        Err(fault) if is_damage(&fault) => {
            let message =
                fault.as_database_error().map_or_else(|| fault.to_string(), |fault| fault.message().to_owned());
            found.unfit = Some(format!("not a SQLite database, or damaged: {message}"));
            Ok(found)
        }
        Err(fault) => Err(OpenError::Sqlite(file.to_owned(), fault)),
        Ok(()) => Ok(found),
    }
}

/// Whether an error is `SQLITE_CORRUPT`, `SQLITE_NOTADB` or an extended code of these.
pub(crate) fn is_damage(fault: &sqlx::Error) -> bool {
    let code = fault.as_database_error().and_then(DatabaseError::code);
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| matches!(code & 0xff, 11 | 26))
}

async fn check_pool(pool: &SqlitePool, found: &mut Findings) -> sqlx::Result<()> {
    let damage = maintenance::store::damage(pool).await?;
    if let Some(first) = damage.first() {
        found.unfit = Some(format!("SQLite reports it as damaged: {first}"));
        found.faults = damage;
        return Ok(());
    }
    found.migration = maintenance::store::migration(pool).await?;
    match found.migration {
        None => found.unfit = Some("not a brewbench database".to_owned()),
        Some(version) if version > db::newest() => {
            found.unfit = Some(format!("written by a newer brewbench (migration {version}); upgrade this one"));
        }
        Some(_) => {}
    }
    if found.unfit.is_some() {
        return Ok(());
    }
    found.runs = maintenance::store::runs(pool).await?;
    for orphans in maintenance::store::orphans(pool).await? {
        let rows = plural(usize::try_from(orphans.rows).unwrap_or_default(), "row");
        found.faults.push(format!("{}: {rows} whose {} is missing", orphans.table, orphans.parent));
    }
    for (what, runs) in [
        ("a summary", maintenance::store::without_summary(pool).await?),
        ("evidence", maintenance::store::without_evidence(pool).await?),
    ] {
        if runs > 0 {
            let runs = plural(usize::try_from(runs).unwrap_or_default(), "finished run");
            found.faults.push(format!("{runs} without {what}"));
        }
    }
    for kind in Blobs::ALL {
        read_all(pool, kind, found).await?;
    }
    Ok(())
}

/// Unpacks all blobs of a kind in batches.
async fn read_all(pool: &SqlitePool, kind: Blobs, found: &mut Findings) -> sqlx::Result<()> {
    let (mut after, mut unreadable) = (String::new(), Vec::new());
    loop {
        let batch = maintenance::store::blobs(pool, kind, &after).await?;
        let Some((last, _)) = batch.last() else { break };
        after.clone_from(last);
        found.blobs += batch.len();
        for (run, body) in batch {
            if let Err(fault) = read(kind, &run, body) {
                unreadable.push(format!("the {} of run {run} can't be read: {fault}", kind.word()));
            }
        }
    }
    let more = unreadable.len().saturating_sub(MAX_LISTED);
    unreadable.truncate(MAX_LISTED);
    found.faults.append(&mut unreadable);
    if more > 0 {
        found.faults.push(format!("the {} of {} more can't be read", kind.word(), plural(more, "run")));
    }
    Ok(())
}

fn read(kind: Blobs, id: &str, body: Vec<u8>) -> Result<(), String> {
    match kind {
        Blobs::Summaries | Blobs::Evidence | Blobs::Parts | Blobs::PartSummaries => {
            blob::unpack(&body).map(drop).map_err(|fault| fault.to_string())
        }
        Blobs::Profiles => {
            let kind = id.rsplit('#').next().unwrap_or_default().parse()?;
            pprof::decode(&body, kind).map(drop).map_err(|fault| fault.to_string())
        }
        Blobs::Series | Blobs::PartSeries => {
            Packed::from_bytes(body).unpack().map(drop).map_err(|fault| fault.to_string())
        }
    }
}
