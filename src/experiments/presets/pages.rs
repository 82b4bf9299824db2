//! `/experiments/presets`: saved presets of the form for a new run.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form,
    extract::{Path, RawForm, State},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{
    api::{check_change, delete_named, find, may_change, save_as},
    model::{Preset, settings},
};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Caller, Read, Submit},
        model::Scope,
    },
    experiments::{
        new::{draft::Draft, pages::evaluate::defaults_of},
        plan::Plan,
    },
    web::{
        confirm::Confirm,
        shell::{Section, Shell},
    },
};

/// The chapter that explains presets.
const CHAPTER: &str = "guide/experiments#presets";

/// The list of presets.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/presets.html")]
pub struct IndexPage {
    shell: Shell,
    /// Presets, and whether the user may change each.
    presets: Vec<(Preset, bool)>,
    may_submit: bool,
}

/// The form that names a new preset.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "experiments/save_preset.html")]
pub struct SavePage {
    shell: Shell,
    name: String,
    /// The input of the form for a new run.
    query: String,
    settings: Vec<(&'static str, String)>,
    fault: Option<String>,
    /// Whether to offer to replace the preset with this name.
    may_replace: bool,
}

/// `GET /experiments/presets`
pub async fn index(Read(caller): Read, State(state): State<AppState>) -> Result<IndexPage> {
    let stored = crate::experiments::presets::store::all(&state.db.read).await?;
    let presets = stored.into_iter().map(|stored| (may_change(&caller, &stored), stored.preset));
    Ok(IndexPage {
        shell: Shell::signed_in("Presets", Section::Runs, &caller.name).explained_in(CHAPTER),
        presets: presets.map(|(may_change, preset)| (preset, may_change)).collect(),
        may_submit: caller.scope >= Scope::Submit,
    })
}

/// `GET /experiments/presets/new?target=…`: asks for the name under which the form is saved.
pub async fn name(Submit(caller): Submit, State(state): State<AppState>, RawForm(query): RawForm) -> Result<Response> {
    let draft = Draft::parse(&query);
    let Ok(plan) = plan_of(&state, &draft).await else {
        // The form shows the faults.
        return Ok(Redirect::to(&format!("/experiments/new?{}", draft.query())).into_response());
    };
    Ok(SavePage::new(&caller, &draft, &plan).into_response())
}

/// The posted form.
#[derive(Debug, Deserialize)]
pub struct SaveForm {
    name: String,
    query: String,
    replace: Option<String>,
}

/// `POST /experiments/presets`
pub async fn save(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Form(SaveForm { name, query, replace }): Form<SaveForm>,
) -> Result<Response> {
    let draft = Draft::parse(query.as_bytes());
    let plan = plan_of(&state, &draft).await?;
    let page = SavePage::new(&caller, &draft, &plan);
    match save_as(&state, &caller, &name, plan, replace.is_some()).await {
        Ok(_) => Ok(Redirect::to(&format!("/experiments/new?{}", draft.query())).into_response()),
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_) | Error::Forbidden(_))) => {
            let existing = crate::experiments::presets::store::one(&state.db.read, name.trim()).await?;
            let may_replace = existing.is_some_and(|stored| may_change(&caller, &stored));
            let sentence = fault.to_string();
            let sentence = sentence.strip_prefix("name: ").unwrap_or(&sentence).to_owned();
            let page = SavePage { name, fault: Some(sentence), may_replace, ..page };
            Ok((fault.status(), page).into_response())
        }
        Err(other) => Err(other),
    }
}

impl SavePage {
    fn new(caller: &Caller, draft: &Draft, plan: &Plan) -> Self {
        Self {
            shell: Shell::signed_in("Save as preset", Section::Runs, &caller.name).explained_in(CHAPTER),
            name: String::new(),
            query: draft.query(),
            settings: settings(plan),
            fault: None,
            may_replace: false,
        }
    }
}

async fn plan_of(state: &AppState, draft: &Draft) -> Result<Plan> {
    let plan = draft.plan(&defaults_of(state, &draft.scenario).await?);
    plan.map_err(|faults| Error::Invalid(faults.first().unwrap_or("the form has faults").to_owned()))
}

/// `GET /experiments/presets/{name}/delete`
pub async fn ask_delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let stored = find(&state, &name).await?;
    check_change(&caller, &stored)?;
    let preset = stored.preset;
    let action = "Delete this preset";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Runs, &caller.name),
        action,
        what: preset.name,
        consequences: vec![
            format!("The preset, saved by {}, is deleted for all users.", preset.created_by),
            "Runs and experiments are kept.".to_owned(),
        ],
        back: "/experiments/presets".to_owned(),
    })
}

/// `POST /experiments/presets/{name}/delete`
pub async fn delete(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Redirect> {
    delete_named(&state, &caller, &name).await?;
    Ok(Redirect::to("/experiments/presets"))
}
