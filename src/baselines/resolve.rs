//! Resolves names of baselines and ids of experiments and runs, in any mixture, to runs.

use std::collections::HashSet;

use brewbench_wire::Phase;
use uuid::Uuid;

use crate::{
    app::{
        error::{Error, Result},
        ids::{ExperimentId, RunId, listed},
        state::AppState,
    },
    runs::model::Run,
};

/// The most names and ids of a list.
const MAX_PARTS: usize = 500;

/// The runs that a list of names and ids refers to.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    /// The names and ids, separated by commas.
    pub text: String,
    /// The same, one by one.
    pub parts: Vec<(Kind, String)>,
    /// The runs without duplicates. Lost runs that were retried are excluded.
    pub runs: Vec<Run>,
    /// How many runs of the baselines were deleted since.
    pub gone: usize,
}

/// What a name or id refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A baseline.
    Baseline,
    /// An experiment.
    Experiment,
    /// A run.
    Run,
}

impl Kind {
    /// Returns the query parameter of the comparison page.
    pub fn key(self) -> &'static str {
        match self {
            Self::Baseline => "baselines",
            Self::Experiment => "experiments",
            Self::Run => "runs",
        }
    }
}

/// Resolves names and ids that are separated by commas. Fails with a 404 if one does not exist.
pub async fn resolve(state: &AppState, text: &str) -> Result<Resolved> {
    let parts: Vec<String> = listed(&[text.to_owned()]);
    if parts.len() > MAX_PARTS {
        return Err(Error::Invalid(format!(
            "at most {MAX_PARTS} baselines, experiments and runs; there are {}",
            parts.len()
        )));
    }
    let mut known = HashSet::new();
    let mut resolved = Resolved { text: parts.join(","), parts: Vec::new(), runs: Vec::new(), gone: 0 };
    for part in parts {
        let (kind, runs) = if is_id(&part) {
            by_id(state, &part).await?
        } else {
            (Kind::Baseline, of_baseline(state, &part, &mut resolved.gone).await?)
        };
        resolved.parts.push((kind, part));
        resolved.runs.extend(runs.into_iter().filter(|run| known.insert(run.id.clone())));
    }
    Ok(resolved)
}

/// Whether a text is the id of a run or an experiment. Such a text is never the name of a baseline.
pub fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}

async fn by_id(state: &AppState, id: &str) -> Result<(Kind, Vec<Run>)> {
    let runs = of_experiment(state, &id.to_owned().into()).await?;
    if !runs.is_empty() {
        return Ok((Kind::Experiment, runs));
    }
    let run = crate::runs::store::find(&state.db.rows, &id.to_owned().into()).await?;
    run.map(|run| (Kind::Run, vec![run])).ok_or_else(|| Error::NotFound(format!("run or experiment with runs {id:?}")))
}

/// Returns an experiment's runs except profiled ones, and lost ones that were retried; none if it does not exist.
pub async fn of_experiment(state: &AppState, id: &ExperimentId) -> Result<Vec<Run>> {
    let all = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    let retried: HashSet<&RunId> = all.iter().filter_map(|run| run.retry_of.as_ref()).collect();
    let is_measured = |run: &&Run| !run.spec.profiled && (run.phase != Phase::Lost || !retried.contains(&run.id));
    Ok(all.iter().filter(is_measured).cloned().collect())
}

async fn of_baseline(state: &AppState, name: &str, gone: &mut usize) -> Result<Vec<Run>> {
    let baseline = crate::baselines::store::find(&state.db.read, name).await?;
    let baseline = baseline.ok_or_else(|| Error::NotFound(format!("baseline {name:?}")))?;
    *gone += baseline.gone.len();
    Ok(crate::runs::store::by_ids(&state.db.rows, &baseline.runs).await?)
}
