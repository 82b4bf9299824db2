//! `/compare`: the page of one comparison. It lives in its address, so that it can be shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::{RawQuery, State};

use std::sync::Arc;

use super::equal_work::{OpenDifference, open_differences};
use crate::{
    app::{error::Result, ids::joined, state::AppState},
    auth::{caller::Read, model::Scope},
    compare::{load, made::Made, view::Comparison},
    web::shell::{Section, Shell},
};

/// The page; without a comparison it explains how to get one.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "compare/index.html")]
pub struct ComparePage {
    /// What surrounds it.
    pub shell: Shell,
    /// What is compared.
    pub comparison: Option<Arc<Made>>,
    /// What can be done with it.
    pub acts: Acts,
}

/// What can be done with a comparison. Template: `compare/_acts.html`.
#[derive(Clone, Debug)]
pub struct Acts {
    /// What the address of the page says.
    pub query: String,
    /// Ids of its runs, separated by commas.
    pub runs: String,
    open: Vec<OpenDifference>,
    scope: Scope,
}

impl Acts {
    /// By somebody, with what an address says.
    pub fn new(query: String, comparison: Option<&Comparison>, scope: Scope) -> Self {
        Self {
            query,
            runs: comparison.map_or_else(String::new, |comparison| joined(&comparison.run_ids())),
            open: comparison.map_or_else(Vec::new, |comparison| open_differences(&comparison.rows)),
            scope,
        }
    }

    /// Where it is had as a file.
    pub fn report(&self, format: &str) -> String {
        format!("/api/v1/report?{}&format={format}", self.query)
    }

    /// Where differences in work are accepted, and what there is to accept.
    pub fn open(&self) -> &[OpenDifference] {
        if self.may_submit() { &self.open } else { &[] }
    }

    /// Whether who looks may also keep and share it.
    pub fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

/// `GET /compare?runs=…&baseline=…`
pub async fn compare(
    Read(caller): Read,
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<ComparePage> {
    let query = query.unwrap_or_default();
    let comparison = load::page_if_named(&state, &query).await?;
    let title = comparison.as_ref().map_or_else(|| "Compare runs".to_owned(), |comparison| comparison.title.clone());
    let acts = Acts::new(query, comparison.as_ref().map(|made| &***made), caller.scope);
    Ok(ComparePage { shell: Shell::signed_in(title, Section::Compare, &caller.name), comparison, acts })
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
        let acts = Acts::new(String::new(), Some(&comparison), Scope::Read);
        ComparePage { shell, comparison: Some(Arc::new(comparison.into())), acts }.render().expect("it renders")
    }

    #[test]
    fn a_page_opens_with_the_answer_and_ends_with_every_run() {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        let html = page(runs);
        let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
        assert!(at("+25.0\u{a0}%") < at("data-chart") && at("data-chart") < at("<h2>Figures"));
        assert!(html.contains(", best</span>") && html.contains(r#"href="/runs/servy-3""#));
    }

    #[test]
    fn hostile_names_stay_text_in_cells_and_in_charts() {
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
    fn without_runs_the_page_says_how_to_choose_some() {
        let acts = Acts::new(String::new(), None, Scope::Read);
        let shell = Shell::signed_in("Compare runs", Section::Compare, "ada");
        let page = ComparePage { shell, comparison: None, acts };
        let html = page.render().expect("it renders");
        assert!(html.contains("Nothing is chosen yet") && html.contains(r#"href="/runs""#));
        assert!(!html.contains("plotly"), "a page without charts does not load the library");
    }
}
