//! Finds experiments with their runs.

use brewbench_wire::now_ms;

use crate::{
    app::{
        error::{Error, Result},
        ids::ExperimentId,
        state::AppState,
    },
    experiments::{
        describe,
        knee::history::searches,
        model::{Experiment, ExperimentWithRuns},
        power::plan_power,
        progress::progress,
        stopping_rule::narrowing,
    },
};

/// Returns an experiment, or fails with 404.
pub async fn find(state: &AppState, id: &ExperimentId) -> Result<Experiment> {
    let experiment = crate::experiments::store::find(&state.db.read, id).await?;
    experiment.ok_or_else(|| Error::NotFound(format!("experiment {:?}", id.as_str())))
}

/// Returns an experiment with its runs and everything derived from them, or fails with 404.
pub async fn find_with_runs(state: &AppState, id: &ExperimentId) -> Result<ExperimentWithRuns> {
    let experiment = find(state, id).await?;
    let runs = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    let url = state.public_url.join(&format!("experiments/{id}")).map_err(Error::internal)?;
    let plan = &experiment.plan;
    Ok(ExperimentWithRuns {
        url: url.into(),
        progress: progress(&experiment, &runs, now_ms()),
        repeated: describe::describe_retries(&runs),
        narrowing: plan.stopping_rule.map(|until| narrowing(plan, until, &runs)),
        power: plan_power(plan, None),
        searches: plan.knee.as_ref().map(|knee| searches(&experiment, knee, &runs)),
        experiment,
        runs,
    })
}
