//! The background task that assigns runs and gives up lost ones.

use std::time::Duration;

use brewbench_wire::{Phase, messages::ServerMessage};
use tokio::time::MissedTickBehavior;

use crate::{
    app::{
        error::Result,
        ids::RunId,
        state::{AppState, RunChanged},
    },
    dispatch::{assign, lease_expiry::LeaseCheck, renewal::renew_all, watch},
    distributed::coordinate::Barriers,
    fleet::presence::Presence,
    runs::store::retries,
};

/// Assigns runs and gives up lost ones until the server shuts down.
pub async fn work(state: AppState, presence: Presence, barriers: Barriers) {
    if let Err(fault) = renew_all(&state).await {
        tracing::error!(%fault, "failed to renew leases");
    }
    let mut clock = tokio::time::interval(Duration::from_secs(1));
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut events, mut lease_check) = (state.events.listen(), LeaseCheck::now());
    loop {
        let outcome = tokio::select! {
        () = state.shutdown.cancelled() => return,
        () = state.work.notified() => assign::assign(&state, &presence).await,
        event = events.recv() => handle_change(&state, &presence, &barriers, event.ok().as_ref()).await,
        _ = clock.tick() => lease_check.run(&state).await,
        };
        if let Err(fault) = outcome {
            tracing::error!(%fault, "dispatch failed");
        }
    }
}

/// Reacts to the change of a run; without an event, of any number of runs.
pub(crate) async fn handle_change(
    state: &AppState,
    presence: &Presence,
    barriers: &Barriers,
    event: Option<&RunChanged>,
) -> Result<()> {
    watch::forget(state, event).await?;
    barriers.forget_ended(state, event).await?;
    forward_cancellation(state, presence, event).await
}

/// Cancels a run on its agents after it has ended on the server.
pub(crate) async fn forward_cancellation(
    state: &AppState,
    presence: &Presence,
    event: Option<&RunChanged>,
) -> Result<()> {
    let working = presence.working().into_iter();
    // A missed event may have been about any run: check all.
    for (name, run) in working.filter(|(_, run)| event.is_none_or(|event| event.run == RunId::from(*run))) {
        let availability = retries::phase_and_agent(&mut *state.db.read.acquire().await?, &run.into()).await?;
        if availability.is_none_or(|(phase, _)| matches!(phase, Phase::Cancelled | Phase::Lost | Phase::Failed)) {
            presence.send(&name, ServerMessage::Cancel { run });
        }
    }
    Ok(())
}
