//! The SQLite file: one connection that writes, several that read.
//!
//! A commit is acknowledged only once it is on disk (`synchronous = full`). Opening takes an exclusive lock on the data
//! folder, so that two servers never share one file.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use brewbench_io::lock;
use rusqlite::Connection;
use sqlx::{
    Connection as _, SqlitePool,
    migrate::{MigrateError, Migrator},
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous},
};
use tokio::task::spawn_blocking;

use crate::app::{data_folder, open_mark, rows::Rows, secrets_key};

static MIGRATIONS: Migrator = sqlx::migrate!();

const READERS: u32 = 4;

/// Bytes of the file that readers map into memory instead of copying pages.
pub(crate) const MAPPED: &str = "268435456";

/// Page cache of each connection; SQLite reads a negative number as KiB.
pub(crate) const CACHED: &str = "-1024";

/// How long a connection waits for a lock that another program holds.
pub(crate) const WAIT: Duration = Duration::from_secs(5);

/// Rows that SQLite may be ahead of the reader: a page of a list fits, so its reader is woken once.
const ROWS_AHEAD: usize = 512;

/// The database's name in its folder.
pub const FILE: &str = "brewbench.db";

/// The pools; cheap to clone.
#[derive(Clone, Debug)]
pub struct Db {
    /// For reads.
    pub read: SqlitePool,
    /// For rows of runs, which are wide; its writer takes turns with `write`.
    pub rows: Rows,
    /// For writes: one connection, so writers queue here and see `SQLITE_BUSY` only because of other programs.
    pub write: SqlitePool,
    /// Whether the last commits before a kill are lost, because the write-ahead log was removed.
    pub log_is_lost: bool,
}

impl Db {
    /// Writes what may be lost, such as a time of last use. Does nothing if the database is being written: what a
    /// caller reads does not depend on it.
    pub async fn write_if_free(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<usize> + Send + 'static) {
        let Some(turn) = self.write.try_acquire() else { return };
        let written = self.rows.write(turn, |connection| {
            connection.busy_timeout(Duration::ZERO)?;
            let written = work(connection);
            connection.busy_timeout(WAIT)?;
            written
        });
        match written.await {
            Ok(Ok(_)) => {}
            Ok(Err(fault)) => tracing::debug!(%fault, "skipped a write"),
            Err(fault) => tracing::debug!(%fault, "skipped a write"),
        }
    }

    /// Closes all connections. The last one copies the write-ahead log into the file, so it must be the writing one.
    pub async fn close(&self) {
        self.rows.close().await;
        self.read.close().await;
        self.write.close().await;
    }
}

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder cannot be created or written.
    #[error("the data folder {0} can't be written: {1}; choose another with --data or fix its permissions")]
    Folder(PathBuf, io::Error),
    /// The folder is world-writable.
    #[error("{0} is a shared folder that everybody can write to; choose a private folder with --data")]
    Shared(PathBuf),
    /// The file is a symbolic link.
    #[error("{0} is a symbolic link, which is not allowed in the data folder; replace it by the file or remove it")]
    Link(PathBuf),
    /// Another server uses it.
    #[error("the data folder {0} is in use by another brewbench server; stop that one or choose another with --data")]
    InUse(PathBuf),
    /// The database is missing.
    #[error("there is no database at {0}")]
    Missing(PathBuf),
    /// A server has run on this folder, but its database is gone.
    #[error(
        "the database {0} is {1}, although a server has run on this folder: its results are lost; restore a backup with \
        `brewbench restore`, or remove {2} to start without them"
    )]
    Lost(PathBuf, &'static str, String),
    /// The file was written by a newer program.
    #[error(
        "the database {0} was written by a newer brewbench (migration {1}); upgrade this program or restore an older backup"
    )]
    Newer(PathBuf, i64),
    /// There is no copy to go back to.
    #[error(
        "the database can't be copied to {0} before it is updated: {1}; nothing was changed, free space on this disk"
    )]
    Copy(PathBuf, sqlx::Error),
    /// A migration failed.
    #[error("the database {0} can't be migrated: {1}")]
    Migration(PathBuf, MigrateError),
    /// SQLite refused.
    #[error("the database {0} can't be opened: {1}")]
    Sqlite(PathBuf, sqlx::Error),
}

/// The lock of a data folder. It keeps other servers out until it is dropped.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "held, never read: closing the file releases the lock")] File);

/// Creates the folder if it is missing and locks it.
pub async fn lock(folder: &Path) -> Result<Lock, OpenError> {
    data_folder::make_private(folder)?;
    let file = lock::take(folder).await.map_err(|fault| OpenError::Folder(folder.to_owned(), fault))?;
    file.map(Lock).ok_or_else(|| OpenError::InUse(folder.to_owned()))
}

/// Opens `brewbench.db` in a folder, creates it if it is missing and applies pending migrations.
pub async fn open(folder: &Path) -> Result<Db, OpenError> {
    data_folder::make_private(folder)?;
    let migration_lock = lock_for_migration(folder).await?;
    let file = folder.join(FILE);
    refuse_loss(folder, &file)?;
    open_mark::clear_if_unused(&file);
    let log_is_lost = open_mark::is_log_lost(&file);
    data_folder::make_file(&file).map_err(|fault| OpenError::Folder(folder.to_owned(), fault))?;
    let sqlite = |fault| OpenError::Sqlite(file.clone(), fault);
    let options = SqliteConnectOptions::new()
        .filename(&file)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .pragma("cache_size", CACHED)
        .row_buffer_size(ROWS_AHEAD)
        .busy_timeout(WAIT);
    // Connections to a file do not go stale, so they need no test before use.
    let pool = || SqlitePoolOptions::new().test_before_acquire(false);
    // On a full disk SQLite may end a transaction by itself. sqlx's own rollback then fails, and it would treat later
    // transactions as nested in one that is still open, so that nothing would be committed any more. Such a
    // connection is not reused.
    let write = pool()
        .after_release(|connection, _| {
            Box::pin(async move {
                if connection.is_in_transaction() {
                    // An ordinary rollback may still be running; the ping returns after it.
                    connection.ping().await?;
                }
                Ok(!connection.is_in_transaction())
            })
        })
        .max_connections(1);
    let write = write.connect_with(options.clone()).await.map_err(sqlite)?;
    copy_before_update(&write, &file).await?;
    MIGRATIONS.run(&write).await.map_err(|fault| match fault {
        MigrateError::VersionMissing(version) => OpenError::Newer(file.clone(), version),
        other => OpenError::Migration(file.clone(), other),
    })?;
    drop(migration_lock);
    let reading = options.read_only(true).pragma("mmap_size", MAPPED);
    let read = pool().max_connections(READERS).connect_with(reading).await.map_err(sqlite)?;
    let rows = Rows::new(&file, READERS);
    rows.read(|connection| Ok(connection.query_row("select changes from comparison_inputs", [], |_| Ok(()))?))
        .await
        .map_err(sqlite)?;
    Ok(Db { read, rows, write, log_is_lost })
}

/// Copies a database of an earlier version, and says that it is updated, which takes minutes with a million runs.
async fn copy_before_update(write: &SqlitePool, file: &Path) -> Result<(), OpenError> {
    // A new database has no such table.
    let applied = sqlx::query_scalar("select max(version) from _sqlx_migrations").fetch_one(write).await;
    let Some(from) = applied.ok().flatten().filter(|version: &i64| *version < newest()) else { return Ok(()) };
    let copy = open_mark::with_suffix(file, &format!(".before-update-{from:04}"));
    // An earlier start may have been interrupted.
    match fs::remove_file(&copy) {
        Err(fault) if fault.kind() != io::ErrorKind::NotFound => return Err(OpenError::Folder(copy, fault)),
        _ => {}
    }
    let to = newest();
    tracing::info!(
        from,
        to,
        copy = %copy.display(),
        "copying the database, then updating it; if this is interrupted, the next start continues"
    );
    data_folder::make_file(&copy).map_err(|fault| OpenError::Folder(copy.clone(), fault))?;
    let copied = copy_into(write, &copy).await;
    let synced = copied.and_then(|()| Ok(File::open(&copy)?.sync_all()?));
    synced.map_err(|fault| OpenError::Copy(copy, fault))
}

/// Copies the current database into an empty file. The caller has it written to the disk.
pub async fn copy_into(pool: &SqlitePool, file: &Path) -> sqlx::Result<()> {
    let Some(name) = file.to_str() else {
        return Err(sqlx::Error::Configuration(format!("{} is not UTF-8", file.display()).into()));
    };
    sqlx::query("vacuum into ?").bind(name).execute(pool).await?;
    Ok(())
}

/// Fails if a server has run on this folder and the database is missing or empty: that is a loss, not a new server.
fn refuse_loss(folder: &Path, file: &Path) -> Result<(), OpenError> {
    let what = match file.metadata() {
        Ok(about) if about.len() > 0 => return Ok(()),
        Ok(_) => "empty",
        Err(_) => "missing",
    };
    // The server writes them after it has created the database.
    let traces = [secrets_key::FILE, data_folder::ADDRESS_FILE].map(|name| folder.join(name));
    let traces: Vec<String> =
        traces.iter().filter(|path| path.exists()).map(|path| path.display().to_string()).collect();
    if traces.is_empty() { Ok(()) } else { Err(OpenError::Lost(file.to_owned(), what, traces.join(" and "))) }
}

/// Locks the folder against concurrent creation or migration of the database by a server and a command. The lock is on
/// the folder itself, because a lock file might belong to another user such as root.
async fn lock_for_migration(folder: &Path) -> Result<File, OpenError> {
    let path = folder.to_owned();
    let locked = spawn_blocking(move || {
        let opened = File::open(path)?;
        opened.lock()?;
        Ok(opened)
    });
    let locked: io::Result<File> = locked.await.map_err(io::Error::other).and_then(|locked| locked);
    locked.map_err(|fault| OpenError::Folder(folder.to_owned(), fault))
}

/// Opens an existing database with one connection, without creating it or applying migrations.
pub async fn open_existing(file: &Path) -> Result<SqlitePool, OpenError> {
    data_folder::refuse_link(file)?;
    if !file.is_file() {
        return Err(OpenError::Missing(file.to_owned()));
    }
    open_mark::clear_if_unused(file);
    let options = SqliteConnectOptions::new()
        .filename(file)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(WAIT);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options);
    pool.await.map_err(|fault| OpenError::Sqlite(file.to_owned(), fault))
}

/// Returns the newest migration of this program.
pub fn newest() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// The error of a stored value that cannot be read.
pub fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}
