//! What somebody means who names runs: by baselines, experiments or their ids, in any mixture.

use brewbench_agent::wire::Phase;
use uuid::Uuid;

use crate::{
    app::{
        error::{Error, Result},
        ids::ExperimentId,
        state::AppState,
    },
    runs::model::Run,
};

/// Runs that were named.
#[derive(Clone, Debug, PartialEq)]
pub struct Meant {
    /// As they were named.
    pub text: String,
    /// The same, one by one.
    pub parts: Vec<(Kind, String)>,
    /// Each once. Lost ones that were repeated are not among them.
    pub runs: Vec<Run>,
    /// How many more there were in the baselines, deleted since.
    pub gone: usize,
}

/// What a name names.
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
    /// What the address of a comparison calls it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Baseline => "baselines",
            Self::Experiment => "experiments",
            Self::Run => "runs",
        }
    }
}

/// Reads names of baselines, ids of experiments and ids of runs, separated by commas. What is not there is an error.
pub async fn meant(state: &AppState, text: &str) -> Result<Meant> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let mut meant = Meant { text: parts.join(","), parts: Vec::new(), runs: Vec::new(), gone: 0 };
    for part in parts {
        let (kind, runs) = if is_id(part) {
            by_id(state, part).await?
        } else {
            (Kind::Baseline, of_baseline(state, part, &mut meant.gone).await?)
        };
        meant.parts.push((kind, part.to_owned()));
        for run in runs {
            if !meant.runs.iter().any(|known| known.id == run.id) {
                meant.runs.push(run);
            }
        }
    }
    Ok(meant)
}

/// Whether a text names a run or an experiment, and never a baseline.
pub fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok()
}

async fn by_id(state: &AppState, id: &str) -> Result<(Kind, Vec<Run>)> {
    let runs = of_experiment(state, &id.to_owned().into()).await?;
    if !runs.is_empty() {
        return Ok((Kind::Experiment, runs));
    }
    let run = crate::runs::store::one(&state.db.rows, &id.to_owned().into()).await?;
    run.map(|run| (Kind::Run, vec![run])).ok_or_else(|| Error::NotFound(format!("run or experiment with runs {id:?}")))
}

/// An experiment's runs but for lost ones that were repeated; none where it has none or is not there.
pub async fn of_experiment(state: &AppState, id: &ExperimentId) -> Result<Vec<Run>> {
    let all = crate::runs::store::of_experiment(&state.db.rows, id).await?;
    let repeated = |run: &Run| all.iter().any(|other| other.retry_of.as_ref() == Some(&run.id));
    Ok(all.iter().filter(|run| run.phase != Phase::Lost || !repeated(run)).cloned().collect())
}

async fn of_baseline(state: &AppState, name: &str, gone: &mut usize) -> Result<Vec<Run>> {
    let baseline = crate::baselines::store::one(&state.db.read, name).await?;
    let baseline = baseline.ok_or_else(|| Error::NotFound(format!("baseline {name:?}")))?;
    *gone += baseline.gone.len();
    Ok(crate::runs::store::by_ids(&state.db.rows, &baseline.runs).await?)
}
