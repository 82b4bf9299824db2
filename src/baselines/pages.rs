//! `/baselines`: the list of baselines, and the runs of one.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form, Router,
    extract::{Path, State},
    response::Redirect,
    routing::{get, post},
};
use serde::Deserialize;

use super::api;
use crate::{
    app::{
        error::Result,
        ids::{RunId, listed},
        state::AppState,
    },
    auth::{
        caller::{Read, Submit},
        model::Scope,
    },
    baselines::model::{Baseline, BaselineList, BaselineRuns, BaselineWithRuns},
    runs::{model::Run, pages::row::ListedRun},
    web::{
        address::segment,
        confirm::Confirm,
        form::up,
        format::plural,
        shell::{Section, Shell},
    },
};

/// Returns the page routes.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/baselines", get(index).post(set))
        .route("/baselines/{name}", get(show))
        .route("/baselines/{name}/remove", up(2, post(api::remove)).get(ask_remove))
}

/// The list of baselines.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "baselines/index.html")]
pub struct IndexPage {
    shell: Shell,
    baselines: Vec<Baseline>,
    scope: Scope,
}

/// A baseline with its runs.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "baselines/show.html")]
pub struct ShowPage {
    shell: Shell,
    baseline: Baseline,
    lines: Vec<ListedRun>,
    scope: Scope,
}

impl IndexPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

impl ShowPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

async fn index(Read(caller): Read, state: State<AppState>) -> Result<IndexPage> {
    let BaselineList { baselines } = api::list(Read(caller.clone()), state).await?.0;
    let shell =
        Shell::signed_in("Baselines", Section::Baselines, &caller.name).explained_in("guide/comparing#baselines");
    Ok(IndexPage { shell, baselines, scope: caller.scope })
}

async fn show(Read(caller): Read, state: State<AppState>, name: Path<String>) -> Result<ShowPage> {
    let BaselineWithRuns { baseline, runs } = api::show(Read(caller.clone()), State(state.0.clone()), name).await?.0;
    let targets: Vec<&str> = runs.iter().map(|run| run.spec.target.as_str()).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let shell = Shell::signed_in(format!("Baseline {}", baseline.name), Section::Baselines, &caller.name);
    let lines = runs.into_iter().map(|run| ListedRun::new(run, &marks)).collect();
    Ok(ShowPage { shell, baseline, lines, scope: caller.scope })
}

/// The form on the comparison page.
#[derive(Debug, Deserialize)]
struct BaselineForm {
    name: String,
    /// Ids of runs, separated by commas.
    runs: String,
}

/// Makes a baseline of the compared runs that have valid results.
async fn set(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Form(form): Form<BaselineForm>,
) -> Result<Redirect> {
    let named: Vec<RunId> = listed(&[form.runs]);
    let runs = crate::runs::store::by_ids(&state.db.rows, &named).await?;
    let runs = runs.into_iter().filter(Run::counts).map(|run| run.id.to_string()).collect();
    let requested = BaselineRuns { runs, ..BaselineRuns::default() };
    let baseline = api::set_as(&state, &caller, &form.name, &requested).await?;
    Ok(Redirect::to(&format!("/baselines/{}", segment(&baseline.name))))
}

async fn ask_remove(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<Confirm> {
    let baseline = api::find(&state, &name).await?;
    let action = "Remove this baseline";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Baselines, &caller.name),
        action,
        what: format!("{}, {}", baseline.name, plural(baseline.runs.len(), "run")),
        consequences: vec![
            "Gates and comparisons that use this name will fail.".to_owned(),
            "Its runs are kept.".to_owned(),
        ],
        back: "/baselines".to_owned(),
    })
}
