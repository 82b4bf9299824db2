//! Loads the context of compared runs: environments, history, looks and accepted differences.

use std::collections::BTreeSet;

use tokio::task::spawn_blocking;

use super::{
    past::{self, History},
    store,
};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    compare::{
        comparability::Environments,
        comparison_context::{ComparisonContext, Looks},
    },
    differences::AcceptedDifference,
    results::{blob, environment::facts::RunEnvironment},
    runs::{model::Run, store::cells},
};

/// Maximum number of cells whose history is loaded.
const MAX_PASTS: usize = 60;

/// Loads the context of these runs.
pub async fn load(state: &AppState, runs: &[Run]) -> Result<ComparisonContext> {
    let (environments, history, looks, accepted, is_knee_search) = tokio::try_join!(
        environments(state, runs),
        history(state, runs),
        looks(state, runs),
        accepted(state, runs),
        is_knee_search(state, runs)
    )?;
    Ok(ComparisonContext { environments, history, looks, accepted, is_knee_search })
}

async fn is_knee_search(state: &AppState, runs: &[Run]) -> Result<bool> {
    let experiments: BTreeSet<_> = runs.iter().filter_map(|run| run.experiment.as_ref()).collect();
    Ok(store::any_knee_search(&state.db.read, &experiments).await?)
}

async fn environments(state: &AppState, runs: &[Run]) -> Result<Environments> {
    let counting: Vec<&Run> = runs.iter().filter(|run| run.counts()).collect();
    let ids: Vec<_> = counting.iter().map(|run| run.id.clone()).collect();
    let mut packed = crate::runs::store::evidence_of(&state.db.rows, &ids).await?;
    let runs: Vec<(Run, Option<Vec<u8>>)> =
        counting.into_iter().map(|run| (run.clone(), packed.remove(&run.id))).collect();
    let read = move || {
        let of = |(run, packed): (Run, Option<Vec<u8>>)| {
            let evidence = packed.and_then(|packed| serde_json::from_slice(&blob::unpack(&packed).ok()?).ok());
            (run.id.clone(), RunEnvironment::new(&run, evidence.as_ref()))
        };
        runs.into_iter().map(of).collect()
    };
    spawn_blocking(read).await.map_err(Error::internal)
}

async fn accepted(state: &AppState, runs: &[Run]) -> Result<Vec<AcceptedDifference>> {
    let targets: BTreeSet<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let targets: Vec<&str> = targets.into_iter().collect();
    Ok(crate::differences::store::between(&state.db.read, &targets).await?)
}

async fn history(state: &AppState, runs: &[Run]) -> Result<History> {
    let ids: Vec<_> = runs.iter().map(|run| run.id.clone()).collect();
    let (cells, representatives): (Vec<_>, Vec<_>) = past::representatives(runs).into_iter().take(MAX_PASTS).unzip();
    let pasts = cells::past(&state.db.rows, representatives, &ids, past::MAX_RUNS).await?;
    Ok(past::without_experiments_of(runs, cells.into_iter().zip(pasts).collect()))
}

async fn looks(state: &AppState, runs: &[Run]) -> Result<Looks> {
    let experiments: BTreeSet<_> = runs.iter().filter_map(|run| run.experiment.as_ref()).collect();
    let experiments: Vec<_> = experiments.into_iter().cloned().collect();
    let (additions, before) = cells::looks(&state.db.read, &experiments).await?;
    Ok(Looks { before, additions })
}
