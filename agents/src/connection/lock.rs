//! One process a folder: an exclusive lock that ends with its holder, however that ends.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;

/// How long somebody else may keep the lock before it counts as taken. A process that was killed while it started a
/// program leaves a copy of itself that holds its files for some more milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// Takes the lock file of a folder, made if need be; none if another process holds it. It is held until this is dropped.
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

/// A link would have somebody else's file locked, a pipe would have us wait for ever.
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
    async fn a_folder_has_one_holder_and_a_new_one_when_that_is_gone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let first = take(folder.path()).await.expect("a lock file").expect("nobody has it");
        assert!(take(folder.path()).await.expect("a lock file").is_none());
        let (second, ()) = tokio::join!(take(folder.path()), async {
            tokio::time::sleep(PATIENCE / 2).await;
            drop(first);
        });
        assert!(second.expect("a lock file").is_some());
        assert!(take(&folder.path().join("nowhere")).await.is_err());
    }

    #[tokio::test]
    async fn a_link_is_not_taken_for_the_lock() {
        let (folder, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let precious = elsewhere.path().join("precious");
        fs::write(&precious, "precious").expect("a file");
        symlink(&precious, folder.path().join("lock")).expect("a link");
        let told = take(folder.path()).await.expect_err("refused").to_string();
        assert!(told.contains("/lock is a symbolic link"), "{told}");
        assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious");
    }
}
