//! Reads wide rows where they are needed. sqlx steps each statement on a thread of its own and hands every value of every row
//! over to the one who asked; for rows as wide as a run's that takes longer than SQLite takes to find them. Here whoever reads
//! the rows steps the statement.

use std::{
    error, fmt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tokio::{sync::Semaphore, task::spawn_blocking};

use crate::app::db::{CACHED, MAPPED};

/// Why rows could not be read.
pub type Fault = Box<dyn error::Error + Send + Sync>;

/// Statements that a connection keeps prepared. A page of the history asks for a few, and there are as many as filters.
const PREPARED: usize = 100;

/// Connections that read rows; cheap to clone.
#[derive(Clone)]
pub struct Rows(Arc<Shared>);

struct Shared {
    file: PathBuf,
    places: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rows").field(&self.0.file).finish()
    }
}

impl Rows {
    /// Of a database that is there, on so many connections, each of which is opened once it is needed.
    pub fn of(file: &Path, connections: usize) -> Self {
        let shared = Shared { file: file.to_owned(), places: Semaphore::new(connections), idle: Mutex::default() };
        Self(Arc::new(shared))
    }

    /// Does this with a connection, where it may take its time.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    ) -> sqlx::Result<T> {
        let shared = Arc::clone(&self.0);
        let _place = self.0.places.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let read = spawn_blocking(move || {
            let idle = shared.idle().pop();
            let connection = idle.map_or_else(|| open(&shared.file), Ok)?;
            let done = work(&connection);
            shared.idle().push(connection);
            done
        });
        read.await.map_err(|fault| sqlx::Error::Io(fault.into()))?.map_err(sqlx::Error::Decode)
    }

    /// Closes all connections; nothing is read from now on.
    pub async fn close(&self) {
        self.0.places.close();
        let shared = Arc::clone(&self.0);
        let _ = spawn_blocking(move || shared.idle().clear()).await;
    }
}

impl Shared {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection =
        Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(Duration::from_secs(5))?;
    connection.pragma_update(None, "mmap_size", MAPPED)?;
    connection.pragma_update(None, "cache_size", CACHED)?;
    connection.set_prepared_statement_cache_capacity(PREPARED);
    Ok(connection)
}
