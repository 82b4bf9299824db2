//! Validates plans and submits them as experiments, for the API and the form.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::{
    engine::EngineKind,
    load::Load,
    manifest::source::{revision_fault, split_target},
    now_ms,
    run_spec::WHOLE_VCPUS,
};
use sqlx::SqliteConnection;

use super::against::{Baseline, Completed};
use crate::{
    app::{
        error::{Error, Result},
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::{audit::action::Action, caller::Caller, checks::checked_line},
    baselines::resolve::resolve as resolve_baseline,
    catalog::{
        self,
        api::{find_or_describe_size, parameter_fault},
        model::MachineSize,
    },
    experiments::{
        self,
        model::{Experiment, ExperimentWithRuns},
        next_runs::{self, PlannedRun},
        plan::{MAX_PROFILED, Plan},
        plan_faults,
        store::RunInputs,
    },
    fleet::presence::{Connected, Presence},
    placement::feasibility::{Cells, Needs, compiles_at_run_time, obstacle},
    runs::{
        lookup,
        model::{RunSize, RunSpec},
        store::NewRun,
    },
};

/// The most runs of an experiment. More are a mistake, or should be several experiments.
pub const MAX_RUNS: usize = 10_000;
/// The most queued runs of one user or token, so that nobody fills the queue of all.
const MAX_QUEUED_EACH: usize = 10_000;
/// The most queued runs: weeks of work, which pages can still show.
const MAX_QUEUED: usize = 20_000;
/// The most retries of a run. A run that fails this often will fail again.
pub const MAX_RETRIES: u32 = 10;
const MAX_WARM_UP_S: f64 = 24.0 * 3_600.0;

/// Characters of the id of a commit in the name of a target.
const SHORT_COMMIT: usize = 12;

/// A valid plan that connected agents can do.
#[derive(Clone, Debug)]
pub struct Checked {
    plan: Plan,
    sizes: Vec<MachineSize>,
    inputs: RunInputs,
}

impl Checked {
    /// Returns the minimum and the approximate maximum number of runs.
    pub fn run_counts(&self) -> (usize, usize) {
        run_counts(&self.plan)
    }

    /// Returns the plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the cells of the plan, whose past scatter determines its power: first one of each target.
    pub fn cells(&self) -> impl Iterator<Item = RunSpec> {
        let Self { plan, inputs, .. } = self;
        let settings = inputs.sizes.iter().flat_map(|size| plan.loads.iter().map(move |load| (size, load)));
        settings
            .flat_map(move |(size, load)| plan.targets.iter().map(move |target| inputs.spec(plan, target, size, load)))
    }

    /// Describes why an agent can't do all of the plan, if it can't.
    pub fn obstacle_on(&self, agent: &str, connected: &[(String, Connected)]) -> Option<String> {
        let Self { plan, sizes, inputs } = self;
        let spec = needed(plan, &inputs.scenario_sha256);
        let is_named = plan.agent.as_ref().is_none_or(|named| named == agent);
        // No agent has an empty name.
        let needs = Needs::of_plan(&spec, Some(if is_named { agent } else { "" }), plan.agent_label.as_deref());
        obstacle(needs, Cells { targets: &plan.targets, sizes }, connected)
    }
}

/// Returns what agents must be able to measure for a plan.
fn needed(plan: &Plan, scenario_sha256: &str) -> RunSpec {
    RunSpec { profiled: plan.profiled_repetitions > 0, load: plan.loads.first().cloned(), ..plan.spec(scenario_sha256) }
}

/// Checks that a plan is valid and that connected agents can do it. Errors start with the field and a colon.
pub async fn check(state: &AppState, presence: &Presence, plan: Plan) -> Result<Checked> {
    let plan = with_baseline(state, presence, plan).await?;
    let plan = check_fields(plan)?;
    let sizes = find_sizes(state, &plan).await?;
    let scenario = crate::catalog::store::scenarios::parameters(&state.db.read, &plan.scenario).await?;
    let scenario = scenario.ok_or_else(|| Error::Invalid(format!("scenario: {:?} does not exist", plan.scenario)))?;
    check_parameters(&plan, &scenario.defaults)?;
    check_script_scenario(&plan, &scenario.scenarios)?;
    let plan = with_engine(plan, &scenario.engines)?;
    check_label(state, &plan).await?;
    if plan.duet && sizes.iter().any(|size| size.vcpus.fract() > 0.0) {
        return Err(Error::Invalid(format!("size: {WHOLE_VCPUS}")));
    }
    let spec = needed(&plan, &scenario.sha256);
    let needs = Needs::of_plan(&spec, plan.agent.as_deref(), plan.agent_label.as_deref());
    let cells = Cells { targets: &plan.targets, sizes: &sizes };
    let connected = presence.list();
    let compiles = compiles_at_run_time(needs, cells, &connected);
    if let Some(obstacle) = obstacle(needs, cells, &connected)
        && !(connected.is_empty() && can_wait(state, &plan).await?)
    {
        return Err(Error::Conflict(obstacle));
    }
    let inputs = RunInputs { sizes: sizes.iter().map(RunSize::from).collect(), scenario_sha256: scenario.sha256 };
    Ok(Checked { plan: plan.with_warm_up(compiles), sizes, inputs })
}

/// Whether registered agents could do the plan once they connect.
///
/// No agent is connected right after the server starts, so plans that were possible before are queued.
async fn can_wait(state: &AppState, plan: &Plan) -> Result<bool> {
    let targets = crate::catalog::store::targets(&state.db.read).await?;
    let mut agents = crate::fleet::store::agents(&state.db.read).await?;
    agents.retain(|agent| agent.revoked_at_ms.is_none());
    let is_known = |name: &String| agents.iter().any(|agent| agent.name == *name);
    let was_offered = |name: &String| targets.iter().any(|target| target.name == split_target(name).0);
    Ok(!agents.is_empty()
        && plan.targets.iter().all(was_offered)
        && plan.agent.iter().chain(&plan.generators).all(is_known))
}

/// Adds the baseline to measure again, if any, and selects an agent that offers its target versions.
async fn with_baseline(state: &AppState, presence: &Presence, plan: Plan) -> Result<Plan> {
    let Some(against) = plan.against.clone() else { return Ok(plan) };
    let completed = complete_from_baseline(state, plan).await?;
    let has_candidate = completed.has_candidate();
    let plan = completed.placed(&presence.list()).map_err(Error::Conflict)?;
    if has_candidate {
        return Ok(plan);
    }
    let own = plan.targets.join(", ");
    Err(Error::Invalid(format!("targets: name a candidate; {against:?} already contains {own}")))
}

/// Completes a plan with the settings of its baseline.
pub async fn complete_from_baseline(state: &AppState, plan: Plan) -> Result<Completed> {
    let name = plan.against.clone().unwrap_or_default();
    let runs = match resolve_baseline(state, &name).await {
        Ok(resolved) => resolved.runs,
        Err(Error::NotFound(what)) => return Err(Error::Invalid(format!("against: {what} does not exist"))),
        Err(other) => return Err(other),
    };
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    Baseline::new(&name, &runs).and_then(|baseline| baseline.complete(plan, &sizes)).map_err(Error::Invalid)
}

/// Refuses a label that no agent has: it is probably a typo.
async fn check_label(state: &AppState, plan: &Plan) -> Result<()> {
    let Some(label) = &plan.agent_label else { return Ok(()) };
    let agents = crate::fleet::store::agents(&state.db.read).await?;
    let known: BTreeSet<String> = crate::fleet::model::labels(&agents).into_keys().collect();
    if known.contains(label) {
        return Ok(());
    }
    let known = if known.is_empty() {
        "there are no labels".to_owned()
    } else {
        format!("existing labels: {}", known.into_iter().collect::<Vec<_>>().join(", "))
    };
    Err(Error::Invalid(format!("agent_label: no agent has the label {label:?}; {known}")))
}

fn check_parameters(plan: &Plan, known: &BTreeMap<String, String>) -> Result<()> {
    let Some(unknown) = plan.parameters.keys().find(|key| !known.contains_key(*key)) else { return Ok(()) };
    if let Some(fault) = parameter_fault(unknown) {
        return Err(Error::Invalid(format!("parameters: {fault}")));
    }
    let known: Vec<_> = known.keys().map(String::as_str).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Error::Invalid(format!("parameters: {:?} has no parameter {unknown:?}; it has {known}", plan.scenario)))
}

/// Chooses the load generator if the plan does not, and refuses one that can't execute the scenario.
fn with_engine(plan: Plan, able: &[EngineKind]) -> Result<Plan> {
    let of_duet = EngineKind::Native;
    let usual = if plan.duet && able.contains(&of_duet) { Some(of_duet) } else { able.first().copied() };
    let engine = plan.engine.or(usual).unwrap_or_default();
    if able.contains(&engine) {
        return Ok(Plan { engine: Some(engine).filter(|engine| *engine != EngineKind::default()), ..plan });
    }
    let lacks = match engine {
        EngineKind::K6 => "script",
        EngineKind::Native | EngineKind::Wrk => "request list: add requests.toml to its files",
    };
    Err(Error::Invalid(format!("engine: {} can't run {:?}, which has no {lacks}", engine.as_str(), plan.scenario)))
}

/// Refuses a scenario that the script does not have, as far as k6 has read it.
fn check_script_scenario(plan: &Plan, known: &[String]) -> Result<()> {
    match &plan.script_scenario {
        Some(name) if !known.is_empty() && !known.contains(name) => Err(Error::Invalid(format!(
            "script_scenario: the script of {:?} has no scenario {name:?}; it has {}",
            plan.scenario,
            known.join(", ")
        ))),
        _ => Ok(()),
    }
}

/// Creates an experiment and queues its runs.
pub async fn create(state: &AppState, checked: Checked, by: Caller) -> Result<ExperimentWithRuns> {
    let Checked { mut plan, sizes, inputs } = checked;
    crate::runs::store::secrets::keep(&mut *state.db.write.acquire().await?, &mut plan.parameters).await?;
    let plan = Plan { seed: Some(plan.seed.unwrap_or_else(rand::random)), ..plan };
    let experiment = Experiment {
        id: ExperimentId::now(),
        name: plan.name.clone().unwrap_or_else(|| format!("{}: {}", plan.scenario, plan.targets.join(", "))),
        is_open: plan.stopping_rule.is_some() || plan.knee.is_some(),
        plan,
        created_by: by.name.clone(),
        created_at_ms: now_ms(),
        labels: Vec::new(),
        note: None,
        paused_at_ms: None,
        paused_by: None,
    };
    store(state, &experiment, &sizes, &inputs, &by).await?;
    state.work.notify_one();
    let full = crate::experiments::lookup::find_with_runs(state, &experiment.id).await?;
    for run in &full.runs {
        lookup::announce(state, run);
    }
    Ok(full)
}

/// Returns the minimum and the maximum number of runs.
fn run_counts(plan: &Plan) -> (usize, usize) {
    let cells = plan.targets.len().saturating_mul(plan.sizes.len()).saturating_mul(plan.loads.len().max(1));
    let times = |repetitions: u32| cells.saturating_mul(usize::try_from(repetitions).unwrap_or(usize::MAX));
    let profiled = plan.profiled_repetitions;
    match (&plan.knee, plan.stopping_rule) {
        (Some(knee), _) => {
            // Both ends of the range, and the confirmation of one of them.
            let rules = knee.rules(plan);
            (cells.saturating_mul(rules.confirming().saturating_add(1)), cells.saturating_mul(rules.usual_runs()))
        }
        (None, Some(until)) => (times(plan.repetitions), times(until.at_most.saturating_add(profiled))),
        (None, None) => {
            (times(plan.repetitions.saturating_add(profiled)), times(plan.repetitions.saturating_add(profiled)))
        }
    }
}

fn check_count(runs: usize) -> Result<()> {
    if runs > MAX_RUNS {
        return Err(Error::Invalid(format!("this makes {runs} runs; an experiment has at most {MAX_RUNS}")));
    }
    Ok(())
}

fn check_fields(plan: Plan) -> Result<Plan> {
    let invalid = |sentence: &str| Err(Error::Invalid(sentence.to_owned()));
    if plan.targets.is_empty() {
        return invalid("targets: name at least one");
    }
    if plan.sizes.is_empty() {
        return invalid("sizes: name at least one");
    }
    if plan.scenario.is_empty() {
        return invalid("scenario: name one");
    }
    check_settings(plan)
}

/// Shortens the full id of a commit, so that a target has one name for it.
fn shorten_commit(target: &mut String) {
    let (name, revision) = split_target(target);
    let is_full = |id: &&str| matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if let Some(short) = revision.filter(is_full).and_then(|id| id.get(..SHORT_COMMIT)) {
        *target = format!("{name}@{short}");
    }
}

/// Checks the settings of a plan, whose targets, sizes and scenario may still be missing.
pub fn check_settings(mut plan: Plan) -> Result<Plan> {
    let invalid = |sentence: &str| Err(Error::Invalid(sentence.to_owned()));
    if plan.repetitions == 0 {
        return invalid("repetitions: at least 1");
    }
    // Before anything looks at each of them.
    let lengths = [plan.targets.len(), plan.sizes.len(), plan.loads.len()];
    check_count(lengths.into_iter().fold(1, |runs, length| runs.saturating_mul(length.max(1))))?;
    plan.targets.iter_mut().for_each(shorten_commit);
    if plan.targets.iter().enumerate().any(|(index, name)| plan.targets[..index].contains(name)) {
        return invalid("targets: one is named twice");
    }
    if let Some((target, fault)) =
        plan.targets.iter().find_map(|target| Some((target, revision_fault(split_target(target).1?)?)))
    {
        return Err(Error::Invalid(format!("targets: {target}: {fault}")));
    }
    if !(0.0..=MAX_WARM_UP_S).contains(&plan.warm_up_s()) {
        return invalid("warm_up_s: must be between 0 and 86400 seconds");
    }
    if plan.warm_up_auto && plan.warm_up_s() <= 0.0 {
        return invalid("warm_up_s: must be more than 0 if warm_up_auto is set");
    }
    if plan.warm_up_auto && (!plan.generators.is_empty() || plan.cluster_generators > 0) {
        return invalid("warm_up_auto: can't be combined with generators, whose warm-ups must end together");
    }
    if plan.profiled_repetitions > MAX_PROFILED {
        return Err(Error::Invalid(format!("profiled_repetitions: at most {MAX_PROFILED}")));
    }
    if plan.profiled_repetitions > 0 && plan.knee.is_some() {
        return invalid("profiled_repetitions: can't be combined with knee; profile a fixed rate");
    }
    if plan.retries > MAX_RETRIES {
        return Err(Error::Invalid(format!("retries: at most {MAX_RETRIES}")));
    }
    if let Some(name) = &plan.name {
        checked_line(name)?;
    }
    if plan.duet {
        // A run that is measured again would need its partner again, too.
        plan.retries = 0;
    }
    if plan.knee.is_none() && plan.loads.is_empty() {
        plan.loads.push(Load::Script);
    }
    if let Some(sentence) = plan_faults::first(&plan) {
        return Err(Error::Invalid(sentence));
    }
    check_count(run_counts(&plan).1)?;
    Ok(plan)
}

/// Finds the sizes of a plan by name or short form. A short form of an unknown size describes one that `create` adds.
async fn find_sizes(state: &AppState, plan: &Plan) -> Result<Vec<MachineSize>> {
    let known = crate::catalog::store::sizes(&state.db.read).await?;
    let mut sizes: Vec<MachineSize> = Vec::new();
    for name in &plan.sizes {
        let size = find_or_describe_size(&known, name)?;
        if sizes.iter().any(|other| other.name == size.name) {
            return Err(Error::Invalid(format!("sizes: {:?} is named twice", size.name)));
        }
        sizes.push(size);
    }
    Ok(sizes)
}

async fn store(
    state: &AppState,
    experiment: &Experiment,
    sizes: &[MachineSize],
    inputs: &RunInputs,
    caller: &Caller,
) -> Result<()> {
    let planned = next_runs::first(&experiment.plan, inputs);
    let mut transaction = state.db.write.begin().await?;
    // In the transaction that queues them: other submissions wait for it.
    let (own, all) = crate::runs::store::queued_by(&mut transaction, &caller.name).await?;
    check_room(&caller.name, planned.len(), own, all).map_err(Error::Conflict)?;
    for size in sizes {
        let act = caller.does(Action::SizeAdded, &size.name);
        catalog::store::insert_size_once(&mut transaction, size, experiment.created_at_ms, &act).await?;
    }
    experiments::store::insert(&mut transaction, experiment, inputs).await?;
    let by = (experiment.created_by.as_str(), experiment.created_at_ms);
    queue(&mut transaction, experiment, &planned, by).await?;
    Ok(transaction.commit().await?)
}

/// Fails if the queue has no room for more runs of a user.
fn check_room(name: &str, more: usize, own: usize, all: usize) -> Result<(), String> {
    let (whose, queued, limit) = match () {
        () if own + more > MAX_QUEUED_EACH => (format!("of {name}"), own, MAX_QUEUED_EACH),
        () if all + more > MAX_QUEUED => ("of all users".to_owned(), all, MAX_QUEUED),
        () => return Ok(()),
    };
    Err(format!(
        "the queue has {queued} runs {whose}, and this would add {more}; the limit is {limit}: wait, or cancel some first"
    ))
}

/// Queues runs of an experiment in this order, created by a user at a time.
pub async fn queue(
    connection: &mut SqliteConnection,
    experiment: &Experiment,
    planned: &[PlannedRun],
    (created_by, now): (&str, i64),
) -> Result<()> {
    let plan = &experiment.plan;
    for PlannedRun { spec, repetition } in planned {
        let run = NewRun {
            id: RunId::now(),
            experiment: Some(&experiment.id),
            spec,
            repetition: *repetition,
            // A knee search handles failed runs itself: a failure may show that the target is overloaded.
            retries: if plan.knee.is_some() { 0 } else { plan.retries },
            required_agent: plan.agent.as_deref(),
            agent_label: plan.agent_label.as_deref(),
            block: if plan.spread { *repetition } else { 0 },
            created_by,
            now,
        };
        crate::runs::store::queue(connection, &run).await?;
    }
    Ok(())
}
