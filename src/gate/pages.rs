//! `/gate`: a candidate compared with a baseline. The URL holds the whole query, so it can be bookmarked and shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};

use super::api::{self, GateQuery};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        state::AppState,
    },
    auth::caller::Read,
    compare::comparability::Circumstance,
    gate::model::Gate,
    web::shell::{Section, Shell},
};

/// Returns the page routes.
pub fn router() -> Router<AppState> {
    Router::new().route("/gate", get(show))
}

/// The form and, after it was submitted, the result.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "gate/index.html")]
pub struct Page {
    shell: Shell,
    asked: GateQuery,
    /// Baselines and recent experiments to choose from: value and description.
    known: Vec<(String, String)>,
    gate: Option<Gate>,
    fault: Option<String>,
}

impl Page {
    /// Returns all kinds of confounders and whether the query accepts them.
    fn choices(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let is_accepted = |word: &str| self.asked.accept.iter().any(|accepted| accepted == word);
        Circumstance::ALL.into_iter().map(move |one| (one.as_str(), is_accepted(one.as_str())))
    }
}

/// Maximum number of experiments to choose from.
const MAX_EXPERIMENTS: i64 = 20;

/// Returns what a side can be: the value of its field, and a description.
async fn known(state: &AppState) -> Result<Vec<(String, String)>> {
    let baselines = crate::baselines::store::all(&state.db.read).await?;
    let experiments = crate::experiments::store::list(&state.db.read, None, None, MAX_EXPERIMENTS).await?;
    let baselines = baselines.into_iter().map(|baseline| (baseline.name, "baseline".to_owned()));
    Ok(baselines.chain(experiments.into_iter().map(|one| (one.id.to_string(), one.name))).collect())
}

async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(asked): QueryParams<GateQuery>,
) -> Result<Response> {
    let known = known(&state).await?;
    let result = if asked.is_complete() { Some(api::evaluate(&state, &asked).await) } else { None };
    let shell = Shell::signed_in("Gate", Section::Gate, &caller.name).explained_in("guide/gate");
    let page = |gate, fault| Page { shell, asked, known, gate, fault };
    match result {
        None => Ok(page(None, None).into_response()),
        Some(Ok(gate)) => Ok(page(Some(gate), None).into_response()),
        // The form keeps its values and shows the error.
        Some(Err(fault @ (Error::Invalid(_) | Error::NotFound(_)))) => {
            let (status, message) = (fault.status(), fault.to_string());
            Ok((status, page(None, Some(message))).into_response())
        }
        Some(Err(fault)) => Err(fault),
    }
}
