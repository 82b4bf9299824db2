//! `/compare`: the page of a comparison. Its URL holds all options, so it can be shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{RawQuery, State},
    http::Uri,
    response::{IntoResponse, Redirect, Response},
};
use axum_extra::extract::Query;

use std::sync::Arc;
use url::form_urlencoded;

use super::equal_work::{OpenDifference, open_differences};
use crate::{
    app::{
        error::{Error, Result},
        ids::joined,
        state::AppState,
    },
    auth::{caller::Read, model::Scope},
    compare::{
        address::Address,
        builder::{Builder, Candidates, Choice},
        ci::Pipeline,
        load,
        rendered::Rendered,
        script_metrics::ScriptMetrics,
        store,
        view::Comparison,
    },
    web::shell::{Section, Shell},
};

/// The page; without a comparison it explains how to choose runs.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "compare/index.html")]
pub struct ComparePage {
    /// Page frame.
    pub shell: Shell,
    /// The form, unless the address names runs.
    pub builder: Option<Builder>,
    /// The comparison, if runs are chosen.
    pub comparison: Option<Arc<Rendered>>,
    /// Actions on the comparison.
    pub acts: Actions,
}

impl ComparePage {
    /// Query of the list of runs in which these are selected.
    fn selection(&self) -> String {
        format!("runs={}", self.acts.runs)
    }

    /// Whether no run can be chosen.
    fn is_empty(&self) -> bool {
        self.builder.as_ref().is_some_and(Builder::is_empty)
    }

    /// Whether the runs differ in more than what is compared.
    fn has_confounders(&self) -> bool {
        self.comparison.as_ref().is_some_and(|comparison| comparison.with_confounders.is_some())
    }
}

/// Actions on a comparison. Template: `compare/_share.html`.
#[derive(Clone, Debug)]
pub struct Actions {
    /// Query of the page.
    pub query: String,
    /// Ids of its runs, separated by commas.
    pub runs: String,
    /// What a pipeline needs, if it compares two.
    pub ci: Option<Pipeline>,
    open: Vec<OpenDifference>,
    scope: Scope,
}

impl Actions {
    /// Creates the actions for a query and the scope of the user.
    pub fn new(query: String, comparison: Option<&Comparison>, scope: Scope) -> Self {
        Self {
            query,
            runs: comparison.map_or_else(String::new, |comparison| joined(&comparison.run_ids())),
            ci: comparison.and_then(Pipeline::new),
            open: comparison.map_or_else(Vec::new, |comparison| open_differences(&comparison.rows)),
            scope,
        }
    }

    /// Returns the URL of the report in a format.
    pub fn report(&self, format: &str) -> String {
        format!("/api/v1/report?{}&format={format}", self.query)
    }

    /// Differences in work that the user may accept.
    pub fn open(&self) -> &[OpenDifference] {
        if self.may_submit() { &self.open } else { &[] }
    }

    /// Whether the user may save and share the comparison.
    pub fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

/// `GET /compare?runs=…&baseline=…`, or `?candidate=…&against=…` from the form. One experiment has a page of its own.
pub async fn compare(Read(caller): Read, State(state): State<AppState>, RawQuery(query): RawQuery) -> Result<Response> {
    let mut query = query.unwrap_or_default();
    if let Some(experiment) = load::read(&query)?.experiment() {
        let pairs = form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name != "experiments");
        return Ok(Redirect::to(&Address::of_experiment(&experiment).with(pairs)).into_response());
    }
    let mut comparison = load::page_if_any(&state, &query).await?;
    let mut builder = None;
    if comparison.is_none() {
        let filled_in = fill_in(&state, &query).await?;
        if filled_in.is_complete() && !filled_in.runs().is_empty() {
            query = filled_in.query();
            comparison = load::page_if_any(&state, &query).await?;
        }
        builder = Some(filled_in);
    }
    let title = comparison.as_ref().map_or_else(|| "Compare".to_owned(), |comparison| comparison.title.clone());
    let acts = Actions::new(query, comparison.as_ref().map(|rendered| &***rendered), caller.scope);
    let shell = Shell::signed_in(title, Section::Compare, &caller.name);
    Ok(ComparePage { shell, builder, comparison, acts }.into_response())
}

/// The page of the scripts' own metrics.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "compare/metrics.html")]
pub struct MetricsPage {
    shell: Shell,
    title: String,
    back: String,
    metrics: ScriptMetrics,
}

/// `GET /compare/metrics`, with the query of a comparison.
pub async fn metrics(
    Read(caller): Read,
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<MetricsPage> {
    let query = query.unwrap_or_default();
    let comparison = load::from_query(&state, &query).await?;
    let metrics = load::script_metrics(&state, &comparison).await?;
    let shell = Shell::signed_in("Metrics of the script", Section::Compare, &caller.name);
    Ok(MetricsPage { shell, title: comparison.title.clone(), back: format!("/compare?{query}"), metrics })
}

async fn fill_in(state: &AppState, query: &str) -> Result<Builder> {
    let uri: Uri = format!("/compare?{query}").parse().map_err(|fault| Error::Invalid(format!("query: {fault}")))?;
    let Query(choice) = Query::<Choice>::try_from_uri(&uri)?;
    let baselines = crate::baselines::store::all(&state.db.read).await?;
    let stock = Candidates {
        runs: store::recent(&state.db.rows).await?,
        baselines: baselines.into_iter().map(|baseline| (baseline.name, baseline.runs)).collect(),
    };
    Ok(Builder::new(choice, &stock))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{faster, repeated, run},
        runs::model::Run,
        web::series_style::Marks,
    };

    fn page(runs: Vec<Run>) -> String {
        let comparison = Comparison::new(runs, &Marks::default(), None);
        let shell = Shell::signed_in(comparison.title.clone(), Section::Compare, "ada");
        let acts = Actions::new(String::new(), Some(&comparison), Scope::Read);
        ComparePage { shell, builder: None, comparison: Some(Arc::new(comparison.into())), acts }
            .render()
            .expect("it renders")
    }

    #[test]
    fn the_page_starts_with_the_result_and_ends_with_all_runs() {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        let html = page(runs);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
        assert!(at("25.0\u{a0}% faster") < at("data-chart") && at("data-chart") < at("<h2>All metrics"));
        assert!(html.contains(", best</span>") && html.contains(r#"href="/runs/servy-3""#));
    }

    #[test]
    fn hostile_names_are_escaped_in_cells_and_charts() {
        let name = "<script>alert(1)</script>";
        let mut runs = repeated(|n| run(name, n));
        runs.extend(repeated(|n| run("</script><img src=x onerror=alert(1)>", n)));
        let html = page(runs);
        assert!(!html.contains("<script>alert") && !html.contains("<img"), "{html}");
        let scripts = html.matches("<script").count();
        assert_eq!(scripts, html.matches("</script>").count());
        assert!(html.contains("&#60;script&#62;alert(1)"));
    }

    #[test]
    fn without_runs_the_page_explains_how_to_get_some() {
        let acts = Actions::new(String::new(), None, Scope::Read);
        let shell = Shell::signed_in("Compare", Section::Compare, "ada");
        let builder = Some(Builder::new(Choice::default(), &Candidates::default()));
        let html = ComparePage { shell, builder, comparison: None, acts }.render().expect("it renders");
        assert!(html.contains("Nothing has been measured yet") && html.contains(r#"href="/experiments/new""#));
        assert!(!html.contains("plotly"), "a page without charts does not load the library");
    }
}
