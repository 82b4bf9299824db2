//! Evaluates the input of the form: options, faults, presets and forecast.

use std::collections::BTreeMap;

use brewbench_wire::{load::Load, now_ms};

use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::model::Scope,
    compare::{metric::Metric, past},
    dispatch::queue::list::{free_in, load_queue},
    experiments::{
        new::{
            Form, Parameter, ShownFaults,
            draft::{Draft, Faults},
            forecast::{Forecast, QueuePosition},
            form_options::{Catalog, form_options},
            preset,
        },
        plan::Plan,
        power::{CellHistory, SmallestDifference},
        submission::{Checked, check},
    },
    fleet::{
        model::Availability,
        presence::{Connected, Presence},
    },
    placement::eta::{Wait, starts},
    runs::{progress::total_s, store::cells},
};

/// The most cells whose past scatter is loaded.
const MAX_SAMPLED_CELLS: usize = 12;

/// Loads everything that the form may offer.
pub async fn load_catalog(state: &AppState) -> Result<Catalog> {
    let targets = crate::catalog::store::targets(&state.db.read).await?;
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    let baselines = crate::baselines::store::all(&state.db.read).await?;
    Ok(Catalog {
        marks: crate::catalog::store::marks(&state.db.read, &names).await?,
        sizes: crate::catalog::store::sizes(&state.db.read).await?,
        scenarios: crate::catalog::store::scenarios::scenarios(&state.db.read).await?,
        agents: crate::fleet::store::agents(&state.db.read).await?,
        baselines: baselines.into_iter().map(|baseline| baseline.name).collect(),
        targets,
    })
}

/// Returns the parameters of a scenario with their defaults; none if it does not exist.
pub async fn defaults_of(state: &AppState, scenario: &str) -> Result<BTreeMap<String, String>> {
    let found = crate::catalog::store::scenarios::parameters(&state.db.read, scenario).await?;
    Ok(found.map(|found| found.defaults).unwrap_or_default())
}

/// Evaluates a draft. Returns the form and, if the plan is valid, the checked plan to submit.
pub async fn evaluate(
    state: &AppState,
    presence: &Presence,
    draft: Draft,
    scope: Scope,
    shown_faults: ShownFaults,
) -> Result<(Form, Option<Checked>)> {
    let defaults = defaults_of(state, &draft.scenario).await?;
    let (catalog, connected) = (load_catalog(state).await?, presence.list());
    let offer = form_options(&draft, &catalog, &connected);
    let (checked, mut faults) = match draft.plan(&defaults) {
        Err(faults) => (None, faults),
        Ok(plan) => check_plan(state, presence, plan).await?,
    };
    if shown_faults == ShownFaults::Typed {
        if draft.targets.is_empty() {
            faults.remove("target");
        }
        if draft.sizes.is_empty() {
            faults.remove("size");
        }
    }
    let forecast = match &checked {
        Some(checked) => {
            let smallest = SmallestDifference::new(checked.plan(), &history(state, checked).await?);
            Some(Forecast::new(checked.plan(), smallest, checked.run_counts()))
        }
        None => None,
    };
    let place = queue_position(state, presence, &connected, checked.as_ref()).await?;
    let presets = preset::choices(&draft, |draft| draft.plan(&defaults).ok());
    let parameters = parameters(&draft, defaults);
    let (agents_connected, baselines) = (connected.len(), catalog.baselines);
    let form = Form { draft, offer, parameters, faults, forecast, place, presets, scope, agents_connected, baselines };
    Ok((form, checked))
}

/// Checks a plan as the API does, and assigns an error to its field.
async fn check_plan(state: &AppState, presence: &Presence, plan: Plan) -> Result<(Option<Checked>, Faults)> {
    let mut faults = Faults::default();
    match check(state, presence, plan).await {
        Ok(checked) => Ok((Some(checked), faults)),
        Err(Error::Invalid(sentence) | Error::Conflict(sentence)) => {
            faults.add_refusal(&sentence);
            Ok((None, faults))
        }
        Err(other) => Err(other),
    }
}

/// Returns what earlier runs of the cells of a plan say: the largest scatter, and which targets have none.
async fn history(state: &AppState, checked: &Checked) -> Result<CellHistory> {
    let mut history = CellHistory::default();
    let mut known: Vec<String> = Vec::new();
    for cell in checked.cells().take(MAX_SAMPLED_CELLS) {
        let Some(run) = cells::newest(&state.db.read, &cell).await? else { continue };
        history.has_runs = true;
        let past = cells::past(&state.db.rows, vec![run], &[], past::MAX_RUNS).await?.concat();
        let is_open = matches!(cell.load, Some(Load::Open(_)));
        let Some(scatter) = past::scatter(&past, if is_open { Metric::P99Ms } else { Metric::Rps }) else { continue };
        known.push(cell.target.clone());
        history.scatter = Some(history.scatter.map_or(scatter, |largest| largest.max(scatter)));
    }
    let sampled = checked.plan().targets.iter().take(MAX_SAMPLED_CELLS);
    history.unknown_targets = sampled.filter(|target| !known.contains(target)).cloned().collect();
    Ok(history)
}

/// Returns where the runs of a plan would be in the queue; without a plan, those of any plan.
async fn queue_position(
    state: &AppState,
    presence: &Presence,
    connected: &[(String, Connected)],
    checked: Option<&Checked>,
) -> Result<QueuePosition> {
    let queue = load_queue(state, presence).await?;
    let agents: Vec<String> = connected
        .iter()
        .filter(|(name, agent)| {
            let is_able = |checked: &Checked| checked.obstacle_on(name, connected).is_none();
            agent.availability == Availability::Enabled && checked.is_none_or(is_able)
        })
        .map(|(name, _)| name.clone())
        .collect();
    let generators = checked.map_or(&[][..], |checked| checked.plan().generators.as_slice());
    let mut waits: Vec<Wait<'_>> = queue
        .waiting
        .iter()
        .map(|waiting| Wait {
            agents: &waiting.agents,
            with: &waiting.run.spec.generators,
            takes_s: total_s(&waiting.run, &[]),
        })
        .collect();
    waits.push(Wait { agents: &agents, with: generators, takes_s: None });
    let starts_in_s = starts(&waits, &free_in(connected, &queue.working, now_ms())).pop().flatten();
    Ok(QueuePosition {
        ahead: queue.working.len() + queue.total,
        has_agent: !agents.is_empty(),
        // Runs that are not listed are ahead, too.
        starts_in_s: starts_in_s.filter(|_| queue.waiting.len() == queue.total),
    })
}

fn parameters(draft: &Draft, defaults: BTreeMap<String, String>) -> Vec<Parameter> {
    let parameter = |(name, usual): (String, String)| Parameter {
        value: draft.parameters.get(&name).unwrap_or(&usual).clone(),
        name,
        usual,
    };
    defaults.into_iter().map(parameter).collect()
}
