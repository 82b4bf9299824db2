//! Two questions of those who watch over machines: is it alive, and can it do its work?

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
    maintenance,
};

/// A store that does not answer within this does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Below this a result with its summary and its logs may not fit any more, bytes.
const LITTLE: u64 = 16 * 1024 * 1024;

/// What is written to see whether that can be done, bytes.
const PROBE: usize = 64 * 1024;

/// Whether the server and its store can be reached.
pub async fn healthz(_: Public, State(state): State<AppState>) -> Result<&'static str> {
    maintenance::store::migration(&state.db.read).await?;
    Ok("ok")
}

/// Whether results would be stored: the store can be written and is of this version, and the server is not about to end.
/// 503 with the reason where not.
pub async fn readyz(_: Public, State(state): State<AppState>) -> Result<&'static str> {
    hindrance(&state).await.map_or(Ok("ready"), |why| Err(Error::NotReady(why)))
}

async fn hindrance(state: &AppState) -> Option<&'static str> {
    if state.shutdown.is_cancelled() {
        return Some("the server is about to end");
    }
    match timeout(PATIENCE, maintenance::store::migration(&state.db.read)).await {
        Ok(Ok(Some(version))) if version == db::newest() => {}
        Ok(Ok(_)) => return Some("the database is not of this version"),
        Ok(Err(fault)) => return Some(told("the database can't be read", &fault)),
        Err(_) => return Some("the database does not answer"),
    }
    match timeout(PATIENCE, maintenance::store::can_write(&state.db.write)).await {
        Ok(Ok(())) => {}
        Ok(Err(fault)) => return Some(told("the database can't be written", &fault)),
        Err(_) => return Some("the database is busy"),
    }
    let data = state.config.data.clone();
    match timeout(PATIENCE, spawn_blocking(move || has_room(&data))).await {
        Ok(Ok(Ok(true))) => None,
        Ok(Ok(Ok(false))) => Some("the disk of the data folder is full"),
        Ok(Ok(Err(fault))) => Some(told("the data folder can't be written", &fault)),
        Ok(Err(fault)) => Some(told("the data folder can't be looked at", &fault)),
        Err(_) => Some("the disk of the data folder does not answer"),
    }
}

/// Whether there is room for results. A transaction that is rolled back does not tell, as SQLite writes when it commits; so
/// a file is written that has no name, and is gone at once.
fn has_room(data: &Path) -> io::Result<bool> {
    let disk = statvfs(data)?;
    if disk.blocks_available() * disk.fragment_size() < LITTLE {
        return Ok(false);
    }
    match tempfile::tempfile_in(data).and_then(|mut probe| probe.write_all(&vec![0; PROBE])) {
        Ok(()) => Ok(true),
        Err(fault) if matches!(fault.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// The cause is for the log: anybody may ask.
fn told(what: &'static str, fault: &dyn std::error::Error) -> &'static str {
    tracing::warn!(%fault, "{what}");
    what
}
