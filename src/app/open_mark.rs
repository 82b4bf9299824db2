//! A mark beside the database while a server has it open. After a kill, the last commits are in SQLite's write-ahead
//! log until the database is opened again. The mark without the log means that these commits are lost.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// What the file's name has after that of the database.
pub const SUFFIX: &str = "-open";

/// Marks the database as open.
pub fn set(database: &Path) -> io::Result<()> {
    let mark = with_suffix(database, SUFFIX);
    File::options().write(true).create(true).truncate(false).mode(0o600).open(mark).map(drop)
}

/// Removes the mark once the database is closed.
pub fn clear(database: &Path) {
    match fs::remove_file(with_suffix(database, SUFFIX)) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%fault, "failed to record that the database was closed");
        }
        _ => {}
    }
}

/// Returns whether the write-ahead log was removed after a server was killed. Must be called before the database is
/// opened, which creates a new log.
pub fn is_log_lost(database: &Path) -> bool {
    with_suffix(database, SUFFIX).exists() && !has_log(database)
}

/// Must be called before a command opens the database: without a server, SQLite then moves the log into the file and
/// removes it.
pub fn clear_if_unused(database: &Path) {
    let lock = database.parent().map(|folder| folder.join("lock"));
    // Opening anything but a file might block.
    let lock = lock.filter(|lock| fs::symlink_metadata(lock).is_ok_and(|about| about.is_file()));
    let is_used = lock.and_then(|lock| File::open(lock).ok()).is_some_and(|lock| lock.try_lock().is_err());
    if has_log(database) && !is_used {
        clear(database);
    }
}

fn has_log(database: &Path) -> bool {
    with_suffix(database, "-wal").exists()
}

/// Appends to the name of a file.
pub fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
