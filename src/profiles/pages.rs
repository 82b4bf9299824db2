//! `/profiles`: the profile of a cell, and `/profiles/compare`: where two cells differ.

use askama::Template;
use askama_web::WebTemplate;
use axum::{Router, extract::State, routing::get};
use brewbench_wire::profile::ProfileKind;
use url::form_urlencoded;

use super::{
    api, load,
    model::{CompareQuery, ProfileComparison, ProfileQuery, ProfileSide, ProfileTable},
    store,
};
use crate::{
    app::{
        error::{Error, QueryParams, Result},
        ids::{RunId, listed},
        state::AppState,
    },
    auth::caller::Read,
    web::{
        series_style::Marks,
        shell::{Section, Shell},
    },
};

/// Returns the page routes.
pub fn router() -> Router<AppState> {
    Router::new().route("/profiles", get(show)).route("/profiles/compare", get(compare))
}

/// The chapter of the documentation.
const CHAPTER: &str = "guide/profiles";

/// The functions that a page shows first; a link shows all.
const ALL: usize = 100_000;

/// The profile of a cell.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "profiles/show.html")]
pub struct ShowPage {
    shell: Shell,
    table: ProfileTable,
    marks: Marks,
    query: ProfileQuery,
    kinds: Vec<ProfileKind>,
}

/// Two profiles compared.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "profiles/compare.html")]
pub struct ComparePage {
    shell: Shell,
    comparison: ProfileComparison,
    marks: Marks,
    query: CompareQuery,
}

/// Two profiles that are not compared, and why.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "profiles/refused.html")]
pub struct RefusedPage {
    shell: Shell,
    why: String,
    anyway: String,
}

/// What `/profiles/compare` shows.
#[derive(Debug)]
enum Answer {
    Comparison(Box<ComparePage>),
    Refused(RefusedPage),
}

impl axum::response::IntoResponse for Answer {
    fn into_response(self) -> axum::response::Response {
        match self {
            Self::Comparison(page) => page.into_response(),
            Self::Refused(page) => page.into_response(),
        }
    }
}

impl ShowPage {
    /// The address of the page, with another kind of profile or all functions.
    fn address(&self, kind: &str, all: bool) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("runs", &self.query.runs).append_pair("kind", kind);
        if all {
            query.append_pair("limit", &ALL.to_string());
        }
        format!("/profiles?{}", query.finish())
    }

    fn graph(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("runs", &self.query.runs).append_pair("kind", self.table.kind.as_str());
        format!("/api/v1/profiles/graph?{}", query.finish())
    }

    fn has_more(&self) -> bool {
        self.table.functions.len() < self.table.functions_in_total
    }
}

impl ComparePage {
    fn parameters(&self, limit: Option<usize>) -> String {
        let CompareQuery { baseline, candidate, allow_confounders, .. } = &self.query;
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("baseline", baseline).append_pair("candidate", candidate);
        query.append_pair("kind", self.comparison.kind.as_str());
        if *allow_confounders {
            query.append_pair("allow_confounders", "true");
        }
        if let Some(limit) = limit {
            query.append_pair("limit", &limit.to_string());
        }
        query.finish()
    }

    fn graph(&self) -> String {
        format!("/api/v1/profiles/compare/graph?{}", self.parameters(None))
    }

    fn all(&self) -> String {
        format!("/profiles/compare?{}#functions", self.parameters(Some(ALL)))
    }

    fn has_more(&self) -> bool {
        self.comparison.functions.len() < self.comparison.functions_in_total
    }

    fn sides(&self) -> [&ProfileSide; 2] {
        [&self.comparison.baseline, &self.comparison.candidate]
    }
}

async fn show(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ProfileQuery>,
) -> Result<ShowPage> {
    let table = api::table(&state, &query).await?;
    let ids: Vec<RunId> = listed(std::slice::from_ref(&query.runs));
    let stored = store::of_runs(&state.db.read, &ids).await?;
    let has = |kind: &ProfileKind| ids.iter().all(|id| stored.iter().any(|one| one.run == *id && one.kind == *kind));
    let kinds = ProfileKind::ALL.into_iter().filter(has).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &[table.target.as_str()]).await?;
    let shell = Shell::signed_in(format!("Profile of {}", table.target), Section::Compare, &caller.name);
    Ok(ShowPage { shell: shell.explained_in(CHAPTER), table, marks, query, kinds })
}

async fn compare(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<CompareQuery>,
) -> Result<Answer> {
    load::kind(query.kind.as_deref())?;
    let title = |text: String| Shell::signed_in(text, Section::Compare, &caller.name).explained_in(CHAPTER);
    let comparison = match api::comparison(&state, &query).await {
        Ok(comparison) => comparison,
        Err(Error::Conflict(why)) => {
            let why = why.strip_prefix(api::NOT_COMPARED).unwrap_or(&why);
            let (why, _) = why.rsplit_once("; ").unwrap_or((why, ""));
            let mut anyway = form_urlencoded::Serializer::new(String::new());
            anyway.append_pair("baseline", &query.baseline).append_pair("candidate", &query.candidate);
            anyway.append_pair("allow_confounders", "true");
            let anyway = format!("/profiles/compare?{}", anyway.finish());
            let shell = title("Profiles are not comparable".to_owned());
            return Ok(Answer::Refused(RefusedPage { shell, why: why.to_owned(), anyway }));
        }
        Err(fault) => return Err(fault),
    };
    let targets = [comparison.baseline.target.as_str(), comparison.candidate.target.as_str()];
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    let shell = title(format!("Profiles of {} and {}", comparison.baseline.label, comparison.candidate.label));
    Ok(Answer::Comparison(Box::new(ComparePage { shell, comparison, marks, query })))
}
