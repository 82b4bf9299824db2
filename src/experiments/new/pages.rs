//! Handlers of the form for a new run.

pub mod evaluate;

use std::collections::BTreeMap;

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Extension,
    extract::{RawForm, RawQuery, State},
    http::StatusCode,
    response::{Html, IntoResponse, Redirect, Response},
};
use url::form_urlencoded;

use self::evaluate::evaluate;
use super::{
    FieldsPart, ForecastPart, Form, PresetsPart, ShownFaults,
    draft::{Draft, LoadBy},
};
use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::{Read, Submit},
    experiments::{
        self,
        plan::Plan,
        submission::{complete_from_baseline, create},
    },
    fleet::presence::Presence,
    runs::lookup,
    web::shell::{Section, Shell},
};

/// The page.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/new.html")]
struct NewPage {
    shell: Shell,
    form: Form,
}

impl NewPage {
    fn new(form: Form, user: &str) -> Self {
        Self { shell: Shell::signed_in("New run", Section::Runs, user).explained_in("guide/loads"), form }
    }
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
    let is_preset = form_urlencoded::parse(&query).any(|(field, _)| field == "preset");
    // A preset leaves it open what is measured.
    let shown_faults = if query.is_empty() || is_preset { ShownFaults::Typed } else { ShownFaults::All };
    let (form, _) = evaluate(&state, &presence, Draft::parse(&query), caller.scope, shown_faults).await?;
    Ok(NewPage::new(form, &caller.name).into_response())
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
            experiments::store::find(&state.db.read, experiment).await?.map(|experiment| experiment.plan)
        }
        None => None,
    };
    let draft = plan.as_ref().map_or_else(Draft::default, Draft::from_plan);
    let draft = match &run.spec.load {
        Some(load) => draft.with_load(load),
        None => draft,
    };
    Ok(Draft {
        name: String::new(),
        targets: vec![run.spec.target],
        sizes: run.spec.size.map(|size| size.name).into_iter().collect(),
        scenario: run.spec.scenario.unwrap_or_else(|| draft.scenario.clone()),
        parameters: run.spec.parameters,
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
    let presets = PresetsPart { form: &form }.render().map_err(Error::internal)?;
    let fields = FieldsPart { form: &form }.render().map_err(Error::internal)?;
    let forecast = ForecastPart { form: &form }.render().map_err(Error::internal)?;
    Ok(Html(presets + &fields + &forecast))
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
        return Ok((StatusCode::UNPROCESSABLE_ENTITY, NewPage::new(form, &caller.name)).into_response());
    };
    let full = create(&state, checked, caller).await?;
    Ok(Redirect::to(&format!("/experiments/{}", full.experiment.id)).into_response())
}
