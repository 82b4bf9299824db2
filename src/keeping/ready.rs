//! Two questions of those who watch over machines: is it alive, and can it do its work?

use std::time::Duration;

use axum::extract::State;
use tokio::time::timeout;

use super::queries;
use crate::{
    auth::Public,
    db,
    error::{Error, Result},
    state::AppState,
};

/// A store that does not answer within this does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the server and its store can be reached.
pub async fn healthz(_: Public, State(state): State<AppState>) -> Result<&'static str> {
    queries::migration(&state.db.read).await?;
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
    match timeout(PATIENCE, queries::migration(&state.db.read)).await {
        Ok(Ok(Some(version))) if version == db::newest() => {}
        Ok(Ok(_)) => return Some("the database is not of this version"),
        Ok(Err(fault)) => return Some(told("the database can't be read", &fault)),
        Err(_) => return Some("the database does not answer"),
    }
    match timeout(PATIENCE, queries::can_write(&state.db.write)).await {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(told("the database can't be written", &fault)),
        Err(_) => Some("the database is busy"),
    }
}

/// The cause is for the log: anybody may ask.
fn told(what: &'static str, fault: &sqlx::Error) -> &'static str {
    tracing::warn!(%fault, "{what}");
    what
}
