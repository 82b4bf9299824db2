//! Backups: a copy of the database as it is at one moment, made while a server goes on with its work.
//!
//! SQLite's `vacuum into` reads in one transaction, which keeps nobody from writing. The copy has a name of its own until
//! it is whole and on disk.

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
    auth::audit::{Act, deed::Deed},
    maintenance,
};

/// How the names of copies begin that are made to be handed out; what a killed server left goes at the next start.
const TO_HAND_OUT: &str = ".handing-out-";

/// What is done about a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfThere {
    /// It stays, and nothing is written.
    Refuse,
    /// It goes, once the new one is whole.
    Replace,
}

/// A backup was not made; nothing is left of it.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A file of that name.
    #[error("{0} is there already; name another file, or say --force to replace it")]
    There(PathBuf),
    /// The disk.
    #[error("{0} can't be written: {1}")]
    File(PathBuf, io::Error),
    /// The data folder.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// SQLite.
    #[error("the database could not be copied: {0}")]
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

/// A file on its way: it has no name that anybody would take for a whole one.
#[derive(Debug)]
pub struct Draft {
    file: NamedTempFile,
    to: PathBuf,
    there: IfThere,
}

impl Draft {
    /// Beside the file that it is to become.
    pub fn beside(to: &Path, there: IfThere) -> Result<Self, BackupError> {
        if there == IfThere::Refuse && to.exists() {
            return Err(BackupError::There(to.to_owned()));
        }
        let made = tempfile::Builder::new().prefix(".backup-").suffix(".part").tempfile_in(folder_of(to));
        let file = made.map_err(|fault| BackupError::File(to.to_owned(), fault))?;
        Ok(Self { file, to: to.to_owned(), there })
    }

    /// Adds to it.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), BackupError> {
        io::Write::write_all(&mut self.file, bytes).map_err(|fault| BackupError::File(self.to.clone(), fault))
    }

    /// Gives it its name, once all of it is on disk. Gives its length in bytes.
    pub fn finish(self) -> Result<u64, BackupError> {
        let Self { file, to, there } = self;
        let done = || -> io::Result<u64> {
            file.as_file().sync_all()?;
            let bytes = file.as_file().metadata()?.len();
            match there {
                IfThere::Refuse => file.persist_noclobber(&to)?,
                IfThere::Replace => file.persist(&to)?,
            };
            File::open(folder_of(&to))?.sync_all()?;
            Ok(bytes)
        };
        done().map_err(|fault| match fault.kind() {
            io::ErrorKind::AlreadyExists => BackupError::There(to.clone()),
            _ => BackupError::File(to.clone(), fault),
        })
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies the database of a data folder, whether or not a server has it. Gives the copy's length in bytes.
pub async fn of_folder(data: &Path, to: &Path, there: IfThere) -> Result<u64, BackupError> {
    let draft = Draft::beside(to, there)?;
    let pool = db::as_it_is(&data.join(db::FILE)).await?;
    maintenance::store::copy(&pool, draft.file.path()).await?;
    let bytes = draft.finish()?;
    let act = made(&Act::by_owner(Deed::BackupMade, ""), bytes);
    // The copy is whole: that it can't be told of is no reason to take it back.
    if let Err(fault) = maintenance::store::note(&pool, &act).await {
        tracing::warn!(%fault, "the backup is not in the audit log");
    }
    pool.close().await;
    Ok(bytes)
}

/// A copy to be read once; it has no name any more. With its length in bytes.
pub async fn to_hand_out(pool: &SqlitePool, data: &Path) -> Result<(File, u64), BackupError> {
    let fault = |fault| BackupError::File(data.to_owned(), fault);
    let made = tempfile::Builder::new().prefix(TO_HAND_OUT).tempfile_in(data).map_err(fault)?;
    maintenance::store::copy(pool, made.path()).await?;
    let open = move || -> io::Result<(File, u64)> {
        let file = made.reopen()?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    };
    spawn_blocking(open).await.map_err(io::Error::other).and_then(|opened| opened).map_err(fault)
}

/// That a backup was made, with its length in bytes.
pub fn made(act: &Act, bytes: u64) -> Act {
    act.clone().with(json!({"bytes": bytes}))
}

/// Removes what a server that was killed was handing out.
pub fn sweep(data: &Path) -> io::Result<()> {
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(TO_HAND_OUT) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_name_only_when_it_is_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("a.db");
        let names = || fs::read_dir(folder.path()).expect("a folder").count();
        let mut draft = Draft::beside(&to, IfThere::Refuse).expect("a draft");
        draft.write(b"half").expect("room");
        assert!(!to.exists() && names() == 1);
        drop(draft);
        assert_eq!(names(), 0, "nothing is left of what was not finished");

        let mut draft = Draft::beside(&to, IfThere::Refuse).expect("a draft");
        draft.write(b"whole").expect("room");
        assert_eq!(draft.finish().expect("a file"), 5);
        assert!(matches!(Draft::beside(&to, IfThere::Refuse), Err(BackupError::There(_))));
        let mut draft = Draft::beside(&to, IfThere::Replace).expect("a draft");
        draft.write(b"another").expect("room");
        assert_eq!(fs::read(&to).expect("a file"), b"whole");
        draft.finish().expect("a file");
        assert_eq!((fs::read(&to).expect("a file"), names()), (b"another".to_vec(), 1));
    }

    #[test]
    fn a_file_that_came_meanwhile_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("a.db");
        let draft = Draft::beside(&to, IfThere::Refuse).expect("a draft");
        fs::write(&to, "somebody else's").expect("a file");
        assert!(matches!(draft.finish(), Err(BackupError::There(_))));
        assert_eq!(fs::read(&to).expect("a file"), b"somebody else's");
    }
}
