//! Queues the next runs of experiments that decide from their results what to measure.
//!
//! One task handles all of them: once all runs of an open experiment have ended, it queues the next runs or closes the
//! experiment. There is one connection that writes, so a user's concurrent close is either seen or comes later.

use brewbench_wire::now_ms;
use tokio::sync::broadcast::error::RecvError;

use super::submission;
use crate::{
    app::{error::Result, ids::ExperimentId, state::AppState},
    experiments::{self, model::Experiment, next_runs},
    runs::{lookup, model::Run},
};

/// Advances open experiments until the server shuts down.
pub async fn work(state: AppState) {
    let mut events = state.events.listen();
    // Runs may have ended while the server was down.
    let mut missed = true;
    loop {
        if std::mem::take(&mut missed) {
            log_failure(advance_all(&state).await);
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            event = events.recv() => match event {
                Ok(changed) => {
                    if let Some(id) = changed.experiment {
                        log_failure(advance(&state, &id).await);
                    }
                }
                Err(RecvError::Lagged(_)) => missed = true,
                Err(RecvError::Closed) => return,
            },
        }
    }
}

fn log_failure(outcome: Result<()>) {
    if let Err(fault) = outcome {
        tracing::error!(%fault, "failed to queue the next runs of an experiment");
    }
}

async fn advance_all(state: &AppState) -> Result<()> {
    for id in experiments::store::open(&state.db.read).await? {
        advance(state, &id).await?;
    }
    Ok(())
}

async fn advance(state: &AppState, id: &ExperimentId) -> Result<()> {
    let Some(experiment) = experiments::store::find(&state.db.read, id).await?.filter(|experiment| experiment.is_open)
    else {
        return Ok(());
    };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    if runs.iter().any(|run| !run.has_ended()) {
        return Ok(());
    }
    decide(state, &experiment, &runs).await?;
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    // One event is enough: listeners read everything again.
    if let Some(run) = runs.last() {
        lookup::announce(state, run);
    }
    state.work.notify_one();
    Ok(())
}

async fn decide(state: &AppState, experiment: &Experiment, runs: &[Run]) -> Result<()> {
    let inputs = experiments::store::run_inputs(&state.db.read, &experiment.id).await?;
    let planned = inputs.as_ref().map_or_else(Vec::new, |inputs| next_runs::next(&experiment.plan, inputs, runs));
    let mut transaction = state.db.write.begin().await?;
    match inputs {
        Some(_) if !planned.is_empty() => {
            if !experiments::store::is_open(&mut transaction, &experiment.id).await? {
                return Ok(());
            }
            let by = (experiment.created_by.as_str(), now_ms());
            submission::queue(&mut transaction, experiment, &planned, by).await?;
        }
        _ => {
            experiments::store::end(&mut transaction, &experiment.id).await?;
            tracing::info!(experiment = experiment.id.as_str(), "experiment complete");
        }
    }
    Ok(transaction.commit().await?)
}
