//! Runs: lists, single runs, cancelling, deleting, selections.

use brewbench::auth::model::Role;
use brewbench_wire::outcome::Outcome;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App,
    agent::outcome,
    program::as_user,
    submit::{plan_with, submit, submit_one, text},
    summaries::good,
};

async fn imported(user: &Actor, target: &str) -> String {
    let answer = user.import_as(&[("target", target)], good()).await;
    text(&answer.ok().json()["runs"][0]["id"])
}

fn ids(list: &Value) -> Vec<String> {
    list["runs"].as_array().expect("a list").iter().map(|run| text(&run["id"])).collect()
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_paged() {
    let app = App::start().await;
    let user = app.user().await;
    let mut all = Vec::new();
    for target in ["a", "b", "a", "c", "a"] {
        all.insert(0, imported(&user, target).await);
    }
    let list = async |query: &str| ids(&user.get(&format!("/api/v1/runs{query}")).await.ok().json());
    assert_eq!(list("").await, all);
    assert_eq!(list("?limit=2").await, all[..2]);
    assert_eq!(list(&format!("?limit=2&after={}", all[1])).await, all[2..4]);
    assert_eq!(list("?target=b").await, [all[3].clone()]);
    assert_eq!(list("?phase=finished").await, all);
    assert_eq!(list("?phase=queued").await, Vec::<String>::new());
    let experiment = uuid::Uuid::nil();
    assert_eq!(list(&format!("?experiment={experiment}")).await, Vec::<String>::new());
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    loop {
        let page = user.get(&format!("/api/v1/runs{query}")).await.ok().json();
        seen.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        query = format!("?limit=2&after={next}");
    }
    assert_eq!(seen, all);
}

#[tokio::test]
async fn what_a_caller_has_is_not_sent_again() {
    let app = App::start().await;
    let user = app.user().await;
    imported(&user, "a").await;
    let first = user.get("/api/v1/runs").await.ok();
    let tag = first.headers["etag"].to_str().expect("a tag").to_owned();
    let again = async || {
        let request = user.request(&Method::GET, "/api/v1/runs").header("if-none-match", format!("\"other\", {tag}"));
        Answer::to(request).await
    };
    let answer = again().await;
    assert_eq!((answer.status.as_u16(), answer.headers["etag"].to_str().ok()), (304, Some(tag.as_str())));
    assert_eq!(answer.text(), "");
    imported(&user, "b").await;
    let answer = again().await.ok();
    assert_ne!(answer.headers["etag"], tag);
    assert_eq!(ids(&answer.json()).len(), 2);
}

#[tokio::test]
async fn invalid_queries_are_refused_with_an_error() {
    let app = App::start().await;
    let user = app.user().await;
    for limit in ["many", "0", "1001"] {
        let error = user.get(&format!("/api/v1/runs?limit={limit}")).await.refused(422);
        assert!(error.contains("limit"), "{error}");
    }
    let typing_error = user.get("/api/v1/runs?taget=a").await.refused(422);
    assert!(typing_error.starts_with("unknown query parameter \"taget\": it has q, target, "), "{typing_error}");
    let none = user.get("/api/v1/sizes?limit=1").await.refused(422);
    assert_eq!(none, "unknown query parameter \"limit\": it has none");
    let target = user.post("/api/v1/runs/import", &json!({})).await.refused(422);
    assert!(target.contains("of no known format"), "{target}");
    let none = user.get("/api/v1/compare").await.refused(422);
    assert!(none.contains("?runs="), "{none}");
    for path in [
        "/api/v1/runs/x",
        "/api/v1/runs/%00",
        "/api/v1/runs/x/summary",
        "/api/v1/compare?runs=x",
        "/api/v1/experiments/x",
    ] {
        user.get(path).await.refused(404);
    }
}

#[tokio::test]
async fn a_deleted_run_is_gone_with_its_summary() {
    let app = App::start().await;
    let user = app.user().await;
    let (gone, stays) = (imported(&user, "a").await, imported(&user, "b").await);
    assert_eq!(user.delete(&format!("/api/v1/runs/{gone}")).await.status, 204);
    user.get(&format!("/api/v1/runs/{gone}")).await.refused(404);
    user.get(&format!("/api/v1/runs/{gone}/summary")).await.refused(404);
    user.delete(&format!("/api/v1/runs/{gone}")).await.refused(404);
    assert_eq!(ids(&user.get("/api/v1/runs").await.ok().json()), [stays]);
}

#[tokio::test]
async fn only_unfinished_runs_are_cancelled_and_only_ended_ones_deleted() {
    let app = App::start().await;
    let user = app.user().await;
    let ended = imported(&user, "a").await;
    let late = user.post(&format!("/api/v1/runs/{ended}/cancel"), &()).await.refused(409);
    assert_eq!(late, "the run has already ended: finished");

    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    agent.job().await;
    let busy = user.delete(&format!("/api/v1/runs/{}", runs[0])).await.refused(409);
    assert_eq!(busy, "the run is leased: cancel it first");
    user.delete(&format!("/api/v1/runs/{}", runs[1])).await.refused(409);
    let cancelled = user.post(&format!("/api/v1/runs/{}/cancel", runs[1]), &()).await.ok().json();
    let run = &cancelled["runs"][0];
    assert_eq!(run["phase"], "cancelled");
    assert!(text(&run["error"]).starts_with("cancelled by token submit"), "{}", run["error"]);
    user.delete(&format!("/api/v1/runs/{}", runs[1])).await.ok();
}

#[tokio::test]
async fn selected_runs_stay_selected_across_pages() {
    let app = App::start().await;
    let user = app.user().await;
    let mut ids = Vec::new();
    for number in 0..51 {
        ids.push(imported(&user, &format!("t{number}")).await);
    }
    let (oldest, newest) = (&ids[0], &ids[50]);
    let browser = user.in_browser();
    let first = browser.get("/runs").await.ok().text();
    let (_, table) = first.split_once(r#"<form id="choice""#).expect("a table");
    assert!(!first.contains(oldest.as_str()) && !table.contains(" checked"), "{first}");
    // What the button "Older" submits with one run selected.
    let second = browser.get(&format!("/runs?runs={newest}&after={}", ids[1])).await.ok().text();
    let (_, table) = second.split_once(r#"<form id="choice""#).expect("a table");
    let boxes: Vec<_> = table.split("<input").skip(1).filter_map(|part| part.split('>').next()).collect();
    let checked: Vec<_> = boxes.iter().filter(|tag| tag.contains(" checked")).collect();
    assert!(checked.len() == 1 && checked[0].contains(newest.as_str()), "{checked:?}");
    assert!(boxes.iter().any(|tag| tag.contains(oldest.as_str())), "{boxes:?}");
    assert!(second.contains(r#"formaction="/runs">Newest"#), "{second}");
    // What the button "Compare" submits with both runs selected.
    let compared = browser.get(&format!("/compare?runs={newest}&runs={oldest}")).await.ok().text();
    assert!(compared.contains("t50") && compared.contains("t0"));
    // Ids of missing runs are ignored.
    browser.get(&format!("/runs?runs=,x,{newest}&runs=%27);alert(1);//")).await.ok();
}

#[tokio::test]
async fn log_lines_are_found_by_page_api_and_command() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let target_log = "listening\n<b>ERROR</b> one\nfine\nerror two\n".to_owned();
    agent.end(Outcome { target_log, generator_log: "running\n".to_owned(), ..outcome(&job, &good()) }).await;

    let path = format!("/api/v1/runs/{id}/logs");
    let found = user.get(&format!("{path}?grep=Error")).await.ok().json();
    assert_eq!((&found["target"], &found["target_lines"]), (&json!("<b>ERROR</b> one\nerror two\n"), &json!([2, 4])));
    assert_eq!(found["generators"][0]["lines"], json!([]));
    assert!(user.get(&format!("{path}?grep=")).await.ok().json()["target_lines"].is_null());
    let long = user.get(&format!("{path}?grep={}", "x".repeat(201))).await.refused(422);
    assert!(long.starts_with("grep: "), "{long}");

    let printed = as_user(&app, user.secret(), &["run", "logs", &id, "--grep", "error"]).await.ok();
    assert_eq!(
        printed,
        "== target\n2: <b>ERROR</b> one\n4: error two\n== load generator on rack\n(no matching lines)\n"
    );

    let viewer = app.signed_in(Role::Viewer).await;
    for page in [format!("/runs/{id}?log=error"), format!("/runs/{id}/logs?log=error")] {
        let html = viewer.get(&page).await.ok().text();
        assert!(html.contains("2 matching lines") && html.contains("2 of 4 lines"), "{page}: {html}");
        assert!(html.contains(r#"<li value="4"><mark>error</mark> two</li>"#), "{page}: {html}");
        assert!(!html.contains("<b>ERROR") && !html.contains("<b><mark>"), "{page}: {html}");
    }
    let nothing = viewer.get(&format!("/runs/{id}?log=%3Cscript%3E")).await.ok().text();
    assert!(nothing.contains("No matching lines") && !nothing.contains("<script>\""), "{nothing}");
}
