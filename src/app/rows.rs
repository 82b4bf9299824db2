//! Reads wide rows without handing them from thread to thread. sqlx steps statements on a worker thread and sends each
//! value to the caller; for the 60 columns of a run that takes longer than SQLite takes to find the row. Here the
//! thread that decodes the rows also steps the statement.

use std::{
    error, fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use sqlx::{Sqlite, pool::PoolConnection};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::app::{
    db::{CACHED, MAPPED, WAIT},
    work_limit::limited,
};

/// Why rows could not be read.
pub type Fault = Box<dyn error::Error + Send + Sync>;

/// The most work of a read. No page needs a tenth of it.
pub const MAX_WORK: Duration = Duration::from_secs(10);

/// The most work of a search for text: how long that takes is up to the caller and to the texts.
pub const MAX_SEARCH: Duration = Duration::from_secs(1);

/// Prepared statements that a connection caches: the history has one for every combination of filters in use.
const PREPARED: usize = 100;

/// Connections that read rows, and one that writes them; cheap to clone.
#[derive(Clone)]
pub struct Rows(Arc<Shared>);

struct Shared {
    file: PathBuf,
    readers: u32,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
    writer: Mutex<Option<Connection>>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rows").field(&self.0.file).finish()
    }
}

impl Rows {
    /// Creates the pool of an existing database with at most `readers` readers. Connections open on first use.
    pub fn new(file: &Path, readers: u32) -> Self {
        let permits = Arc::new(Semaphore::new(readers as usize));
        let (idle, writer) = (Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { file: file.to_owned(), readers, permits, idle, writer }))
    }

    /// Runs `work` with a connection, on a thread that may block.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> sqlx::Result<T> {
        self.read_within(MAX_WORK, work).await
    }

    /// The same with at most `most` CPU time.
    pub async fn read_within<T: Send + 'static>(
        &self,
        most: Duration,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> sqlx::Result<T> {
        let shared = Arc::clone(&self.0);
        let permit = Arc::clone(&self.0.permits).acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let read = spawn_blocking(move || {
            // The work continues if the caller is cancelled, so the permit belongs to the work.
            let _permit = permit;
            let idle = locked(&shared.idle).pop();
            let connection = idle.map_or_else(|| reader(&shared.file), Ok)?;
            let result = limited(&connection, most, work);
            locked(&shared.idle).push(connection);
            result
        });
        read.await.map_err(|fault| sqlx::Error::Io(fault.into()))?.map_err(sqlx::Error::Decode)
    }

    /// Runs `work` with the writing connection, on a thread that may block. `turn` keeps all other writers out.
    pub async fn write<T: Send + 'static>(
        &self,
        turn: PoolConnection<Sqlite>,
        work: impl FnOnce(&mut Connection) -> T + Send + 'static,
    ) -> sqlx::Result<T> {
        let shared = Arc::clone(&self.0);
        let written = spawn_blocking(move || {
            let _turn = turn;
            let mut stored = locked(&shared.writer);
            let connection = match &mut *stored {
                Some(connection) => connection,
                none => none.insert(writer(&shared.file)?),
            };
            Ok::<_, rusqlite::Error>(work(connection))
        });
        written.await.map_err(|fault| sqlx::Error::Io(fault.into()))?.map_err(|fault| sqlx::Error::Decode(fault.into()))
    }

    /// Waits for running reads and closes all connections; later reads fail.
    pub async fn close(&self) {
        let _all = self.0.permits.acquire_many(self.0.readers).await;
        self.0.permits.close();
        let shared = Arc::clone(&self.0);
        let closed = spawn_blocking(move || {
            locked(&shared.idle).clear();
            locked(&shared.writer).take();
        });
        let _ = closed.await;
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn writer(file: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(WAIT)?;
    connection.pragma_update(None, "synchronous", "full")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cache_size", CACHED)?;
    Ok(connection)
}

fn reader(file: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(WAIT)?;
    // Otherwise SQLite plans a statement again whenever a different value is bound to its limit.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "mmap_size", MAPPED)?;
    connection.pragma_update(None, "cache_size", CACHED)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    Ok(connection)
}
