//! `/differences`: the differences in work that users have accepted.

use std::{collections::BTreeSet, str::FromStr};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form, Router,
    extract::{Path, State},
    response::Redirect,
    routing::{get, post},
};
use serde::Deserialize;

use super::{AcceptedDifference, DifferenceList, NewDifference, WorkFact, api};
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Read, Submit},
        model::Scope,
    },
    web::{
        confirm::Confirm,
        form::up,
        shell::{Section, Shell},
    },
};

/// Returns the page routes.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/differences", get(index).post(accept))
        .route("/differences/{id}/revoke", up(2, post(api::revoke)).get(ask_revoke))
}

/// The list of accepted differences.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "differences/index.html")]
pub struct IndexPage {
    shell: Shell,
    differences: Vec<AcceptedDifference>,
    scope: Scope,
}

impl IndexPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

async fn index(Read(caller): Read, state: State<AppState>) -> Result<IndexPage> {
    let DifferenceList { differences } = api::list(Read(caller.clone()), state).await?.0;
    let shell = Shell::signed_in("Accepted differences", Section::Compare, &caller.name)
        .explained_in("guide/comparing#equal-work");
    Ok(IndexPage { shell, differences, scope: caller.scope })
}

/// The form on the comparison page.
#[derive(Debug, Deserialize)]
struct DifferenceForm {
    one: String,
    other: String,
    #[serde(default)]
    scenario: String,
    /// Names of facts, separated by commas.
    facts: String,
    note: String,
    /// The query string of the comparison.
    #[serde(default)]
    query: String,
}

async fn accept(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Form(form): Form<DifferenceForm>,
) -> Result<Redirect> {
    let DifferenceForm { one, other, scenario, facts, note, query } = form;
    let words = facts.split(',').map(str::trim).filter(|word| !word.is_empty());
    let facts: BTreeSet<WorkFact> = words
        .map(WorkFact::from_str)
        .collect::<Result<_, _>>()
        .map_err(|fault| Error::Invalid(format!("facts: {fault}")))?;
    let new = NewDifference { targets: [one, other], scenario: Some(scenario), facts, note };
    api::accept_as(&state, &caller, new).await?;
    // The redirect cannot leave the comparison page: everything after the question mark is the query.
    Ok(Redirect::to(&if query.is_empty() { "/differences".to_owned() } else { format!("/compare?{query}") }))
}

async fn ask_revoke(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Confirm> {
    let difference = api::find(&state, &id).await?;
    let action = "Revoke this acceptance";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Compare, &caller.name),
        action,
        what: format!("{}: {}", difference.pair(), difference.facts_text()),
        consequences: vec!["Comparisons of these targets name no winner while their work differs.".to_owned()],
        back: "/differences".to_owned(),
    })
}
