//! `/experiments/new`: the form for a new run, and its forecast.

pub mod command;
pub mod draft;
pub mod forecast;
pub mod form_options;
pub mod load_sketch;
pub mod preset;

use std::collections::BTreeMap;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{RawForm, RawQuery, State},
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use brewbench_agent::wire::{
    load::{Load, Shape},
    now_ms,
};
use url::form_urlencoded;

use super::{
    power::plan_power,
    submission::{Checked, check, complete_from_baseline, create},
};
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::{
        caller::{Read, Submit},
        model::Scope,
    },
    compare::{metric::Metric, past},
    experiments::{
        self,
        new::{
            draft::{Draft, Faults, LoadBy},
            forecast::Forecast,
            form_options::{Catalog, Offer, form_options},
            load_sketch::LoadSketch,
            preset::Preset,
        },
        plan::Plan,
    },
    fleet::presence::Presence,
    runs::{lookup, model::Run, store::cells},
    web::shell::{Section, Shell},
};

/// The most unfinished runs that are loaded to estimate the wait.
const MAX_AHEAD: i64 = 1_000;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/new.html")]
struct NewPage {
    shell: Shell,
    form: Form,
}

/// The input fields. Its root is `#fields`.
#[derive(Debug, Template)]
#[template(path = "experiments/_fields.html")]
struct FieldsPart<'a> {
    form: &'a Form,
}

/// The forecast. Its root is `#forecast`.
#[derive(Debug, Template)]
#[template(path = "experiments/_forecast.html")]
struct ForecastPart<'a> {
    form: &'a Form,
}

/// One parameter of the chosen scenario.
#[derive(Debug)]
struct Parameter {
    name: String,
    value: String,
    usual: String,
}

/// The filled-in form.
#[derive(Debug)]
struct Form {
    draft: Draft,
    offer: Offer,
    parameters: Vec<Parameter>,
    faults: Faults,
    /// Present if the plan is valid.
    forecast: Option<Forecast>,
    scope: Scope,
    agents_connected: usize,
    /// Names of baselines.
    baselines: Vec<String>,
}

/// Which faults are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownFaults {
    /// Not those of targets and sizes that have not been chosen yet.
    Typed,
    /// All faults.
    All,
}

impl Form {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// Returns the baselines to choose from, including the one named in the URL.
    fn againsts(&self) -> Vec<&str> {
        let named = Some(&self.draft.against).filter(|name| !name.is_empty() && !self.baselines.contains(name));
        self.baselines.iter().chain(named).map(String::as_str).collect()
    }

    /// Returns the URL of the form completed with the settings of the baseline.
    fn filled_in(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("against", &self.draft.against);
        query.extend_pairs(self.draft.targets.iter().map(|name| ("target", name)));
        format!("/experiments/new?{}", query.finish())
    }

    /// Whether the advanced options are shown: one of them has a fault or is set.
    fn is_advanced(&self) -> bool {
        let Draft { against, name, seed, agent, agent_label, spread, load_from, .. } = &self.draft;
        let is_set = [against, name, seed, agent, agent_label].iter().any(|text| !text.is_empty());
        let fields =
            ["against", "agent", "spread", "load-from", "warm-up", "until", "at-most", "retries", "seed", "name"];
        is_set || *spread || !load_from.is_empty() || fields.iter().any(|field| self.faults.of(field).is_some())
    }

    /// Summarizes the advanced options.
    fn advanced(&self) -> String {
        let Draft { warm_up, until, at_most, retries, agent, agent_label, .. } = &self.draft;
        let agent = match (agent.as_str(), agent_label.as_str()) {
            ("", "") => "any",
            ("", label) => label,
            (agent, _) => agent,
        };
        let rule = if until.is_empty() { "fixed".to_owned() } else { format!("until ±{until}, at most {at_most}") };
        format!("agent: {agent} · warm-up: {warm_up} · repetitions: {rule} · retries: {retries}")
    }

    /// Sketches the load; of several loads the highest.
    fn drawing(&self) -> Option<LoadSketch> {
        let (loads, _) = self.draft.loads().ok()?;
        let highest = loads.iter().max_by_key(|load| load.shape().map(Shape::peak))?;
        LoadSketch::new(highest)
    }

    /// Returns the fields of the load: CSS classes of their choices, name, label and value.
    fn levels(&self) -> [(&'static str, &'static str, &'static str, &str); 9] {
        let Draft { vus, rate, duration, vus_stages, rate_stages, max_vus, .. } = &self.draft;
        let Draft { knee, objective, precision, .. } = &self.draft;
        [
            ("by-vus", "vus", "Virtual users", vus),
            ("by-vus-stages", "vus-stages", "Stages (virtual users)", vus_stages),
            ("by-rate", "rate", "Iterations per second", rate),
            ("by-rate-stages", "rate-stages", "Stages (iterations per second)", rate_stages),
            ("by-knee", "knee", "Range of rates", knee),
            ("by-knee", "objective", "Objective", objective),
            ("by-vus by-rate by-knee", "duration", "Duration", duration),
            ("by-rate by-rate-stages by-knee", "max-vus", "Maximum virtual users", max_vus),
            ("by-knee", "precision", "Precision", precision),
        ]
    }

    /// Returns the hint below a field of the load.
    fn hint(name: &str) -> &'static str {
        match name {
            "vus" => "one, or several: 1,2,4 or 1..256x2",
            "rate" => "one, or several: 500,1000 or 1000..20000+1000",
            "vus-stages" | "rate-stages" => "duration and target level of each stage: 5s:10,10s:50",
            "max-vus" => "default: a tenth of the rate, 10 to 1,000; all are created before the measurement starts",
            "knee" => "lowest and highest rate, iterations/s: 1000..20000",
            "objective" => "conditions that must hold: p99<50ms, failures<0.1%",
            "precision" => "maximum distance between the rates around the knee",
            _ => "",
        }
    }

    /// Describes why the form can't be submitted.
    fn missing(&self) -> String {
        if self.offer.targets.is_empty() {
            return "No agent has offered a target yet.".to_owned();
        }
        match (self.draft.targets.is_empty(), self.draft.sizes.is_empty()) {
            (true, true) => "Choose at least one target and one machine size.".to_owned(),
            (true, false) => "Choose at least one target.".to_owned(),
            (false, true) => "Choose at least one machine size.".to_owned(),
            (false, false) => "Fix the marked fields to submit.".to_owned(),
        }
    }
}

async fn load_catalog(state: &AppState) -> Result<Catalog> {
    let targets = crate::catalog::store::targets(&state.db.read).await?;
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    Ok(Catalog {
        marks: crate::catalog::store::marks(&state.db.read, &names).await?,
        sizes: crate::catalog::store::sizes(&state.db.read).await?,
        scenarios: crate::catalog::store::scenarios(&state.db.read).await?,
        agents: crate::fleet::store::agents(&state.db.read).await?,
        targets,
    })
}

/// Evaluates a draft. Returns the form and, if the plan is valid, the checked plan to submit.
async fn evaluate(
    state: &AppState,
    presence: &Presence,
    draft: Draft,
    scope: Scope,
    shown_faults: ShownFaults,
) -> Result<(Form, Option<Checked>)> {
    let scenario = crate::catalog::store::scenario(&state.db.read, &draft.scenario).await?;
    let defaults = scenario.map(|scenario| scenario.defaults).unwrap_or_default();
    let connected = presence.list();
    let offer = form_options(&draft, &load_catalog(state).await?, &connected);
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
        Some(checked) => Some(forecast(state, checked).await?),
        None => None,
    };
    let parameters = parameters(&draft, defaults);
    let baselines =
        crate::baselines::store::all(&state.db.read).await?.into_iter().map(|baseline| baseline.name).collect();
    let agents_connected = connected.len();
    let form = Form { draft, offer, parameters, faults, forecast, scope, agents_connected, baselines };
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

async fn forecast(state: &AppState, checked: &Checked) -> Result<Forecast> {
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let ahead: Vec<Run> = crate::runs::store::unfinished(&state.db.rows, MAX_AHEAD).await?;
    let power = plan_power(checked.plan(), largest_scatter(state, checked).await?);
    Ok(Forecast::new(checked.plan(), power, checked.run_counts(), &ahead, running + queued, now_ms()))
}

/// The most cells whose past scatter is loaded.
const MAX_SAMPLED_CELLS: usize = 6;

/// Returns the largest past scatter of the targets of a plan, if known.
async fn largest_scatter(state: &AppState, checked: &Checked) -> Result<Option<f64>> {
    let mut largest: Option<f64> = None;
    for cell in checked.sample_cells().take(MAX_SAMPLED_CELLS) {
        let Some(run) = cells::newest(&state.db.read, &cell).await? else { continue };
        let past = cells::past(&state.db.rows, vec![run], &[], past::MOST_RUNS).await?.concat();
        let is_open = matches!(cell.load, Load::Open(_));
        let scatter = past::scatter(&past, if is_open { Metric::P99Ms } else { Metric::Rps });
        largest = match (largest, scatter) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(largest)
}

fn parameters(draft: &Draft, defaults: BTreeMap<String, String>) -> Vec<Parameter> {
    let parameter = |(name, usual): (String, String)| Parameter {
        value: draft.parameters.get(&name).unwrap_or(&usual).clone(),
        name,
        usual,
    };
    defaults.into_iter().map(parameter).collect()
}

/// `GET /runs/new`: redirects old links and bookmarks to the form.
pub async fn moved(_: Read, RawQuery(query): RawQuery) -> Redirect {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::permanent(&format!("/experiments/new{query}"))
}

/// `GET /experiments/new?target=…&size=…`: the form, filled in from the query.
///
/// `run=ID` or `experiment=ID` copies its plan (`run=ID&target=…` adds targets). `against=NAME` without a load copies
/// the settings of the baseline.
pub async fn form(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(query): RawForm,
) -> Result<Response> {
    if let Some(copy) = copied_draft(&state, &query).await? {
        return Ok(Redirect::to(&format!("/experiments/new?{}", copy.query())).into_response());
    }
    let shown_faults = if query.is_empty() { ShownFaults::Typed } else { ShownFaults::All };
    let (form, _) = evaluate(&state, &presence, Draft::parse(&query), caller.scope, shown_faults).await?;
    Ok(NewPage { shell: Shell::signed_in("New run", Section::Runs, &caller.name).explained_in("guide/loads"), form }
        .into_response())
}

/// Returns the draft copied from the experiment, run or baseline that the query names, if any.
async fn copied_draft(state: &AppState, query: &[u8]) -> Result<Option<Draft>> {
    for (field, id) in form_urlencoded::parse(query) {
        match field.as_ref() {
            "experiment" => {
                let full = crate::experiments::lookup::find_with_runs(state, &id.into_owned().into()).await?;
                return Ok(Some(Draft::from_plan(&full.experiment.plan)));
            }
            "run" => {
                let draft = draft_from_run(state, &id.into_owned().into()).await?;
                return Ok(Some(draft.with_targets(query)));
            }
            "against" if !id.is_empty() => return draft_from_baseline(state, query).await,
            _ => {}
        }
    }
    Ok(None)
}

/// Completes a query with the settings of its baseline.
///
/// Returns `None` if the query has a load, or if the baseline can't be measured again: then the form shows the fault.
async fn draft_from_baseline(state: &AppState, query: &[u8]) -> Result<Option<Draft>> {
    let has = |field: &str| form_urlencoded::parse(query).any(|(name, _)| name == field);
    if has("load") {
        return Ok(None);
    }
    let draft = Draft::parse(query);
    let Ok(typed) = draft.plan(&BTreeMap::new()) else { return Ok(None) };
    let plan = Plan {
        scenario: if has("scenario") { typed.scenario.clone() } else { String::new() },
        parameters: draft.parameters.clone(),
        loads: Vec::new(),
        ..typed
    };
    match complete_from_baseline(state, plan).await {
        Ok(completed) => {
            let Plan { targets, sizes, scenario, parameters, loads, .. } = completed.plan;
            Ok(Some(Draft { targets, sizes, scenario, parameters, ..draft.with_loads(&loads) }))
        }
        Err(Error::Invalid(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Returns a draft that repeats the cell of a run, with the other settings of its experiment's plan, if it has one.
async fn draft_from_run(state: &AppState, id: &RunId) -> Result<Draft> {
    let run = lookup::found(state, id).await?;
    let plan = match &run.experiment {
        Some(experiment) => {
            experiments::store::one(&state.db.read, experiment).await?.map(|experiment| experiment.plan)
        }
        None => None,
    };
    let draft = plan.as_ref().map_or_else(Draft::default, Draft::from_plan);
    let draft = match &run.load {
        Some(load) => draft.with_load(load),
        None => draft,
    };
    Ok(Draft {
        name: String::new(),
        targets: vec![run.target],
        sizes: run.size.map(|size| size.name).into_iter().collect(),
        scenario: run.scenario.unwrap_or_else(|| draft.scenario.clone()),
        parameters: run.parameters,
        ..draft
    })
}

/// `GET /experiments/new/check?…`: the parts of the page that depend on the fields.
pub async fn recheck(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(query): RawForm,
) -> Result<Html<String>> {
    let (form, _) = evaluate(&state, &presence, Draft::parse(&query), caller.scope, ShownFaults::Typed).await?;
    let fields = FieldsPart { form: &form }.render().map_err(Error::internal)?;
    let forecast = ForecastPart { form: &form }.render().map_err(Error::internal)?;
    Ok(Html(fields + &forecast))
}

/// `POST /experiments/new`: submits the plan, or shows the form with the faults.
pub async fn submit(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let (form, checked) = evaluate(&state, &presence, Draft::parse(&body), caller.scope, ShownFaults::All).await?;
    let Some(checked) = checked else {
        let page = NewPage {
            shell: Shell::signed_in("New run", Section::Runs, &caller.name).explained_in("guide/loads"),
            form,
        };
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let full = create(&state, checked, caller).await?;
    Ok(Redirect::to(&format!("/experiments/{}", full.experiment.id)).into_response())
}
