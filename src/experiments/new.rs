//! `/experiments/new`: the form of a new run, and what it would come to.

pub mod command;
pub mod draft;
pub mod forecast;
pub mod form_options;
pub mod load_sketch;

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
    submission::{Checked, check, completed, make},
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
            form_options::{Known, Offer, offer},
            load_sketch::Drawing,
        },
        plan::Plan,
    },
    fleet::presence::Presence,
    runs::{lookup, model::Run, store::cells},
    web::shell::{Section, Shell},
};

/// So many runs of the queue are looked at to say how long it is.
const MOST_AHEAD: i64 = 1_000;

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/new.html")]
struct NewPage {
    shell: Shell,
    form: Form,
}

/// What can be filled in. Its root is `#fields`.
#[derive(Debug, Template)]
#[template(path = "experiments/_fields.html")]
struct FieldsPart<'a> {
    form: &'a Form,
}

/// What it would come to. Its root is `#forecast`.
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

/// The form, filled in.
#[derive(Debug)]
struct Form {
    draft: Draft,
    offer: Offer,
    parameters: Vec<Parameter>,
    faults: Faults,
    /// Only where nothing is wrong.
    forecast: Option<Forecast>,
    scope: Scope,
    agents_connected: usize,
    /// Names of baselines.
    baselines: Vec<String>,
}

/// How much of what is wrong is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tell {
    /// Not what has not been chosen yet.
    Typed,
    /// All of it.
    All,
}

impl Form {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }

    /// What can be chosen to be measured again: baselines, and what the address named.
    fn againsts(&self) -> Vec<&str> {
        let named = Some(&self.draft.against).filter(|name| !name.is_empty() && !self.baselines.contains(name));
        self.baselines.iter().chain(named).map(String::as_str).collect()
    }

    /// The form with all that it takes from the baseline.
    fn filled_in(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("against", &self.draft.against);
        query.extend_pairs(self.draft.targets.iter().map(|name| ("target", name)));
        format!("/experiments/new?{}", query.finish())
    }

    /// The load over time, where it can be told; of several the highest.
    fn drawing(&self) -> Option<Drawing> {
        let (loads, _) = self.draft.how_hard().ok()?;
        // Of a sweep the highest: the others are as long and lower.
        let highest = loads.iter().max_by_key(|load| load.shape().map(Shape::peak))?;
        Drawing::new(highest)
    }

    /// Fields that say a load: for which choices, name, label and value.
    fn levels(&self) -> [(&'static str, &'static str, &'static str, &str); 9] {
        let Draft { vus, rate, duration, vus_stages, rate_stages, max_vus, .. } = &self.draft;
        let Draft { knee, objective, precision, .. } = &self.draft;
        [
            ("by-vus", "vus", "Virtual users", vus),
            ("by-vus-stages", "vus-stages", "Stages, to virtual users", vus_stages),
            ("by-rate", "rate", "Iterations per second", rate),
            ("by-rate-stages", "rate-stages", "Stages, to iterations per second", rate_stages),
            ("by-knee", "knee", "Between these rates", knee),
            ("by-knee", "objective", "Objective", objective),
            ("by-vus by-rate by-knee", "duration", "Measured time", duration),
            ("by-rate by-rate-stages by-knee", "max-vus", "Virtual users at most", max_vus),
            ("by-knee", "precision", "As exact as", precision),
        ]
    }

    /// What is said below a field of the load.
    fn hint(name: &str) -> &'static str {
        match name {
            "vus" => "one, or several: 1,2,4 or 1..256x2",
            "rate" => "one, or several: 500,1000 or 1000..20000+1000",
            "vus-stages" | "rate-stages" => "how long, and where it leads: 5s:10,10s:50",
            "max-vus" => "empty: a tenth of the rate, 10 to 1,000; all are made before the clock starts",
            "knee" => "the lowest and the highest, iterations/s: 1000..20000",
            "objective" => "what must hold: p99<50ms, failures<0.1%",
            "precision" => "how far the rates around the knee may be apart",
            _ => "",
        }
    }

    /// What keeps it from being submitted, in one sentence.
    fn missing(&self) -> String {
        if self.offer.targets.is_empty() {
            return "No agent has offered a target yet.".to_owned();
        }
        match (self.draft.targets.is_empty(), self.draft.sizes.is_empty()) {
            (true, true) => "Choose at least one target and one machine size.".to_owned(),
            (true, false) => "Choose at least one target.".to_owned(),
            (false, true) => "Choose at least one machine size.".to_owned(),
            (false, false) => "It can't be submitted like this: see the fields.".to_owned(),
        }
    }
}

async fn known(state: &AppState) -> Result<Known> {
    let targets = crate::catalog::store::targets(&state.db.read).await?;
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    Ok(Known {
        marks: crate::catalog::store::marks(&state.db.read, &names).await?,
        sizes: crate::catalog::store::sizes(&state.db.read).await?,
        scenarios: crate::catalog::store::scenarios(&state.db.read).await?,
        agents: crate::fleet::store::agents(&state.db.read).await?,
        targets,
    })
}

/// Reads a draft against what there is now; gives the form and, where nothing is wrong, what would be submitted.
async fn read(
    state: &AppState,
    presence: &Presence,
    draft: Draft,
    scope: Scope,
    tell: Tell,
) -> Result<(Form, Option<Checked>)> {
    let scenario = crate::catalog::store::scenario(&state.db.read, &draft.scenario).await?;
    let defaults = scenario.map(|scenario| scenario.defaults).unwrap_or_default();
    let connected = presence.list();
    let offer = offer(&draft, &known(state).await?, &connected);
    let (checked, mut faults) = match draft.plan(&defaults) {
        Err(faults) => (None, faults),
        Ok(plan) => checked(state, presence, plan).await?,
    };
    if tell == Tell::Typed {
        if draft.targets.is_empty() {
            faults.forget("target");
        }
        if draft.sizes.is_empty() {
            faults.forget("size");
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

/// What the API would say to a plan.
async fn checked(state: &AppState, presence: &Presence, plan: Plan) -> Result<(Option<Checked>, Faults)> {
    let mut faults = Faults::default();
    match check(state, presence, plan).await {
        Ok(checked) => Ok((Some(checked), faults)),
        Err(Error::Invalid(sentence) | Error::Conflict(sentence)) => {
            faults.refused(&sentence);
            Ok((None, faults))
        }
        Err(other) => Err(other),
    }
}

async fn forecast(state: &AppState, checked: &Checked) -> Result<Forecast> {
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let ahead: Vec<Run> = crate::runs::store::unfinished(&state.db.rows, MOST_AHEAD).await?;
    let power = plan_power(checked.plan(), scatter(state, checked).await?);
    Ok(Forecast::new(checked.plan(), power, checked.runs(), &ahead, running + queued, now_ms()))
}

/// More targets than this are not looked up: the one that scatters most decides.
const MOST_LOOKED_UP: usize = 6;

/// The most that the targets of a plan have scattered, as far as that is known.
async fn scatter(state: &AppState, checked: &Checked) -> Result<Option<f64>> {
    let mut most: Option<f64> = None;
    for cell in checked.some_cells().take(MOST_LOOKED_UP) {
        let Some(run) = cells::newest(&state.db.read, &cell).await? else { continue };
        let past = cells::past(&state.db.rows, vec![run], &[], past::MOST_RUNS).await?.concat();
        let is_open = matches!(cell.load, Load::Open(_));
        let scatter = past::scatter(&past, if is_open { Metric::P99Ms } else { Metric::Rps });
        most = match (most, scatter) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
    }
    Ok(most)
}

fn parameters(draft: &Draft, defaults: BTreeMap<String, String>) -> Vec<Parameter> {
    let parameter = |(name, usual): (String, String)| Parameter {
        value: draft.parameters.get(&name).unwrap_or(&usual).clone(),
        name,
        usual,
    };
    defaults.into_iter().map(parameter).collect()
}

/// `GET /runs/new`: where the form was before; links and bookmarks still lead to it.
pub async fn moved(_: Read, RawQuery(query): RawQuery) -> Redirect {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::permanent(&format!("/experiments/new{query}"))
}

/// `GET /experiments/new?target=…&size=…`: the form, filled in as the address says; `run=ID` or `experiment=ID` stands for
/// what that one was asked for (`run=ID&target=…` with more targets), `against=NAME` without a load for what the
/// baseline was measured with.
pub async fn form(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(query): RawForm,
) -> Result<Response> {
    if let Some(again) = again(&state, &query).await? {
        return Ok(Redirect::to(&format!("/experiments/new?{}", again.query())).into_response());
    }
    let tell = if query.is_empty() { Tell::Typed } else { Tell::All };
    let (form, _) = read(&state, &presence, Draft::read(&query), caller.scope, tell).await?;
    Ok(NewPage { shell: Shell::signed_in("New run", Section::Runs, &caller.name), form }.into_response())
}

/// What was asked for once, to be asked for again.
async fn again(state: &AppState, query: &[u8]) -> Result<Option<Draft>> {
    for (field, id) in form_urlencoded::parse(query) {
        match field.as_ref() {
            "experiment" => {
                let whole = crate::experiments::lookup::whole(state, &id.into_owned().into()).await?;
                return Ok(Some(Draft::of(&whole.experiment.plan)));
            }
            "run" => return of_run(state, &id.into_owned().into()).await.map(|draft| Some(draft.with_targets(query))),
            "against" if !id.is_empty() => return next_to(state, query).await,
            _ => {}
        }
    }
    Ok(None)
}

/// What an address leaves out is as the baseline has it; nothing to do where it says a load, or the baseline does not say
/// what was measured: then the form tells why.
async fn next_to(state: &AppState, query: &[u8]) -> Result<Option<Draft>> {
    let says = |field: &str| form_urlencoded::parse(query).any(|(name, _)| name == field);
    if says("load") {
        return Ok(None);
    }
    let draft = Draft::read(query);
    let Ok(typed) = draft.plan(&BTreeMap::new()) else { return Ok(None) };
    let plan = Plan {
        scenario: if says("scenario") { typed.scenario.clone() } else { String::new() },
        parameters: draft.parameters.clone(),
        loads: Vec::new(),
        ..typed
    };
    match completed(state, plan).await {
        Ok(completed) => {
            let Plan { targets, sizes, scenario, parameters, loads, .. } = completed.plan;
            Ok(Some(Draft { targets, sizes, scenario, parameters, ..draft.with_loads(&loads) }))
        }
        Err(Error::Invalid(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The cell of a run: its own plan where it has one, else what is known of it.
async fn of_run(state: &AppState, id: &RunId) -> Result<Draft> {
    let run = lookup::found(state, id).await?;
    let usual = Draft::default();
    let plan = match &run.experiment {
        Some(experiment) => {
            experiments::store::one(&state.db.read, experiment).await?.map(|experiment| experiment.plan)
        }
        None => None,
    };
    let draft = plan.as_ref().map_or(usual, Draft::of);
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

/// `GET /experiments/new/check?…`: the parts of the page that a changed field changes.
pub async fn recheck(
    Read(caller): Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(query): RawForm,
) -> Result<Html<String>> {
    let (form, _) = read(&state, &presence, Draft::read(&query), caller.scope, Tell::Typed).await?;
    let fields = FieldsPart { form: &form }.render().map_err(Error::internal)?;
    let forecast = ForecastPart { form: &form }.render().map_err(Error::internal)?;
    Ok(Html(fields + &forecast))
}

/// `POST /experiments/new`: submits it, or shows the form again with what is wrong.
pub async fn submit(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    RawForm(body): RawForm,
) -> Result<Response> {
    let (form, checked) = read(&state, &presence, Draft::read(&body), caller.scope, Tell::All).await?;
    let Some(checked) = checked else {
        let page = NewPage { shell: Shell::signed_in("New run", Section::Runs, &caller.name), form };
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response());
    };
    let whole = make(&state, checked, caller.name).await?;
    Ok(Redirect::to(&format!("/experiments/{}", whole.experiment.id)).into_response())
}
