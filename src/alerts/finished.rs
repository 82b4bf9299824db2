//! Queues an event for each finished experiment, once, including those that finished while the server was down.

use std::{collections::BTreeSet, time::Duration};

use brewbench_wire::now_ms;
use serde_json::{Value, json};
use tokio::{sync::broadcast::error::RecvError, time::sleep};

use super::watch;
use crate::alerts::message::Message;
use crate::{
    alerts::{self, model::Event},
    app::{
        error::Result,
        ids::ExperimentId,
        state::{AppState, RunChanged},
    },
    experiments::{model::Experiment, progress},
    runs::model::{Origin, Run},
};

/// Changes within this time are handled together.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// Watches for finished experiments until the server stops.
pub async fn work(state: AppState) {
    let mut events = state.events.listen();
    let (mut missed, mut changed) = (true, BTreeSet::new());
    loop {
        if let Err(fault) = announce(&state, std::mem::take(&mut missed), std::mem::take(&mut changed)).await {
            tracing::error!(%fault, "failed to announce finished experiments");
            missed = true;
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            event = events.recv() => match event {
                Ok(RunChanged { experiment, .. }) => changed.extend(experiment),
                Err(RecvError::Lagged(_)) => missed = true,
                Err(RecvError::Closed) => return,
            },
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            () = sleep(DEBOUNCE) => {}
        }
        while let Ok(RunChanged { experiment, .. }) = events.try_recv() {
            changed.extend(experiment);
        }
    }
}

async fn announce(state: &AppState, missed: bool, mut changed: BTreeSet<ExperimentId>) -> Result<()> {
    if missed {
        changed.extend(alerts::store::unannounced(&state.db.read).await?);
    }
    for id in &changed {
        announce_one(state, id).await?;
    }
    Ok(())
}

async fn announce_one(state: &AppState, id: &ExperimentId) -> Result<()> {
    if !alerts::store::is_unannounced(&state.db.read, id).await? {
        return Ok(());
    }
    let Some(experiment) = crate::experiments::store::find(&state.db.read, id).await? else { return Ok(()) };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    // Imported runs finished elsewhere.
    if runs.iter().any(|run| run.origin == Origin::Agent) {
        let message = Message::new(Event::ExperimentFinished, now_ms(), &data(state, &experiment, &runs));
        alerts::store::announce_finished(&state.db.write, id, &message).await?;
        state.outbox.notify_one();
    }
    Ok(())
}

/// Returns the event data: the counted runs of the experiment by how they ended.
fn data(state: &AppState, experiment: &Experiment, runs: &[Run]) -> Value {
    let mut ends = json!({"valid": 0, "suspect": 0, "invalid": 0, "failed": 0, "cancelled": 0, "lost": 0});
    let mut total = 0;
    for run in progress::counted(runs) {
        let outcome = run.verdict.map_or(run.phase.as_str(), |verdict| verdict.as_str());
        if let Some(count) = ends.get_mut(outcome) {
            *count = json!(count.as_u64().unwrap_or(0) + 1);
        }
        total += 1;
    }
    json!({
        "experiment": experiment.id,
        "name": experiment.name,
        "created_by": experiment.created_by,
        "runs": total,
        "ended": ends,
        "url": watch::url(state, &format!("/experiments/{}", experiment.id)),
    })
}
