//! Tells of experiments that are over, each once, also of those that ended while no server ran.

use std::{collections::BTreeSet, time::Duration};

use brewbench_agent::wire::now_ms;
use serde_json::{Value, json};
use tokio::{sync::broadcast::error::RecvError, time::sleep};

use super::{watch, webhooks::Told};
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

/// Changes that come closer together than this are looked at once.
const CALM: Duration = Duration::from_millis(300);

/// Tells until the server ends.
pub async fn work(state: AppState) {
    let mut events = state.events.listen();
    let (mut missed, mut changed) = (true, BTreeSet::new());
    loop {
        if let Err(fault) = tell(&state, std::mem::take(&mut missed), std::mem::take(&mut changed)).await {
            tracing::error!(%fault, "the end of an experiment is not told");
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
            () = sleep(CALM) => {}
        }
        while let Ok(RunChanged { experiment, .. }) = events.try_recv() {
            changed.extend(experiment);
        }
    }
}

async fn tell(state: &AppState, missed: bool, mut changed: BTreeSet<ExperimentId>) -> Result<()> {
    if missed {
        changed.extend(alerts::store::untold(&state.db.read).await?);
    }
    for id in &changed {
        look_at(state, id).await?;
    }
    Ok(())
}

async fn look_at(state: &AppState, id: &ExperimentId) -> Result<()> {
    if !alerts::store::is_untold(&state.db.read, id).await? {
        return Ok(());
    }
    let Some(experiment) = crate::experiments::store::one(&state.db.read, id).await? else { return Ok(()) };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    // What was brought from elsewhere ended there.
    if runs.iter().any(|run| run.origin == Origin::Agent) {
        let told = Told::new(Event::ExperimentFinished, now_ms(), &data(state, &experiment, &runs));
        alerts::store::tell_end(&state.db.write, id, &told).await?;
        state.outbox.notify_one();
    }
    Ok(())
}

/// What came of it: of the runs that stand for its repetitions, how many ended how.
fn data(state: &AppState, experiment: &Experiment, runs: &[Run]) -> Value {
    let mut ends = json!({"valid": 0, "suspect": 0, "invalid": 0, "failed": 0, "cancelled": 0, "lost": 0});
    let mut total = 0;
    for run in progress::counted(runs) {
        let end = run.verdict.map_or(run.phase.as_str(), |verdict| verdict.as_str());
        if let Some(count) = ends.get_mut(end) {
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
