//! Keeps experiments going that decide by their own figures what to measure next.
//!
//! One task for all of them: once all runs of an open experiment have ended, it queues what follows from their figures,
//! or closes the experiment. Whoever closes it meanwhile is faster: both happen on the one connection that writes.

use brewbench_agent::wire::now_ms;
use tokio::sync::broadcast::error::RecvError;

use super::submission;
use crate::{
    app::{error::Result, ids::ExperimentId, state::AppState},
    experiments::{self, model::Experiment, next_runs},
    runs::{lookup, model::Run},
};

/// Looks after open experiments until the server ends.
pub async fn work(state: AppState) {
    let mut events = state.events.listen();
    // What ended while no server ran.
    let mut missed = true;
    loop {
        if std::mem::take(&mut missed) {
            told(all(&state).await);
        }
        tokio::select! {
            () = state.shutdown.cancelled() => return,
            event = events.recv() => match event {
                Ok(changed) => {
                    if let Some(id) = changed.experiment {
                        told(go_on(&state, &id).await);
                    }
                }
                Err(RecvError::Lagged(_)) => missed = true,
                Err(RecvError::Closed) => return,
            },
        }
    }
}

fn told(done: Result<()>) {
    if let Err(fault) = done {
        tracing::error!(%fault, "an experiment does not go on");
    }
}

async fn all(state: &AppState) -> Result<()> {
    for id in experiments::store::open(&state.db.read).await? {
        go_on(state, &id).await?;
    }
    Ok(())
}

async fn go_on(state: &AppState, id: &ExperimentId) -> Result<()> {
    let Some(experiment) = experiments::store::one(&state.db.read, id).await?.filter(|experiment| experiment.is_open)
    else {
        return Ok(());
    };
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    if runs.iter().any(|run| !run.has_ended()) {
        return Ok(());
    }
    decide(state, &experiment, &runs).await?;
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    // One is enough for whoever watches: everything is read anew.
    if let Some(run) = runs.last() {
        lookup::tell(state, run);
    }
    state.work.notify_one();
    Ok(())
}

async fn decide(state: &AppState, experiment: &Experiment, runs: &[Run]) -> Result<()> {
    let grounds = experiments::store::grounds(&state.db.read, &experiment.id).await?;
    let wanted =
        grounds.as_ref().map_or_else(Vec::new, |grounds| next_runs::next(&experiment.plan, &grounds.sizes, runs));
    let mut transaction = state.db.write.begin().await?;
    match grounds {
        Some(grounds) if !wanted.is_empty() => {
            if !experiments::store::is_open(&mut transaction, &experiment.id).await? {
                return Ok(());
            }
            let by = (experiment.created_by.as_str(), now_ms());
            submission::queue(&mut transaction, experiment, &grounds, &wanted, by).await?;
        }
        _ => {
            experiments::store::end(&mut transaction, &experiment.id).await?;
            tracing::info!(experiment = experiment.id.as_str(), "it has all the runs that it needs");
        }
    }
    Ok(transaction.commit().await?)
}
