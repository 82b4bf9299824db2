//! Restores a backup into a data folder and keeps the previous database beside it.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, chown},
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use crate::{
    app::{
        db::{self, OpenError},
        open_mark::{self, with_suffix},
    },
    auth::audit::{AuditEvent, action::Action},
    maintenance::{self, integrity_check},
};

/// File name suffixes of a database: the file itself, its write-ahead log, its shared memory, and the mark of a server.
const PARTS: [&str; 4] = ["", "-wal", "-shm", open_mark::SUFFIX];

/// Why a restore failed; the data folder is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A server uses the folder, or its database can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The backup is unusable.
    #[error("cannot restore {0}: {1}")]
    Unfit(PathBuf, String),
    /// The file is a database in use rather than a copy.
    #[error("{0} is incomplete without its log {0}-wal; make a copy with `brewbench backup`")]
    InUse(PathBuf),
    /// A file operation failed.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// The result of a restore.
#[derive(Debug)]
pub struct Restored {
    /// Where the previous database is now.
    pub aside: Option<PathBuf>,
    /// Number of runs in the restored database.
    pub runs: i64,
    /// Problems of the restored database that do not make it unusable.
    pub faults: Vec<String>,
}

/// Replaces the database of a data folder with a backup.
pub async fn restore(from: &Path, data: &Path) -> Result<Restored, RestoreError> {
    let unread = |fault| RestoreError::File(from.to_owned(), fault);
    if fs::metadata(with_suffix(from, "-wal")).is_ok_and(|log| log.len() > 0) {
        return Err(RestoreError::InUse(from.to_owned()));
    }
    let mut source = File::open(from).map_err(unread)?;
    let _lock = db::lock(data).await?;
    let fault = |fault| RestoreError::File(data.to_owned(), fault);
    // A folder, because SQLite may create files beside the database that it checks.
    let folder = tempfile::Builder::new().prefix(".restore-").tempdir_in(data).map_err(fault)?;
    let draft = folder.path().join(db::FILE);
    copy(&mut source, &draft, data).map_err(fault)?;
    let found = integrity_check::check(&draft).await?;
    if let Some(why) = found.unfit {
        return Err(RestoreError::Unfit(from.to_owned(), why));
    }
    record_restore(&draft, from).await?;
    File::open(&draft).and_then(|file| file.sync_all()).map_err(fault)?;
    let aside = put_aside(data).await.map_err(fault)?;
    fs::rename(&draft, data.join(db::FILE)).map_err(fault)?;
    File::open(data).and_then(|folder| folder.sync_all()).map_err(fault)?;
    Ok(Restored { aside, runs: found.runs, faults: found.faults })
}

/// Copies a backup and gives it the owner of the data folder, in case root restores it.
fn copy(source: &mut File, draft: &Path, data: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(draft)?;
    io::copy(source, &mut file)?;
    let (copy, owner) = (file.metadata()?, fs::metadata(data)?);
    if copy.uid() != owner.uid() {
        chown(draft, Some(owner.uid()), Some(owner.gid()))?;
    }
    Ok(())
}

/// Writes an audit entry to the restored database, which separates entries from before and after the restore.
async fn record_restore(draft: &Path, from: &Path) -> Result<(), RestoreError> {
    let pool = db::open_existing(draft).await?;
    let act = AuditEvent::by_owner(Action::Restored, &from.display().to_string());
    if let Err(fault) = maintenance::store::record(&pool, &act).await {
        tracing::warn!(%fault, "failed to write the restore to the audit log");
    }
    pool.close().await;
    Ok(())
}

/// Renames the current database and its log files.
async fn put_aside(data: &Path) -> io::Result<Option<PathBuf>> {
    let old = data.join(db::FILE);
    if !old.exists() {
        return Ok(None);
    }
    // Move the log into the file so that the file is complete. If the database is damaged, keep it as it is.
    if let Ok(pool) = db::open_existing(&old).await {
        let _ = maintenance::store::checkpoint(&pool).await;
        pool.close().await;
    }
    let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
    let free = |n: &u32| {
        let more = if *n == 0 { String::new() } else { format!("-{n}") };
        Some(data.join(format!("{}.before-{stamp}{more}", db::FILE))).filter(|path| !path.exists())
    };
    let aside = (0..100).find_map(|n| free(&n)).ok_or(io::ErrorKind::AlreadyExists)?;
    for suffix in PARTS {
        match fs::rename(with_suffix(&old, suffix), with_suffix(&aside, suffix)) {
            Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(fault),
            _ => {}
        }
    }
    File::open(data)?.sync_all()?;
    Ok(Some(aside))
}
