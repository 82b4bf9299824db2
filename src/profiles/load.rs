//! Finds and decodes the profiles of one side.

use brewbench_wire::profile::{ProfileKind, ProfileSource, pprof};
use tokio::task::spawn_blocking;

use super::store::{self, StoredProfile};
use crate::profiles::stacks::{Profile, Stacks};
use crate::{
    app::{
        error::{Error, Result},
        ids::{RunId, listed},
        state::AppState,
    },
    runs::model::Run,
};

/// The most memory that the stacks of one side take; those of forty ordinary profiles take less.
const MAX_MEMORY: usize = 128 << 20;

/// The most runs of one side.
const MAX_RUNS: usize = 40;

/// The profiled runs of one cell.
#[derive(Clone, Debug)]
pub struct ProfiledRuns {
    /// The runs.
    pub runs: Vec<Run>,
    /// Their profiles of the requested kind, in the same order.
    pub profiles: Vec<StoredProfile>,
    /// Their stacks.
    pub stacks: Vec<Stacks>,
    /// Kinds of profiles that all of these runs have.
    pub kinds: Vec<ProfileKind>,
}

impl ProfiledRuns {
    /// Returns the profiles with the total of each run.
    pub fn weighted(&self, kind: ProfileKind) -> Vec<Profile<'_>> {
        let total = |run: &Run, stacks: &Stacks| match kind {
            ProfileKind::Cpu => run.figures.cpu_ms_per_request,
            ProfileKind::Heap | ProfileKind::Allocs => Some(stacks.total() as f64),
        };
        self.runs.iter().zip(&self.stacks).map(|(run, stacks)| Profile { stacks, cpu_ms: total(run, stacks) }).collect()
    }

    /// Returns its first run and the profiler, for what both sides have to share.
    pub fn measured_by(&self) -> (&Run, ProfileSource) {
        (self.first(), self.profiles[0].source)
    }

    /// Returns its first run; all are alike.
    pub fn first(&self) -> &Run {
        &self.runs[0]
    }
}

/// Parses the kind in a query.
pub fn kind(text: Option<&str>) -> Result<ProfileKind> {
    let parsed = text.filter(|text| !text.is_empty()).map_or(Ok(ProfileKind::Cpu), str::parse);
    parsed.map_err(|fault| Error::Invalid(format!("kind: {fault}")))
}

/// Loads the profiles of runs. `field` names the query parameter in errors.
pub async fn side(state: &AppState, field: &str, ids: &str, kind: ProfileKind) -> Result<ProfiledRuns> {
    let ids: Vec<RunId> = listed(&[ids.to_owned()]);
    let invalid = |sentence: String| Error::Invalid(format!("{field}: {sentence}"));
    if ids.is_empty() {
        return Err(invalid("name profiled runs, separated by commas".to_owned()));
    }
    if ids.len() > MAX_RUNS {
        return Err(invalid(format!("{} runs named; at most {MAX_RUNS}", ids.len())));
    }
    let runs = crate::runs::store::by_ids(&state.db.rows, &ids).await?;
    if let Some(missing) = ids.iter().find(|id| !runs.iter().any(|run| run.id == **id)) {
        return Err(Error::NotFound(format!("run {missing}")));
    }
    if let Some(sentence) = runs.iter().find_map(fault).or_else(|| other_cell(&runs)) {
        return Err(invalid(sentence));
    }
    let all = store::of_runs(&state.db.read, &ids).await?;
    let has = |run: &Run, kind: ProfileKind| all.iter().any(|one| one.run == run.id && one.kind == kind);
    let kinds: Vec<_> = ProfileKind::ALL.into_iter().filter(|kind| runs.iter().all(|run| has(run, *kind))).collect();
    let mut profiles: Vec<StoredProfile> = Vec::with_capacity(runs.len());
    for run in &runs {
        let own = all.iter().find(|one| one.run == run.id && one.kind == kind);
        profiles.push(own.cloned().ok_or_else(|| missing(run, kind))?);
    }
    let stacks = decode(profiles.clone(), kind).await?;
    Ok(ProfiledRuns { runs, profiles, stacks, kinds })
}

/// Returns why a run has no profile to show.
fn fault(run: &Run) -> Option<String> {
    if !run.spec.profiled {
        return Some(format!("run {} was not profiled", run.id));
    }
    (!run.has_result()).then(|| format!("run {} has no valid result", run.id))
}

/// Returns why these runs are not added up.
fn other_cell(runs: &[Run]) -> Option<String> {
    let first = runs.first()?;
    let cell = |run: &Run| (run.spec.target.clone(), run.version.clone(), super::confounders::setting(run));
    let other = runs.iter().find(|run| cell(run) != cell(first))?;
    Some(format!("runs {} and {} belong to different cells, so they can't be added", first.id, other.id))
}

fn missing(run: &Run, kind: ProfileKind) -> Error {
    let faults = run.reasons.iter().filter(|reason| reason.code == "profile_missing");
    let why = faults.map(|reason| reason.text.as_str()).collect::<Vec<_>>().join("; ");
    let why = if why.is_empty() { "its agent sent none" } else { &why };
    Error::NotFound(format!("{kind} profile of run {}: {why}", run.id))
}

async fn decode(profiles: Vec<StoredProfile>, kind: ProfileKind) -> Result<Vec<Stacks>> {
    let mut bytes = 0;
    let decode = move || {
        profiles
            .iter()
            .map(|StoredProfile { run, body, .. }| {
                let body = body.as_ref().ok_or_else(|| {
                    Error::NotFound(format!("{kind} profile of run {run}: the retention rule has deleted it"))
                })?;
                let stacks = pprof::decode(body, kind).map_err(|fault| {
                    Error::Invalid(format!("the {kind} profile of run {run} can't be read: {fault}"))
                })?;
                bytes += stacks.bytes();
                if bytes > MAX_MEMORY {
                    return Err(Error::Invalid(
                        "the profiles of these runs are too large together: name fewer".to_owned(),
                    ));
                }
                Ok(stacks)
            })
            .collect()
    };
    spawn_blocking(decode).await.map_err(Error::internal)?
}
