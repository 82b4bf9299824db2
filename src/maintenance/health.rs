//! Health checks for monitoring: `/healthz` (alive) and `/readyz` (can store results).

use std::{
    io::{self, ErrorKind, Write},
    path::Path,
    time::Duration,
};

use axum::extract::State;
use nix::sys::statvfs::statvfs;
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    app::{
        db,
        error::{Error, Result},
        state::AppState,
    },
    auth::caller::Public,
    maintenance::{self, quick_check::DAMAGED},
};

/// How long each check may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);

/// Free disk space, bytes, that a result with its summary and logs may need.
const MIN_FREE: u64 = 16 * 1024 * 1024;

/// Size of the file written to test the disk, bytes.
const PROBE: usize = 64 * 1024;

/// Whether the server and its database respond.
pub async fn healthz(_: Public, State(state): State<AppState>) -> Result<&'static str> {
    maintenance::store::migration(&state.db.read).await?;
    Ok("ok")
}

/// Whether the server can store results; otherwise 503 with the reason.
/// The database must be writable and at this version's migration, and the server must not be shutting down.
pub async fn readyz(_: Public, State(state): State<AppState>) -> Result<&'static str> {
    not_ready_reason(&state).await.map_or(Ok("ready"), |why| Err(Error::NotReady(why)))
}

async fn not_ready_reason(state: &AppState) -> Option<&'static str> {
    if state.shutdown.is_cancelled() {
        return Some("the server is shutting down");
    }
    if state.active_alerts.now().iter().any(|alert| alert.kind == DAMAGED) {
        return Some("the database is damaged; restore a backup");
    }
    match timeout(CHECK_TIMEOUT, maintenance::store::migration(&state.db.read)).await {
        Ok(Ok(Some(version))) if version == db::newest() => {}
        Ok(Ok(_)) => return Some("the database schema is not at this version's migration"),
        Ok(Err(fault)) => return Some(log_cause("the database can't be read", &fault)),
        Err(_) => return Some("the database does not respond"),
    }
    match timeout(CHECK_TIMEOUT, maintenance::store::can_write(&state.db.write)).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => return Some(log_cause("the database can't be written", &fault)),
        Err(_) => return Some("the database is busy"),
    }
    let data = state.config.data.clone();
    match timeout(CHECK_TIMEOUT, spawn_blocking(move || has_space(&data))).await {
        Ok(Ok(Ok(true))) => None,
        Ok(Ok(Ok(false))) => Some("the disk of the data folder is full"),
        Ok(Ok(Err(fault))) => Some(log_cause("the data folder can't be written", &fault)),
        Ok(Err(fault)) => Some(log_cause("the data folder can't be checked", &fault)),
        Err(_) => Some("the disk of the data folder does not respond"),
    }
}

/// Whether the disk has space for results.
/// A rolled-back transaction would not show this, because SQLite writes on commit; hence the unnamed temporary file.
fn has_space(data: &Path) -> io::Result<bool> {
    if free_bytes(data)? < MIN_FREE {
        return Ok(false);
    }
    match tempfile::tempfile_in(data).and_then(|mut probe| probe.write_all(&vec![0; PROBE])) {
        Ok(()) => Ok(true),
        Err(fault) if matches!(fault.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Returns the space on the disk of the data folder that the server can use, bytes.
pub(super) fn free_bytes(data: &Path) -> io::Result<u64> {
    let disk = statvfs(data)?;
    Ok(disk.blocks_available() * disk.fragment_size())
}

/// Logs the cause and returns only the message, because the endpoint is public.
fn log_cause(what: &'static str, fault: &dyn std::error::Error) -> &'static str {
    tracing::warn!(%fault, "{what}");
    what
}
