//! One process per folder: an exclusive lock that the kernel releases when its holder exits.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;

/// How long another process may hold the lock before it counts as taken. A process killed while it started a program
/// leaves a forked copy that holds its files for a few more milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// Locks a folder by its lock file, created if missing; `None` if another process holds it. Held until dropped.
pub async fn take(folder: &Path) -> io::Result<Option<File>> {
    let file = open(&folder.join("lock"))?;
    let mut left = PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(fault)) => return Err(fault),
            Err(TryLockError::WouldBlock) if left.is_zero() => return Ok(None),
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::time::sleep(STEP).await;
        left = left.saturating_sub(STEP);
    }
}

/// Opens the lock file. A symbolic link could lock a foreign file, and a pipe would block forever.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits();
    let opened = File::options().write(true).create(true).truncate(false).mode(0o600).custom_flags(flags).open(path);
    opened.map_err(|fault| match fault.raw_os_error() {
        Some(code) if code == Errno::ELOOP as i32 => {
            io::Error::other(format!("{} is a symbolic link; remove it", path.display()))
        }
        _ => fault,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[tokio::test]
    async fn a_folder_has_one_holder_and_is_free_once_that_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = take(folder.path()).await.expect("a lock file").expect("the lock is free");
        assert!(take(folder.path()).await.expect("a lock file").is_none());
        let (second, ()) = tokio::join!(take(folder.path()), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(first);
        });
        assert!(second.expect("a lock file").is_some());
        assert!(take(&folder.path().join("nowhere")).await.is_err());
    }

    #[tokio::test]
    async fn a_symbolic_link_is_refused_as_lock_file() {
        let (folder, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let precious = elsewhere.path().join("precious");
        fs::write(&precious, "precious").expect("a file");
        symlink(&precious, folder.path().join("lock")).expect("a link");
        let error = take(folder.path()).await.expect_err("refused").to_string();
        assert!(error.contains("/lock is a symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious");
    }
}
