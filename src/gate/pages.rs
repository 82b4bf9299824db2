//! `/gate`: a candidate judged by a baseline. It lives in its address, so that it can be kept and shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::State,
    response::{IntoResponse, Response},
    routing::get,
};

use super::api::{self, Wish};
use crate::{
    app::{
        error::{Asked, Error, Result},
        state::AppState,
    },
    auth::caller::Read,
    compare::comparability::Circumstance,
    gate::model::Gate,
    web::shell::{Section, Shell},
};

/// The page of this module.
pub fn router() -> Router<AppState> {
    Router::new().route("/gate", get(show))
}

/// The question, and the answer once somebody asked.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "gate/index.html")]
pub struct Page {
    shell: Shell,
    asked: Wish,
    /// Names of baselines, to choose from.
    known: Vec<String>,
    gate: Option<Gate>,
    fault: Option<String>,
}

impl Page {
    /// What may be unlike, and whether that was said.
    fn choices(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let is_accepted = |word: &str| self.asked.accept.iter().any(|accepted| accepted == word);
        Circumstance::ALL.into_iter().map(move |one| (one.as_str(), is_accepted(one.as_str())))
    }
}

async fn show(Read(caller): Read, State(state): State<AppState>, Asked(asked): Asked<Wish>) -> Result<Response> {
    let known = crate::baselines::store::all(&state.db.read).await?.into_iter().map(|baseline| baseline.name).collect();
    let answer = if asked.is_whole() { Some(api::answer(&state, &asked).await) } else { None };
    let shell = Shell::signed_in("Gate", Section::Compare, &caller.name);
    let page = |gate, fault| Page { shell, asked, known, gate, fault };
    match answer {
        None => Ok(page(None, None).into_response()),
        Some(Ok(gate)) => Ok(page(Some(gate), None).into_response()),
        // What was asked for stays where it was, with what is wrong with it.
        Some(Err(fault @ (Error::Invalid(_) | Error::NotFound(_)))) => {
            let (status, told) = (fault.status(), fault.to_string());
            Ok((status, page(None, Some(told))).into_response())
        }
        Some(Err(fault)) => Err(fault),
    }
}
