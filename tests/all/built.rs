//! Targets that agents build: a plan names a revision, and the site leads to the target.

use brewbench_wire::messages::TargetOffer;
use reqwest::StatusCode;
use serde_json::json;

use crate::harness::{Agent, App, submit::plan_with};

#[tokio::test]
async fn a_plan_may_name_revisions_of_targets_that_are_built() {
    let app = App::start().await;
    let mut agent = Agent::start_with(&app, "rack", |hello| {
        let plain = hello.targets[0].clone();
        let api = TargetOffer {
            name: "api".to_owned(),
            version: "from source".to_owned(),
            revisions: vec!["main".to_owned()],
            ..plain.clone()
        };
        hello.targets = vec![TargetOffer { name: "plain".to_owned(), version: "1".to_owned(), ..plain }, api];
    })
    .await;
    let user = app.user().await;
    let submit = async |targets: &[&str]| {
        let answer = user.post("/api/v1/experiments", &plan_with(&json!({"targets": targets}))).await;
        (answer.status, answer.text())
    };
    let (status, text) = submit(&["api@main", "api@refs/pull/7/head", "plain@1"]).await;
    assert_eq!(status, StatusCode::CREATED, "{text}");
    let all = ["api@main", "api@refs/pull/7/head", "plain@1"];
    assert_eq!(agent.job().await.targets, all, "the agent builds all before it measures one");
    let full = "0123456789abcdef0123456789abcdef01234567";
    let (status, text) = submit(&[&format!("api@{full}")]).await;
    assert!(status == StatusCode::CREATED && text.contains("\"api@0123456789ab\"") && !text.contains(full), "{text}");
    for (target, sentence) in [
        ("api@a b", "targets: api@a b: a revision is a branch, a tag or a commit"),
        ("api@--all", "targets: api@--all: a revision is a branch, a tag or a commit"),
        ("plain@2", "no connected agent offers \\\"plain@2\\\"; offered: api, plain"),
    ] {
        let (status, text) = submit(&[target]).await;
        assert!(!status.is_success() && text.contains(sentence), "{text}");
    }
    let browser = user.clone().in_browser();
    let form = browser.get("/experiments/new?target=api@main&target=&target=api@main").await.ok().text();
    assert_eq!(form.matches("value=\"api@main\" checked").count(), 1, "{form}");
    assert!(form.contains("placeholder=\"api@main\"") && !form.contains("no agent has ever offered it"));
    let page = browser.get("/targets/api@refs%2Fpull%2F7%2Fhead").await.ok().text();
    assert!(page.contains("A revision of <a href=\"/targets/api\">api</a>"), "{page}");
    let answer = browser.get("/targets/api@main2").await;
    assert_eq!((answer.status, answer.header("location")), (StatusCode::SEE_OTHER, "/targets/api"), "without results");
    assert_eq!(browser.get("/targets/none@main").await.status, StatusCode::NOT_FOUND);
    assert_eq!(browser.get("/targets/none").await.status, StatusCode::NOT_FOUND);
}
