//! One process a folder: an exclusive lock that ends with its holder, however that ends.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    time::Duration,
};

/// How long somebody else may keep the lock before it counts as taken. A process that was killed while it started a
/// program leaves a copy of itself that holds its files for some more milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const STEP: Duration = Duration::from_millis(20);

/// Takes the lock file of a folder, made if need be; none if another process holds it. It is held until this is dropped.
pub async fn take(folder: &Path) -> io::Result<Option<File>> {
    let file = File::create(folder.join("lock"))?;
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

#[cfg(test)]
mod tests {
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
}
