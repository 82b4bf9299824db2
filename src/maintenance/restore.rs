//! The way back: a backup takes the place of a data folder's database, which is kept beside it.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    app::db::{self, OpenError},
    auth::audit::{Act, deed::Deed},
    maintenance::{self, integrity_check},
};

/// What SQLite keeps beside a database, by the ends of the names; first the database itself.
const PARTS: [&str; 3] = ["", "-wal", "-shm"];

/// Nothing was restored; what was there is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A server has the folder, or it can't be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It can't be used.
    #[error("{0} is not restored: {1}")]
    Unfit(PathBuf, String),
    /// It is a database in use, not a copy of one.
    #[error(
        "{0} has a log of its own beside it ({0}-wal), so it is not whole by itself; make a copy with `brewbench backup`"
    )]
    InUse(PathBuf),
    /// The disk.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// What was done.
#[derive(Debug)]
pub struct Restored {
    /// Where the database is that was there before.
    pub aside: Option<PathBuf>,
    /// How many runs the restored one has.
    pub runs: i64,
    /// What is wrong with the restored one, though it can be used.
    pub faults: Vec<String>,
}

/// Puts a backup in the place of a data folder's database.
pub async fn restore(from: &Path, data: &Path) -> Result<Restored, RestoreError> {
    let unread = |fault| RestoreError::File(from.to_owned(), fault);
    if fs::metadata(with_end(from, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(RestoreError::InUse(from.to_owned()));
    }
    let mut source = File::open(from).map_err(unread)?;
    let _lock = db::lock(data).await?;
    let fault = |fault| RestoreError::File(data.to_owned(), fault);
    // A folder, because SQLite may put something beside what it looks at.
    let folder = tempfile::Builder::new().prefix(".restore-").tempdir_in(data).map_err(fault)?;
    let draft = folder.path().join(db::FILE);
    copy(&mut source, &draft, data).map_err(fault)?;
    let found = integrity_check::check(&draft).await?;
    if let Some(why) = found.unfit {
        return Err(RestoreError::Unfit(from.to_owned(), why));
    }
    note(&draft, from).await?;
    File::open(&draft).and_then(|file| file.sync_all()).map_err(fault)?;
    let aside = put_aside(data).await.map_err(fault)?;
    fs::rename(&draft, data.join(db::FILE)).map_err(fault)?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(fault)?;
    Ok(Restored { aside, runs: found.runs, faults: found.faults })
}

/// Copies a backup; it belongs to whom the data folder belongs to, also where root restores it.
fn copy(source: &mut File, draft: &Path, data: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(draft)?;
    io::copy(source, &mut file)?;
    let (ours, owner) = (file.metadata()?, fs::metadata(data)?);
    if ours.uid() != owner.uid() {
        chown(draft, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Into the log of the restored database: what is after this entry happened after the restoration.
async fn note(draft: &Path, from: &Path) -> Result<(), RestoreError> {
    let pool = db::as_it_is(draft).await?;
    let act = Act::by_owner(Deed::Restored, &from.display().to_string());
    if let Err(fault) = maintenance::store::note(&pool, &act).await {
        tracing::warn!(%fault, "the restoration is not in the audit log");
    }
    pool.close().await;
    Ok(())
}

/// Gives the database that is there another name, with what is beside it.
async fn put_aside(data: &Path) -> io::Result<Option<PathBuf>> {
    let old = data.join(db::FILE);
    if !old.exists() {
        return Ok(None);
    }
    // Its log into the file, so that it is whole by itself. If it is broken, so is what is kept.
    if let Ok(pool) = db::as_it_is(&old).await {
        let _ = maintenance::store::checkpoint(&pool).await;
        pool.close().await;
    }
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let free = |n: &u32| {
        let more = if *n == 0 { String::new() } else { format!("-{n}") };
        Some(data.join(format!("{}.before-{stamp}{more}", db::FILE))).filter(|path| !path.exists())
    };
    let aside = (0..100).find_map(|n| free(&n)).ok_or(io::ErrorKind::AlreadyExists)?;
    for end in PARTS {
        match fs::rename(with_end(&old, end), with_end(&aside, end)) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
    }
    File::open(data)?.sync_all()?;
    Ok(Some(aside))
}

fn with_end(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}
