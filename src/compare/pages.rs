//! `/compare`: the page of one comparison. It lives in its address, so that it can be shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::State;

use super::{Chosen, Comparison, load, tell};
use crate::{
    auth::Read,
    error::{Asked, Result},
    state::AppState,
    web::shell::{Section, Shell},
};

/// The page; without a comparison it explains how to get one.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "compare/index.html")]
pub struct ComparePage {
    /// What surrounds it.
    pub shell: Shell,
    /// What is compared.
    pub comparison: Option<Comparison>,
}

/// `GET /compare?runs=…&baseline=…`
pub async fn compare(
    Read(caller): Read,
    State(state): State<AppState>,
    Asked(chosen): Asked<Chosen>,
) -> Result<ComparePage> {
    let ids = chosen.ids();
    let comparison = if ids.is_empty() {
        None
    } else {
        let mut comparison = load(&state, &chosen, &ids).await?;
        tell(&state, &mut comparison, chosen.setting).await?;
        comparison.keep = chosen.kept(&ids);
        Some(comparison)
    };
    let title = comparison.as_ref().map_or_else(|| "Compare runs".to_owned(), |comparison| comparison.title.clone());
    Ok(ComparePage { shell: Shell::signed_in(title, Section::Compare, &caller.name), comparison })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::mark::Marks;
    use crate::{
        compare::made_up::{faster, repeated, run},
        runs::Run,
    };

    fn page(runs: Vec<Run>) -> String {
        let comparison = Comparison::new(runs, &Marks::default(), None);
        let shell = Shell::signed_in(comparison.title.clone(), Section::Compare, "ada");
        ComparePage { shell, comparison: Some(comparison) }.render().expect("it renders")
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
        let page = ComparePage { shell: Shell::signed_in("Compare runs", Section::Compare, "ada"), comparison: None };
        let html = page.render().expect("it renders");
        assert!(html.contains("Nothing is chosen yet") && html.contains(r#"href="/runs""#));
        assert!(!html.contains("plotly"), "a page without charts does not load the library");
    }
}
