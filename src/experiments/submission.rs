//! From a plan to an experiment in the queue: the same for the API and for the form.

use brewbench_agent::{
    scenarios,
    wire::{RunId, job::Scenario, now_ms},
};
use uuid::Uuid;

use super::{
    Experiment, ExperimentWithRuns, Plan, api,
    fits::{Needs, Source, obstacle},
    order::order,
    queries,
};
use crate::{
    auth::api::checked_name,
    catalog::{self, MachineSize, find_size},
    error::{Error, Result},
    fleet::Presence,
    runs::{self, RunSize, queries::NewRun},
    state::AppState,
};

/// More than this is a mistake, or a job for several experiments.
pub const MOST_RUNS: usize = 10_000;
const LONGEST_S: f64 = 24.0 * 3_600.0;

/// A plan that makes sense and that somebody connected can do.
#[derive(Clone, Debug)]
pub struct Checked {
    plan: Plan,
    sizes: Vec<MachineSize>,
    scenario_sha256: String,
}

impl Checked {
    /// How many runs it makes.
    pub fn runs(&self) -> usize {
        runs_of(&self.plan)
    }

    /// What was asked for.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }
}

/// Whether a plan makes sense and somebody connected can do it. A refusal names its field before a colon.
pub async fn check(state: &AppState, presence: &Presence, plan: Plan) -> Result<Checked> {
    let plan = checked(plan)?;
    let sizes = meant_sizes(state, &plan).await?;
    let scenario = catalog::queries::scenario(&state.db.read, &plan.scenario).await?;
    let scenario = scenario.ok_or_else(|| Error::Invalid(format!("scenario: there is no {:?}", plan.scenario)))?;
    known_parameters(&plan, &scenario)?;
    let scenario_source = if scenarios::is_bundled(&scenario) { Source::Bundled } else { Source::User };
    let needs = Needs {
        targets: &plan.targets,
        sizes: &sizes,
        scenario: &plan.scenario,
        scenario_source,
        agent: plan.agent.as_deref(),
    };
    match obstacle(needs, &presence.list()) {
        Some(obstacle) => Err(Error::Conflict(obstacle)),
        None => Ok(Checked { plan, sizes, scenario_sha256: scenario.sha256() }),
    }
}

fn known_parameters(plan: &Plan, scenario: &Scenario) -> Result<()> {
    let Some(unknown) = plan.parameters.keys().find(|key| !scenario.defaults.contains_key(*key)) else {
        return Ok(());
    };
    let known: Vec<_> = scenario.defaults.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Error::Invalid(format!("parameters: {:?} has no {unknown:?}; it has {known}", plan.scenario)))
}

/// Queues the runs of a plan.
pub async fn make(state: &AppState, checked: Checked, by: String) -> Result<ExperimentWithRuns> {
    let Checked { plan, sizes, scenario_sha256 } = checked;
    let id = Uuid::now_v7().to_string();
    let name = plan.name.clone().unwrap_or_else(|| format!("{}: {}", plan.scenario, plan.targets.join(", ")));
    let experiment =
        Experiment { id, name, plan, created_by: by, created_at_ms: now_ms(), labels: Vec::new(), note: None };
    store(state, &experiment, &sizes, &scenario_sha256).await?;
    state.work.notify_one();
    let whole = api::whole(state, &experiment.id).await?;
    for run in &whole.runs {
        runs::api::tell(state, run);
    }
    Ok(whole)
}

fn runs_of(plan: &Plan) -> usize {
    plan.targets.len().saturating_mul(plan.sizes.len()).saturating_mul(plan.repetitions as usize)
}

fn checked(plan: Plan) -> Result<Plan> {
    let invalid = |sentence: &str| Err(Error::Invalid(sentence.to_owned()));
    if plan.targets.is_empty() {
        return invalid("targets: name at least one");
    }
    if plan.sizes.is_empty() {
        return invalid("sizes: name at least one");
    }
    if plan.repetitions == 0 {
        return invalid("repetitions: at least 1");
    }
    if plan.targets.iter().enumerate().any(|(index, name)| plan.targets[..index].contains(name)) {
        return invalid("targets: one is named twice");
    }
    if !(0.0..=LONGEST_S).contains(&plan.warm_up_s) {
        return invalid("warm_up_s: between 0 and 86400 seconds");
    }
    if let Some(name) = &plan.name {
        checked_name(name)?;
    }
    let runs = runs_of(&plan);
    if runs > MOST_RUNS {
        return Err(Error::Invalid(format!("this makes {runs} runs; at most {MOST_RUNS} go into one experiment")));
    }
    Ok(plan)
}

async fn meant_sizes(state: &AppState, plan: &Plan) -> Result<Vec<MachineSize>> {
    let known = catalog::queries::sizes(&state.db.read).await?;
    let mut sizes: Vec<MachineSize> = Vec::new();
    for meant in &plan.sizes {
        let size = find_size(&known, meant).ok_or_else(|| {
            Error::Invalid(format!("sizes: there is no {meant:?}; `brewbench size list` shows what there is"))
        })?;
        if sizes.iter().any(|other| other.name == size.name) {
            return Err(Error::Invalid(format!("sizes: {:?} is named twice", size.name)));
        }
        sizes.push(size.clone());
    }
    Ok(sizes)
}

async fn store(state: &AppState, experiment: &Experiment, sizes: &[MachineSize], scenario_sha256: &str) -> Result<()> {
    let plan = &experiment.plan;
    let parameters = serde_json::to_string(&plan.parameters).map_err(Error::internal)?;
    let sizes: Vec<_> = sizes
        .iter()
        .map(|size| RunSize { name: size.name.clone(), vcpus: size.vcpus, memory_bytes: size.memory_bytes })
        .collect();
    let mut transaction = state.db.write.begin().await?;
    queries::insert(&mut transaction, experiment).await?;
    for cell in order(plan.targets.len(), sizes.len(), plan.repetitions) {
        let run = NewRun {
            id: RunId::now().to_string(),
            experiment: Some(&experiment.id),
            target: &plan.targets[cell.target],
            size: Some(&sizes[cell.size]),
            scenario: Some(&plan.scenario),
            scenario_sha256: Some(scenario_sha256),
            parameters: &parameters,
            load: &plan.load,
            warm_up_ms: Some(milliseconds(plan.warm_up_s)),
            repetition: cell.repetition,
            wanted_agent: plan.agent.as_deref(),
            created_by: &experiment.created_by,
            now: experiment.created_at_ms,
        };
        runs::queries::queue(&mut transaction, &run).await?;
    }
    Ok(transaction.commit().await?)
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be less than a day")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}
