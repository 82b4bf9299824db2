//! Looking a database over: is it whole, does each thing belong to another that is there, can everything be read.

use std::path::{Path, PathBuf};

use brewbench_agent::wire::series::Packed;
use serde::Serialize;
use sqlx::SqlitePool;

use crate::{
    app::db::{self, OpenError},
    maintenance::{self, store::Blobs},
    results::blob,
    web::format::plural,
};

/// Among how many unreadable blobs of a kind are named one by one.
const NAMED: usize = 10;

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Findings {
    /// The database.
    pub file: PathBuf,
    /// Its newest migration.
    pub migration: Option<i64>,
    /// How many runs there are.
    pub runs: i64,
    /// How many summaries, series and so on were read.
    pub blobs: usize,
    /// Why it can't be used at all.
    pub unfit: Option<String>,
    /// What is wrong with it, a sentence each.
    pub faults: Vec<String>,
}

impl Findings {
    /// Whether nothing is wrong.
    pub fn is_well(&self) -> bool {
        self.unfit.is_none() && self.faults.is_empty()
    }
}

/// Looks the database of a data folder over; a server may go on with it.
pub async fn of_folder(data: &Path) -> Result<Findings, OpenError> {
    check(&data.join(db::FILE)).await
}

/// Looks a database over.
pub async fn check(file: &Path) -> Result<Findings, OpenError> {
    let mut found = Findings { file: file.to_owned(), ..Findings::default() };
    let looked = match db::as_it_is(file).await {
        Ok(pool) => {
            let looked = look(&pool, &mut found).await;
            pool.close().await;
            looked
        }
        Err(OpenError::Sqlite(_, fault)) => Err(fault),
        Err(other) => return Err(other),
    };
    match looked {
        Err(sqlx::Error::Database(fault)) if is_damage(fault.code().as_deref()) => {
            found.unfit = Some(format!("it is no SQLite database, or a damaged one: {}", fault.message()));
            Ok(found)
        }
        Err(fault) => Err(OpenError::Sqlite(file.to_owned(), fault)),
        Ok(()) => Ok(found),
    }
}

/// `SQLITE_CORRUPT`, `SQLITE_NOTADB` and their kinds.
fn is_damage(code: Option<&str>) -> bool {
    code.and_then(|code| code.parse::<u32>().ok()).is_some_and(|code| matches!(code & 0xff, 11 | 26))
}

async fn look(pool: &SqlitePool, found: &mut Findings) -> sqlx::Result<()> {
    let torn = maintenance::store::torn(pool).await?;
    if let Some(first) = torn.first() {
        found.unfit = Some(format!("SQLite finds it damaged: {first}"));
        found.faults = torn;
        return Ok(());
    }
    found.migration = maintenance::store::migration(pool).await?;
    match found.migration {
        None => found.unfit = Some("it is no database of brewbench".to_owned()),
        Some(version) if version > db::newest() => {
            found.unfit = Some(format!("it was written by a newer brewbench (migration {version}); upgrade this one"));
        }
        Some(_) => {}
    }
    if found.unfit.is_some() {
        return Ok(());
    }
    found.runs = maintenance::store::runs(pool).await?;
    for orphans in maintenance::store::orphans(pool).await? {
        let rows = plural(usize::try_from(orphans.rows).unwrap_or_default(), "row");
        found.faults.push(format!("{}: {rows} of which the {} is not there", orphans.table, orphans.parent));
    }
    for (what, runs) in [
        ("summary", maintenance::store::without_summary(pool).await?),
        ("record of what the agent saw", maintenance::store::without_evidence(pool).await?),
    ] {
        if runs > 0 {
            let runs = plural(usize::try_from(runs).unwrap_or_default(), "finished run");
            found.faults.push(format!("{runs} without a {what}"));
        }
    }
    for kind in Blobs::ALL {
        read_all(pool, kind, found).await?;
    }
    Ok(())
}

/// Unpacks all blobs of a kind, portion by portion.
async fn read_all(pool: &SqlitePool, kind: Blobs, found: &mut Findings) -> sqlx::Result<()> {
    let (mut after, mut unreadable) = (String::new(), Vec::new());
    loop {
        let portion = maintenance::store::blobs(pool, kind, &after).await?;
        let Some((last, _)) = portion.last() else { break };
        after.clone_from(last);
        found.blobs += portion.len();
        for (run, body) in portion {
            if let Err(fault) = read(kind, body) {
                unreadable.push(format!("the {} of run {run} can't be read: {fault}", kind.word()));
            }
        }
    }
    let more = unreadable.len().saturating_sub(NAMED);
    unreadable.truncate(NAMED);
    found.faults.append(&mut unreadable);
    if more > 0 {
        found.faults.push(format!("the {} of {} more can't be read", kind.word(), plural(more, "run")));
    }
    Ok(())
}

fn read(kind: Blobs, body: Vec<u8>) -> Result<(), String> {
    match kind {
        Blobs::Summaries | Blobs::Evidence | Blobs::Parts | Blobs::PartSummaries => {
            blob::unpack(&body).map(drop).map_err(|fault| fault.to_string())
        }
        Blobs::Series | Blobs::PartSeries => {
            Packed::from_bytes(body).unpack().map(drop).map_err(|fault| fault.to_string())
        }
    }
}
