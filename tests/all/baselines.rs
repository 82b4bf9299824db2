//! Baselines: set, shown, replaced and removed, and what remains of them when runs are deleted.

use brewbench::auth::model::Role;
use serde_json::json;

use crate::harness::{
    Agent, App,
    program::as_user,
    submit::{plan_with, repetitions, submit, text},
    summaries::{good, target_down},
};

#[tokio::test]
async fn a_baseline_stores_runs_and_is_replaced_when_set_again() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 3, 1.0).await;
    let set = user.put("/api/v1/baselines/main", &json!({"runs": runs})).await.ok().json();
    assert_eq!((&set["name"], &set["runs"], &set["gone"]), (&json!("main"), &json!(runs), &json!([])));
    let newer = repetitions(&user, "servy", "1.1", 2, 1.0).await;
    user.put("/api/v1/baselines/main", &json!({"runs": newer})).await.ok();
    let shown = app.reader().await.get("/api/v1/baselines/main").await.ok().json();
    assert_eq!((&shown["baseline"]["runs"], &shown["runs"][0]["version"]), (&json!(newer), &json!("1.1")));
    let list = user.get("/api/v1/baselines").await.ok().json();
    assert_eq!(list["baselines"].as_array().map(Vec::len), Some(1));
    user.delete("/api/v1/baselines/main").await.ok();
    assert_eq!(user.get("/api/v1/baselines/main").await.refused(404), "there is no baseline \"main\"");
    user.delete("/api/v1/baselines/main").await.refused(404);
    assert_eq!(user.count_runs().await, 5, "its runs stay");
}

#[tokio::test]
async fn a_deleted_run_leaves_its_baselines_and_is_listed_as_gone() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 3, 1.0).await;
    user.put("/api/v1/baselines/main", &json!({"runs": runs})).await.ok();
    user.delete(&format!("/api/v1/runs/{}", runs[1])).await.ok();
    let shown = user.get("/api/v1/baselines/main").await.ok().json()["baseline"].take();
    assert_eq!((&shown["runs"], &shown["gone"]), (&json!([runs[0], runs[2]]), &json!([runs[1]])));
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    assert!(viewer.get("/baselines").await.ok().text().contains("1 deleted since"));
    assert!(viewer.get("/baselines/main").await.ok().text().contains("1 run deleted since."));
    // The same after the run has been purged.
    sqlx::query("delete from run where deleted_at is not null").execute(&app.state.db.write).await.expect("purged");
    let shown = user.get("/api/v1/baselines/main").await.ok().json()["baseline"].take();
    assert_eq!((&shown["runs"], &shown["gone"]), (&json!([runs[0], runs[2]]), &json!([runs[1]])));
}

#[tokio::test]
async fn a_baseline_accepts_only_valid_runs_and_the_error_names_the_other() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 1, 1.0).await;
    let down = text(&user.import(target_down()).await.ok().json()["runs"][0]["id"]);
    let put = async |name: &str, body: serde_json::Value| user.put(&format!("/api/v1/baselines/{name}"), &body).await;
    let error = put("main", json!({"runs": [runs[0], down]})).await.refused(422);
    assert_eq!(error, format!("runs: {down} has no valid results"));
    assert_eq!(put("main", json!({"runs": ["x"]})).await.refused(404), "there is no run \"x\"");
    assert_eq!(
        put("main", json!({"experiments": [""]})).await.refused(422),
        "runs: name at least one run or experiment"
    );
    assert_eq!(put("main", json!({})).await.refused(422), "runs: name at least one run or experiment");
    let error = put("main", json!({"experiments": ["x"]})).await.refused(422);
    assert_eq!(error, "experiments: \"x\" has no runs with valid results");
    put("main", json!({"runs": runs, "run": 1})).await.refused(422);
    put("a%2Cb", json!({"runs": runs})).await.refused(422);
    put(&runs[0], json!({"runs": runs})).await.refused(422);
    put("%20", json!({"runs": runs})).await.refused(422);
    assert_eq!(user.get("/api/v1/baselines").await.ok().json(), json!({"baselines": []}));
}

#[tokio::test]
async fn a_baseline_of_an_experiment_contains_its_valid_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    for summary in [good(), target_down(), good()] {
        let job = agent.job().await;
        agent.finish(&job, &summary).await;
    }
    let set = user.put("/api/v1/baselines/main", &json!({"experiments": [experiment]})).await.ok().json();
    assert_eq!(set["runs"].as_array().map(Vec::len), Some(2), "{set}");
    assert!(set["runs"].as_array().is_some_and(|stored| stored.iter().all(|run| runs.contains(&text(run)))), "{set}");
}

#[tokio::test]
async fn baselines_are_set_listed_shown_and_removed_by_command_and_audited() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 2, 1.0).await;
    let token = user.secret();
    let ends: Vec<&str> = runs.iter().filter_map(|id| id.rsplit('-').next()).collect();
    let output = as_user(&app, token, &["baseline", "set", "main", ends[0], ends[1]]).await.ok();
    assert!(output.starts_with("main: 2 runs; set by token submit"), "{output}");
    let list = as_user(&app, token, &["baseline", "list"]).await.ok();
    assert!(list.lines().count() == 2 && list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let shown = as_user(&app, token, &["baseline", "show", "main"]).await.ok();
    assert!(ends.iter().all(|end| shown.contains(end)), "{shown}");
    as_user(&app, token, &["baseline", "remove", "main"]).await.ok();
    as_user(&app, token, &["baseline", "remove", "main"]).await.refused(1);
    as_user(&app, token, &["baseline", "set", "main"]).await.refused(2);
    let log = app.admin().await.get("/api/v1/audit").await.ok().json();
    let actions: Vec<_> =
        log["entries"].as_array().expect("entries").iter().map(|entry| text(&entry["action"])).collect();
    assert!(
        actions.contains(&"baseline set".to_owned()) && actions.contains(&"baseline removed".to_owned()),
        "{actions:?}"
    );
}

#[tokio::test]
async fn a_comparison_is_saved_as_a_baseline_by_a_form() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 2, 1.0).await;
    let member = app.signed_in(Role::Member).await.in_browser();
    let page = member.get(&format!("/compare?runs={}", runs.join(","))).await.ok().text();
    assert!(page.contains(r#"action="/baselines""#) && page.contains(&runs.join(",")), "{page}");
    let answer = member.form("/baselines", &[("name", "a b"), ("runs", &runs.join(","))]).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/baselines/a%20b"));
    assert!(member.get("/baselines/a%20b").await.ok().text().contains("Baseline of 2 runs"));
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let page = viewer.get(&format!("/compare?runs={}", runs.join(","))).await.ok().text();
    assert!(!page.contains(r#"action="/baselines""#), "viewers get no form");
}

#[tokio::test]
async fn a_comparison_accepts_baselines_and_experiments() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 3, 1.0).await;
    user.put("/api/v1/baselines/main", &json!({"runs": runs})).await.ok();
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, _) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    for _ in 0..2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let query = format!("baselines=main&experiments={experiment}&runs={}", runs[0]);
    let compared = user.get(&format!("/api/v1/compare?{query}")).await.ok().json();
    let subjects = compared["subjects"].as_array().expect("subjects");
    assert_eq!(subjects.iter().map(|one| text(&one["target"])).collect::<Vec<_>>(), ["fast", "servy"]);
    user.delete(&format!("/api/v1/runs/{}", runs[1])).await.ok();
    let compared = user.get("/api/v1/compare?baselines=main").await.ok().text();
    assert!(compared.contains("1 run not found."), "{compared}");
    user.get("/api/v1/compare?baselines=unknown").await.refused(404);
    user.get("/api/v1/compare?experiments=unknown").await.refused(404);
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    viewer.get(&format!("/compare?{query}")).await.ok();
    let arguments = ["compare", "--runs-of", "main", "--experiment", &experiment, "--json"];
    let compared = as_user(&app, user.secret(), &arguments).await.json();
    assert_eq!(compared["subjects"].as_array().map(Vec::len), Some(2));
    as_user(&app, user.secret(), &["compare"]).await.refused(2);
}
