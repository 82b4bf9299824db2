//! The page of the history, rendered.

use std::collections::HashMap;

use super::*;
use crate::runs::{
    column,
    store::values::Values,
    testing::{failed, finished, measuring},
};

fn page(unfinished: Vec<Run>, ended: Vec<Run>, scope: Scope) -> String {
    ticked(unfinished, ended, &[], scope)
}

fn ticked(unfinished: Vec<Run>, ended: Vec<Run>, ticked: &[Run], scope: Scope) -> String {
    let marks = Marks::default();
    let history = History {
        query: RunQuery::default(),
        filter: Filter { scope: RunScope::Ended, ..Filter::default() },
        columns: column::DEFAULT.to_vec(),
        column_keys: None,
        culprits: Vec::new(),
        deletions: Vec::new(),
        running: unfinished.len(),
        queued: 0,
        progress: progress(unfinished, &ended, &marks),
        older: ended.last().map(|run| run.id.clone()),
        groups: RunGroup::by_experiment(ended, &HashMap::new(), &[], &marks),
        open: Vec::new(),
        ticked: ticked.iter().map(|run| run.id.clone()).collect(),
        elsewhere: ticked
            .iter()
            .filter(|run| run.spec.target == "old")
            .map(|run| ListedRun::new(run.clone(), &marks))
            .collect(),
        scope,
    };
    let shell = Shell::signed_in("Runs", Section::Runs, "ada");
    let finder = Finder::new(&RunQuery::default(), Values::default(), column::DEFAULT.to_vec(), None);
    HistoryPage { shell, finder, history }.render().expect("it renders")
}

#[test]
fn an_empty_history_explains_how_to_add_runs() {
    let html = page(Vec::new(), Vec::new(), Scope::Submit);
    assert!(html.contains("make demo") && html.contains("brewbench run import FILE"), "{html}");
    assert!(!html.contains("<table"));
}

#[test]
fn the_table_is_a_form_that_leads_to_the_comparison() {
    let ended = [finished("servy", 2), failed("servy", "failed", "it died")];
    let ended = ended.map(|run| Run { experiment: None, ..run }).into();
    let html = ticked(Vec::new(), ended, &[finished("servy", 2), finished("old", 1)], Scope::Submit);
    assert!(html.contains(r#"<form id="choice" action="/compare" method="get">"#), "{html}");
    let box_of = |id: &str| {
        let at = html.find(&format!(r#"name="runs" value="{id}""#)).unwrap_or_else(|| panic!("{id} has no box"));
        html[at..].split('>').next().unwrap_or_default().to_owned()
    };
    assert!(!box_of("servy-1").contains(" checked") && box_of("servy-2").contains(" checked"));
    assert!(box_of("old-1").contains(" checked"), "runs ticked on another page stay ticked");
    assert!(html.contains(r#"formaction="/runs" name="after" value="servy-1""#), "{html}");
    assert!(html.contains("/runs/live?runs=servy-2&#38;runs=old-1"), "{html}");
}

#[test]
fn only_a_user_who_may_submit_sees_the_cancel_link() {
    let html = |scope| page(vec![measuring("servy")], Vec::new(), scope);
    assert!(html(Scope::Submit).contains(r#"href="/runs/servy-3/cancel""#));
    assert!(!html(Scope::Read).contains("/cancel"));
}

#[test]
fn html_in_names_is_escaped() {
    let name = "<script>alert(1)</script>";
    let mut run = finished(name, 1);
    run.spec.scenario = Some(name.to_owned());
    run.agent = Some(name.to_owned());
    let html = page(vec![measuring(name)], vec![run], Scope::Submit);
    assert!(!html.contains("<script>alert"), "{html}");
}
