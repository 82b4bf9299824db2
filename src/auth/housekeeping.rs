//! Removes old audit log entries and ended sessions.

use std::time::Duration;

use brewbench_wire::now_ms;
use tokio::time::MissedTickBehavior;

use super::audit::KEPT;
use crate::{
    app::{error::Result, state::AppState},
    auth::store::{audit, sessions},
};

/// How often it runs.
const EVERY: Duration = Duration::from_hours(1);

/// Prunes at start and then every hour, until the server stops.
pub async fn work(state: AppState) {
    let mut clock = tokio::time::interval(EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            _ = clock.tick() => {}
        }
        match prune(&state).await {
            Ok((0, _)) => {}
            Ok((entries, _)) => tracing::info!(entries, "pruned the audit log"),
            Err(fault) => tracing::error!(%fault, "failed to prune the audit log and sessions"),
        }
    }
}

/// Removes what is old unless the clock is suspect. Returns the number of audit log entries and of sessions.
pub async fn prune(state: &AppState) -> Result<(u64, u64)> {
    if !state.clock.may_delete() {
        return Ok((0, 0));
    }
    let (now, kept) = (now_ms(), i64::try_from(KEPT.as_millis()).unwrap_or(i64::MAX));
    let sessions = sessions::remove_ended(&state.db.write, now).await?;
    Ok((audit::prune(&state.db.write, now - kept).await?, sessions))
}
