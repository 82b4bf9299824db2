//! Hands runs out and gives up what is lost, until the server ends.

use std::time::Duration;

use brewbench_agent::wire::messages::ServerMessage;
use tokio::time::MissedTickBehavior;

use crate::{
    app::{
        error::Result,
        ids::RunId,
        state::{AppState, RunChanged},
    },
    dispatch::{assign, lease_expiry::Look, renewal::prolong_all, watch},
    distributed::coordinate::Meetings,
    fleet::presence::Presence,
    runs::store::retries,
};

/// Hands runs out and gives up what is lost, until the server ends.
pub async fn work(state: AppState, presence: Presence, meetings: Meetings) {
    if let Err(fault) = prolong_all(&state).await {
        tracing::error!(%fault, "leases could not be prolonged");
    }
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut events, mut look) = (state.events.listen(), Look::now());
    loop {
        let done = tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = state.work.notified() => assign::assign(&state, &presence).await,
            event = events.recv() => hear(&state, &presence, &meetings, event.ok().as_ref()).await,
            _ = clock.tick() => look.again(&state).await,
        };
        if let Err(fault) = done {
            tracing::error!(%fault, "dispatch");
        }
    }
}

/// A run has changed; or some, if the event was missed.
pub(crate) async fn hear(
    state: &AppState,
    presence: &Presence,
    meetings: &Meetings,
    event: Option<&RunChanged>,
) -> Result<()> {
    watch::forget(state, event).await?;
    meetings.forget_ended(state, event).await?;
    pass_cancellation_on(state, presence, event).await
}

/// A run that ended on the server's side while its agent works on it is stopped there.
pub(crate) async fn pass_cancellation_on(
    state: &AppState,
    presence: &Presence,
    event: Option<&RunChanged>,
) -> Result<()> {
    let working = presence.working().into_iter();
    // A missed event may have been any: then all are looked at.
    for (name, run) in working.filter(|(_, run)| event.is_none_or(|event| event.run == RunId::from(*run))) {
        let standing = retries::standing(&mut *state.db.read.acquire().await?, &run.into()).await?;
        if standing.is_none_or(|(phase, _)| matches!(phase.as_str(), "cancelled" | "lost" | "failed")) {
            presence.send(&name, ServerMessage::Cancel { run });
        }
    }
    Ok(())
}
