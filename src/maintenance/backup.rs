//! Backups: a consistent copy of the database, taken while the server keeps running.
//!
//! SQLite's `vacuum into` reads in one transaction, which does not block writers. The copy has a temporary name until
//! it is complete and on disk.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use serde_json::json;
use sqlx::SqlitePool;
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::{
    app::{
        db::{self, OpenError},
        error::Error,
    },
    auth::audit::{AuditEvent, action::Action},
    maintenance,
};

/// Name prefix of copies made for download; leftovers of a killed server are removed at the next start.
const DOWNLOAD_PREFIX: &str = ".handing-out-";

/// What to do if the file already exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfExists {
    /// Keep it and write nothing.
    Refuse,
    /// Replace it once the new file is complete.
    Replace,
}

/// Why a backup failed; no partial file remains.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The file already exists.
    #[error("{0} already exists; choose another file, or use --force to replace it")]
    Exists(PathBuf),
    /// The file can't be written.
    #[error("{0} can't be written: {1}")]
    File(PathBuf, io::Error),
    /// The database can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// SQLite failed to copy the database.
    #[error("the database can't be copied: {0}")]
    Copy(#[from] sqlx::Error),
}

impl From<BackupError> for Error {
    fn from(fault: BackupError) -> Self {
        match fault {
            BackupError::Copy(fault) => fault.into(),
            BackupError::File(_, fault) if fault.kind() == io::ErrorKind::StorageFull => Self::DiskFull,
            other => Self::internal(other),
        }
    }
}

/// A file that is still being written, under a temporary name.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    to: PathBuf,
    if_exists: IfExists,
}

impl Draft {
    /// Creates the temporary file in the folder of the final one.
    pub fn beside(to: &Path, if_exists: IfExists) -> Result<Self, BackupError> {
        if if_exists == IfExists::Refuse && to.exists() {
            return Err(BackupError::Exists(to.to_owned()));
        }
        let created = tempfile::Builder::new().prefix(".backup-").suffix(".part").tempfile_in(folder_of(to));
        let file = created.map_err(|fault| BackupError::File(to.to_owned(), fault))?;
        Ok(Self { file, to: to.to_owned(), if_exists })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        io::Write::write_all(&mut self.file, bytes).map_err(|fault| BackupError::File(self.to.clone(), fault))
    }

    /// Syncs the file, renames it to its final name and returns its length in bytes.
    pub fn finish(self) -> Result<u64, BackupError> {
        let Self { file, to, if_exists } = self;
        let finish = || -> io::Result<u64> {
            file.as_file().sync_all()?;
            let bytes = file.as_file().metadata()?.len();
            match if_exists {
                IfExists::Refuse => file.persist_noclobber(&to)?,
                IfExists::Replace => file.persist(&to)?,
            };
            File::open(folder_of(&to))?.sync_all()?;
            Ok(bytes)
        };
        finish().map_err(|fault| match fault.kind() {
            io::ErrorKind::AlreadyExists => BackupError::Exists(to.clone()),
            _ => BackupError::File(to.clone(), fault),
        })
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies the database of a data folder, even while a server uses it. Returns the copy's length in bytes.
pub async fn of_folder(data: &Path, to: &Path, if_exists: IfExists) -> Result<u64, BackupError> {
    let draft = Draft::beside(to, if_exists)?;
    let pool = db::open_existing(&data.join(db::FILE)).await?;
    db::copy_into(&pool, draft.file.path()).await?;
    let bytes = draft.finish()?;
    let act = with_size(&AuditEvent::by_owner(Action::BackupMade, ""), bytes);
    // The copy is complete, so a missing audit entry is no reason to discard it.
    if let Err(fault) = maintenance::store::record(&pool, &act).await {
        tracing::warn!(%fault, "failed to write the backup to the audit log");
    }
    pool.close().await;
    Ok(bytes)
}

/// Makes a copy for download and returns it, already unlinked, with its length in bytes.
pub async fn for_download(pool: &SqlitePool, data: &Path) -> Result<(File, u64), BackupError> {
    let fault = |fault| BackupError::File(data.to_owned(), fault);
    let copy = tempfile::Builder::new().prefix(DOWNLOAD_PREFIX).tempfile_in(data).map_err(fault)?;
    db::copy_into(pool, copy.path()).await?;
    let open = move || -> io::Result<(File, u64)> {
        let file = copy.reopen()?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    };
    spawn_blocking(open).await.map_err(io::Error::other).and_then(|opened| opened).map_err(fault)
}

/// Adds the backup's length in bytes to its audit entry.
pub fn with_size(act: &AuditEvent, bytes: u64) -> AuditEvent {
    act.clone().with(json!({"bytes": bytes}))
}

/// Removes download copies left behind by a killed server.
pub fn sweep(data: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(DOWNLOAD_PREFIX) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gets_its_final_name_once_it_is_complete() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("a.db");
        let names = || fs::read_dir(folder.path()).expect("a folder").count();
        let mut draft = Draft::beside(&to, IfExists::Refuse).expect("a draft");
        draft.write(b"half").expect("room");
        assert!(!to.exists() && names() == 1);
        drop(draft);
        assert_eq!(names(), 0, "a dropped draft leaves no file");

        let mut draft = Draft::beside(&to, IfExists::Refuse).expect("a draft");
        draft.write(b"whole").expect("room");
        assert_eq!(draft.finish().expect("a file"), 5);
        assert!(matches!(Draft::beside(&to, IfExists::Refuse), Err(BackupError::Exists(_))));
        let mut draft = Draft::beside(&to, IfExists::Replace).expect("a draft");
        draft.write(b"another").expect("room");
        assert_eq!(fs::read(&to).expect("a file"), b"whole");
        draft.finish().expect("a file");
        assert_eq!((fs::read(&to).expect("a file"), names()), (b"another".to_vec(), 1));
    }

    #[test]
    fn a_file_created_in_the_meantime_is_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("a.db");
        let draft = Draft::beside(&to, IfExists::Refuse).expect("a draft");
        fs::write(&to, "written by another process").expect("a file");
        assert!(matches!(draft.finish(), Err(BackupError::Exists(_))));
        assert_eq!(fs::read(&to).expect("a file"), b"written by another process");
    }
}
