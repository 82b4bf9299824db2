//! From a plan to an experiment in the queue: the same for the API and for the form.

use std::collections::BTreeSet;

use brewbench_agent::{
    scenarios,
    wire::{
        job::Scenario,
        load::{Load, Shape},
        now_ms,
    },
};
use sqlx::SqliteConnection;

use super::{
    against::{Baseline, Completed},
    sweep::{MOST_LEVELS, Sweep},
};
use crate::{
    app::{
        error::{Error, Result},
        ids::{ExperimentId, RunId},
        state::AppState,
    },
    auth::checks::checked_line,
    baselines::resolve::meant,
    catalog::model::{MachineSize, find_size},
    experiments::{
        self,
        model::{Experiment, ExperimentWithRuns},
        next_runs::{self, Wanted},
        plan::Plan,
        store::Grounds,
    },
    fleet::presence::Presence,
    placement::feasibility::{Needs, Source, obstacle},
    runs::{
        lookup,
        model::RunSize,
        store::{NewRun, cells::Planned},
    },
};

/// More than this is a mistake, or a job for several experiments.
pub const MOST_RUNS: usize = 10_000;
/// What fails so many times will fail the next time too.
pub const MOST_RETRIES: u32 = 10;
/// k6's segments may be finer, but nobody has more machines to make load than this.
const MOST_GENERATORS: usize = 64;
const LONGEST_S: f64 = 24.0 * 3_600.0;

/// A plan that makes sense and that somebody connected can do.
#[derive(Clone, Debug)]
pub struct Checked {
    plan: Plan,
    sizes: Vec<MachineSize>,
    scenario_sha256: String,
}

impl Checked {
    /// How many runs it makes: of those that decide by themselves the fewest and about the most.
    pub fn runs(&self) -> (usize, usize) {
        runs_of(&self.plan)
    }

    /// What was asked for.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A cell of each target: what they scattered before says what the plan can find.
    pub fn some_cells(&self) -> impl Iterator<Item = Planned<'_>> {
        let first = self.sizes.first().zip(self.plan.loads.first());
        self.plan.targets.iter().filter_map(move |target| {
            let (MachineSize { vcpus, memory_bytes, .. }, load) = first?;
            Some(Planned {
                target,
                vcpus: *vcpus,
                memory_bytes: *memory_bytes,
                scenario: &self.plan.scenario,
                scenario_sha256: &self.scenario_sha256,
                parameters: &self.plan.parameters,
                load,
            })
        })
    }
}

/// Whether a plan makes sense and somebody connected can do it. A refusal names its field before a colon.
pub async fn check(state: &AppState, presence: &Presence, plan: Plan) -> Result<Checked> {
    let plan = with_baseline(state, presence, plan).await?;
    let plan = checked(plan)?;
    let sizes = meant_sizes(state, &plan).await?;
    let scenario = crate::catalog::store::scenario(&state.db.read, &plan.scenario).await?;
    let scenario = scenario.ok_or_else(|| Error::Invalid(format!("scenario: there is no {:?}", plan.scenario)))?;
    known_parameters(&plan, &scenario)?;
    known_label(state, &plan).await?;
    let scenario_source = if scenarios::is_bundled(&scenario) { Source::Bundled } else { Source::User };
    let needs = Needs {
        targets: &plan.targets,
        sizes: &sizes,
        scenario: &plan.scenario,
        scenario_source,
        agent: plan.agent.as_deref(),
        label: plan.agent_label.as_deref(),
        generators: &plan.generators,
    };
    let connected = presence.list();
    if let Some(obstacle) = obstacle(needs, &connected)
        && !(connected.is_empty() && can_wait(state, &plan).await?)
    {
        return Err(Error::Conflict(obstacle));
    }
    Ok(Checked { plan, sizes, scenario_sha256: scenario.sha256() })
}

/// Whether known agents may come and do it. Nobody is connected right after a start of the server, so what was possible
/// before is queued then.
async fn can_wait(state: &AppState, plan: &Plan) -> Result<bool> {
    let targets = crate::catalog::store::targets(&state.db.read).await?;
    let mut agents = crate::fleet::store::agents(&state.db.read).await?;
    agents.retain(|agent| agent.revoked_at_ms.is_none());
    let is_known = |name: &String| agents.iter().any(|agent| agent.name == *name);
    let was_offered = |name: &String| targets.iter().any(|target| target.name == *name);
    Ok(!agents.is_empty()
        && plan.targets.iter().all(was_offered)
        && plan.agent.iter().chain(&plan.generators).all(is_known))
}

/// The plan with the baseline that is measured again, if there is one, on an agent that offers its versions.
async fn with_baseline(state: &AppState, presence: &Presence, plan: Plan) -> Result<Plan> {
    let Some(against) = plan.against.clone() else { return Ok(plan) };
    let completed = completed(state, plan).await?;
    let has_candidate = completed.has_candidate();
    let plan = completed.placed(&presence.list()).map_err(Error::Conflict)?;
    if has_candidate {
        return Ok(plan);
    }
    let own = plan.targets.join(", ");
    Err(Error::Invalid(format!("targets: name a candidate; {against:?} has {own} already")))
}

/// The plan with all that it takes from its baseline.
pub async fn completed(state: &AppState, plan: Plan) -> Result<Completed> {
    let name = plan.against.clone().unwrap_or_default();
    let runs = match meant(state, &name).await {
        Ok(meant) => meant.runs,
        Err(Error::NotFound(what)) => return Err(Error::Invalid(format!("against: there is no {what}"))),
        Err(other) => return Err(other),
    };
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    Baseline::new(&name, &runs).and_then(|baseline| baseline.complete(plan, &sizes)).map_err(Error::Invalid)
}

/// A label that nobody has is more likely a slip than a wish.
async fn known_label(state: &AppState, plan: &Plan) -> Result<()> {
    let Some(label) = &plan.agent_label else { return Ok(()) };
    let agents = crate::fleet::store::agents(&state.db.read).await?;
    let known: BTreeSet<String> = crate::fleet::model::labels(&agents).into_keys().collect();
    if known.contains(label) {
        return Ok(());
    }
    let known = if known.is_empty() {
        "none has any".to_owned()
    } else {
        format!("there are {}", known.into_iter().collect::<Vec<_>>().join(", "))
    };
    Err(Error::Invalid(format!("agent_label: no agent is labelled {label:?}; {known}")))
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
    let plan = Plan { seed: Some(plan.seed.unwrap_or_else(rand::random)), ..plan };
    let experiment = Experiment {
        id: ExperimentId::now(),
        name: plan.name.clone().unwrap_or_else(|| format!("{}: {}", plan.scenario, plan.targets.join(", "))),
        is_open: plan.until.is_some() || plan.knee.is_some(),
        plan,
        created_by: by,
        created_at_ms: now_ms(),
        labels: Vec::new(),
        note: None,
        paused_at_ms: None,
        paused_by: None,
    };
    store(state, &experiment, &grounds(&sizes, scenario_sha256)).await?;
    state.work.notify_one();
    let whole = crate::experiments::lookup::whole(state, &experiment.id).await?;
    for run in &whole.runs {
        lookup::tell(state, run);
    }
    Ok(whole)
}

/// The fewest and the most.
fn runs_of(plan: &Plan) -> (usize, usize) {
    let cells = plan.targets.len().saturating_mul(plan.sizes.len()).saturating_mul(plan.loads.len().max(1));
    let times = |repetitions: u32| cells.saturating_mul(usize::try_from(repetitions).unwrap_or(usize::MAX));
    match (&plan.knee, plan.until) {
        (Some(knee), _) => {
            // Both ends, and what confirms one of them.
            let fewest = plan.repetitions.saturating_add(1);
            (times(fewest), cells.saturating_mul(knee.rules(plan).usual_runs()))
        }
        (None, Some(until)) => (times(plan.repetitions), times(until.at_most)),
        (None, None) => (times(plan.repetitions), times(plan.repetitions)),
    }
}

fn checked(mut plan: Plan) -> Result<Plan> {
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
    if plan.repetitions == 0 {
        return invalid("repetitions: at least 1");
    }
    if plan.targets.iter().enumerate().any(|(index, name)| plan.targets[..index].contains(name)) {
        return invalid("targets: one is named twice");
    }
    if !(0.0..=LONGEST_S).contains(&plan.warm_up_s) {
        return invalid("warm_up_s: between 0 and 86400 seconds");
    }
    if plan.warm_up_auto && plan.warm_up_s <= 0.0 {
        return invalid("warm_up_s: more than 0 where warm_up_auto is set");
    }
    if plan.warm_up_auto && !plan.generators.is_empty() {
        return invalid("warm_up_auto: does not go with generators, whose warm-ups end together");
    }
    if plan.retries > MOST_RETRIES {
        return Err(Error::Invalid(format!("retries: at most {MOST_RETRIES}")));
    }
    if let Some(name) = &plan.name {
        checked_line(name)?;
    }
    if plan.knee.is_none() && plan.loads.is_empty() {
        plan.loads.push(Load::Script);
    }
    if let Some(sentence) = load_fault(&plan).or_else(|| place_fault(&plan)).or_else(|| generators_fault(&plan)) {
        return Err(Error::Invalid(sentence));
    }
    let (_, runs) = runs_of(&plan);
    if runs > MOST_RUNS {
        return Err(Error::Invalid(format!("this makes {runs} runs; at most {MOST_RUNS} go into one experiment")));
    }
    Ok(plan)
}

/// What is wrong with how hard it is, and how long it goes on.
fn load_fault(plan: &Plan) -> Option<String> {
    let Plan { loads, knee, until, .. } = plan;
    if loads.len() > MOST_LEVELS {
        return Some(format!("loads: there are {}; at most {MOST_LEVELS}", loads.len()));
    }
    if loads.iter().enumerate().any(|(index, load)| loads[..index].contains(load)) {
        return Some("loads: one is named twice".to_owned());
    }
    if loads.len() > 1 && Sweep::of(loads).is_none() {
        let sentence =
            "loads: several are constant, of one kind and as long as each other, and differ in their level only";
        return Some(sentence.to_owned());
    }
    if let Some(knee) = knee {
        let fault = knee.fault();
        return match (loads.is_empty(), until.is_none()) {
            (true, true) => fault.map(|fault| format!("knee: {fault}")),
            (false, _) => Some("knee: it decides by itself about its loads; name none".to_owned()),
            (_, false) => Some("knee: it decides by itself how long it goes on; leave until out".to_owned()),
        };
    }
    until.as_ref()?.fault(plan).map(|fault| format!("until: {fault}"))
}

/// What is wrong with where it is to be done.
fn place_fault(plan: &Plan) -> Option<String> {
    let Plan { agent, agent_label, spread, generators, knee, until, .. } = plan;
    if let (Some(agent), Some(_)) = (agent, agent_label) {
        return Some(format!("agent_label: {agent} is named already; leave agent or agent_label out"));
    }
    if !spread {
        return None;
    }
    if let Some(agent) = agent {
        return Some(format!("spread: only {agent} may do it; leave agent or spread out"));
    }
    let sentence = if !generators.is_empty() {
        "spread: agents make load for one machine at a time; leave generators or spread out"
    } else if knee.is_some() {
        "spread: a search for the knee chooses each rate by those before it, on one machine; leave knee or spread out"
    } else if until.is_some() {
        "spread: the differences of machines keep intervals wide, however often it is repeated; leave until or spread out"
    } else {
        return None;
    };
    Some(sentence.to_owned())
}

/// What is wrong with where the load comes from.
fn generators_fault(plan: &Plan) -> Option<String> {
    let Plan { generators, agent, loads, knee, .. } = plan;
    if generators.len() > MOST_GENERATORS {
        return Some(format!("generators: there are {}; at most {MOST_GENERATORS}", generators.len()));
    }
    if generators.iter().enumerate().any(|(index, name)| generators[..index].contains(name)) {
        return Some("generators: one is named twice".to_owned());
    }
    if let Some(both) = agent.as_ref().filter(|agent| generators.contains(agent)) {
        return Some(format!("generators: {both} runs the target; name others, or leave generators out"));
    }
    // Every part needs something to do.
    let levels =
        loads.iter().filter_map(|load| load.shape().map(Shape::peak)).chain(knee.as_ref().map(|knee| knee.from));
    let least = levels.min()?;
    (u64::from(least) < generators.len() as u64)
        .then(|| format!("generators: a load of {least} can't be split between {}", generators.len()))
}

async fn meant_sizes(state: &AppState, plan: &Plan) -> Result<Vec<MachineSize>> {
    let known = crate::catalog::store::sizes(&state.db.read).await?;
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

fn grounds(sizes: &[MachineSize], scenario_sha256: String) -> Grounds {
    let size =
        |size: &MachineSize| RunSize { name: size.name.clone(), vcpus: size.vcpus, memory_bytes: size.memory_bytes };
    Grounds { sizes: sizes.iter().map(size).collect(), scenario_sha256 }
}

async fn store(state: &AppState, experiment: &Experiment, grounds: &Grounds) -> Result<()> {
    let wanted = next_runs::first(&experiment.plan, &grounds.sizes);
    let mut transaction = state.db.write.begin().await?;
    experiments::store::insert(&mut transaction, experiment, grounds).await?;
    let by = (experiment.created_by.as_str(), experiment.created_at_ms);
    queue(&mut transaction, experiment, grounds, &wanted, by).await?;
    Ok(transaction.commit().await?)
}

/// Queues runs of an experiment in this order, for somebody at a time.
pub async fn queue(
    connection: &mut SqliteConnection,
    experiment: &Experiment,
    grounds: &Grounds,
    wanted: &[Wanted],
    (created_by, now): (&str, i64),
) -> Result<()> {
    let plan = &experiment.plan;
    let parameters = serde_json::to_string(&plan.parameters).map_err(Error::internal)?;
    for Wanted { target, size, load, repetition } in wanted {
        let run = NewRun {
            id: RunId::now(),
            experiment: Some(&experiment.id),
            target,
            size: Some(size),
            scenario: Some(&plan.scenario),
            scenario_sha256: Some(&grounds.scenario_sha256),
            parameters: &parameters,
            load,
            warm_up_ms: Some(milliseconds(plan.warm_up_s)),
            warm_up_auto: plan.warm_up_auto,
            repetition: *repetition,
            // A search counts by itself what came to nothing, and for it a run that fails may say a lot.
            retries: if plan.knee.is_some() { 0 } else { plan.retries },
            wanted_agent: plan.agent.as_deref(),
            agent_label: plan.agent_label.as_deref(),
            block: if plan.spread { *repetition } else { 0 },
            generators: &plan.generators,
            created_by,
            now,
        };
        crate::runs::store::queue(connection, &run).await?;
    }
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be less than a day")]
fn milliseconds(seconds: f64) -> i64 {
    (seconds * 1_000.0).round() as i64
}
