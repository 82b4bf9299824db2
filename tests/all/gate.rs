//! The gate as programs and commands meet it: what it says, in which form, and what a command ends with.

use brewbench::auth::model::Role;
use serde_json::{Value, json};

use crate::harness::{
    Actor, App,
    program::{Output, as_user, brewbench},
    submit::{interleaved, repetitions, text},
    summaries::target_down,
};

/// Ten repetitions of a baseline called `main`, and as many of a candidate that is so many times as fast.
async fn against(user: &Actor, faster: f64) -> String {
    let runs = interleaved(user, &[("servy", "1.0", 1.0), ("servy", "1.1", faster)], 10).await;
    user.put("/api/v1/baselines/main", &json!({"runs": runs[0]})).await.ok();
    runs[1].join(",")
}

async fn gate(user: &Actor, query: &str) -> Value {
    user.get(&format!("/api/v1/compare/gate?{query}")).await.ok().json()
}

#[tokio::test]
async fn a_gate_closes_on_a_real_difference_beyond_a_rule_and_on_nothing_else() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = against(&user, 0.9).await;
    let ask = async |rules: &str| gate(&user, &format!("baseline=main&candidate={candidate}&{rules}")).await;
    let closed = ask("fail_on=rps%3C-5%25&fail_on=p99%3E20%25").await;
    assert_eq!(closed["outcome"], "regression", "{closed}");
    let outcomes: Vec<_> =
        closed["checks"].as_array().expect("checks").iter().map(|check| text(&check["outcome"])).collect();
    assert_eq!(outcomes, ["regression", "fine"]);
    assert!(text(&closed["headline"]).starts_with("Regression: throughput −10.0"), "{closed}");
    assert_eq!(closed["baseline"], "main");
    assert_eq!(ask("fail_on=rps%3C-15%25").await["outcome"], "fine");
    let page = app.signed_in(Role::Viewer).await;
    let url = text(&closed["url"]);
    let path = &url[url.find("/compare").expect("a page")..];
    page.get(path).await.ok();
}

#[tokio::test]
async fn what_can_not_be_said_is_told_and_what_makes_no_sense_is_refused() {
    let app = App::start().await;
    let user = app.user().await;
    let base = repetitions(&user, "servy", "1.0", 10, 1.0).await.join(",");
    let one = repetitions(&user, "servy", "1.1", 1, 0.5).await.join(",");
    let few = gate(&user, &format!("baseline={base}&candidate={one}&fail_on=rps%3C-5%25")).await;
    assert_eq!(few["outcome"], "cannot_say");
    assert!(text(&few["checks"][0]["reason"]).starts_with("too few repetitions"), "{few}");
    let down = text(&user.import(target_down()).await.ok().json()["runs"][0]["id"]);
    let invalid = gate(&user, &format!("baseline={base}&candidate={down}&fail_on=rps%3C-5%25")).await;
    assert_eq!(invalid["outcome"], "cannot_say", "{invalid}");
    let refused =
        async |query: &str, status: u16| user.get(&format!("/api/v1/compare/gate?{query}")).await.refused(status);
    let told = refused(&format!("baseline={base}&candidate={one}&fail_on=rsp%3C-5%25"), 422).await;
    assert!(told.starts_with("fail_on: \"rsp<-5%\": at 1: unknown metric \"rsp\"; use one of rps"), "{told}");
    assert_eq!(
        refused(&format!("baseline=main&candidate={one}&fail_on=rps%3C0%25"), 404).await,
        "there is no baseline \"main\""
    );
    let told = refused(&format!("baseline={base}&candidate={one}"), 422).await;
    assert!(told.starts_with("fail_on: write 1 to 50 rules"), "{told}");
    refused(&format!("baseline=&candidate={one}&fail_on=rps%3C0%25"), 422).await;
    refused(&format!("baseline={base}&candidate={base},{one}&fail_on=rps%3C0%25"), 422).await;
    refused(&format!("baseline={base}&candidate={one}&fail_on=rps%3C0%25&accept=everything"), 422).await;
    refused(&format!("baseline={base}&candidate={one}&fail_on=rps%3C0%25&candidate_target=x"), 422).await;
}

#[tokio::test]
async fn the_answer_comes_as_markdown_and_as_junit_too() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = against(&user, 0.9).await;
    let query = format!("/api/v1/compare/gate?baseline=main&candidate={candidate}&fail_on=rps%3C-5%25");
    let markdown = user.get(&format!("{query}&format=markdown")).await.ok();
    assert!(
        markdown.header("content-type").starts_with("text/markdown")
            && markdown.text().starts_with("### ❌ Regression")
    );
    let junit = user.get(&format!("{query}&format=junit")).await.ok();
    assert!(junit.header("content-type").starts_with("application/xml"));
    assert!(junit.text().contains(r#"<testsuites name="brewbench gate" tests="1" failures="1""#), "{}", junit.text());
}

#[tokio::test]
async fn a_command_ends_with_0_1_2_or_64_and_leaves_its_files() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = against(&user, 0.9).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (markdown, junit) = (path("gate.md"), path("gate.xml"));
    let ask = async |more: &[&str]| {
        let arguments = [&["compare", "--baseline", "main", "--candidate", &candidate], more].concat();
        as_user(&app, user.secret(), &arguments).await
    };
    let fine = ask(&["--fail-on", "rps<-50%"]).await.ok();
    assert!(fine.starts_with("No regression: 1 check passed\n"), "{fine}");
    let closed = ask(&["--fail-on", "rps<-5%", "--markdown", &markdown, "--junit", &junit]).await;
    assert_eq!((closed.code, closed.err.as_str()), (Some(1), ""), "{}", closed.out);
    assert!(closed.out.contains("✗ regression") && closed.out.lines().all(|line| line.chars().count() < 1_000));
    assert!(std::fs::read_to_string(&markdown).expect("a file").starts_with("### ❌"));
    assert!(std::fs::read_to_string(&junit).expect("a file").starts_with("<?xml"));
    let json: Value = serde_json::from_str(&ask(&["--fail-on", "rps<-5%", "--json"]).await.out).expect("JSON");
    assert_eq!(json["outcome"], "regression");
    let piped = ask(&["--fail-on", "rps<-5%", "--markdown", "-"]).await;
    assert!(piped.out.starts_with("### ❌") && piped.code == Some(1), "{}", piped.out);

    let end = candidate.rsplit('-').next().expect("an end");
    let one =
        as_user(&app, user.secret(), &["compare", "--baseline", "main", "--candidate", end, "--fail-on", "rps<-5%"])
            .await;
    assert_eq!(one.code, Some(2), "{}{}", one.out, one.err);

    let misspelt = ask(&["--fail-on", "rps<5%"]).await.refused(64);
    assert!(misspelt.contains("at 5: the limit after < must not be positive, as in rps<-5%"), "{misspelt}");
    ask(&[]).await.refused(64);
    let nobody = ["compare", "--baseline", "nobody", "--candidate", &candidate, "--fail-on", "rps<-5%"];
    let told = as_user(&app, user.secret(), &nobody).await.refused(64);
    assert!(told.contains("no baseline, experiment or run matches \"nobody\""), "{told}");
    let away = [&nobody[..], &["--url", "http://127.0.0.1:9", "--token", "x"]].concat();
    Output::of(brewbench(&away)).await.refused(2);
}

#[tokio::test]
async fn one_experiment_may_hold_both_sides_by_their_targets() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = interleaved(&user, &[("old", "1", 1.0), ("new", "1", 1.3)], 10).await.concat();
    user.put("/api/v1/baselines/both", &json!({"runs": runs})).await.ok();
    let query = "baseline=both&candidate=both&fail_on=rps%3C-5%25";
    let found = gate(&user, &format!("{query}&baseline_target=old&candidate_target=new")).await;
    assert_eq!(found["outcome"], "fine");
    let turned = gate(&user, &format!("{query}&baseline_target=new&candidate_target=old")).await;
    assert_eq!(turned["outcome"], "regression", "{turned}");
    let told = user.get(&format!("/api/v1/compare/gate?{query}")).await.refused(422);
    assert!(told.contains("would be compared with itself"), "{told}");
}

#[tokio::test]
async fn the_page_asks_answers_and_keeps_what_was_typed_where_it_was_wrong() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = against(&user, 0.9).await;
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let empty = viewer.get("/gate?baseline=main").await.ok().text();
    assert!(empty.contains(r#"value="main""#) && empty.contains("<option"), "{empty}");
    let page =
        viewer.get(&format!("/gate?baseline=main&candidate={candidate}&fail_on=rps%3C-5%25%2C+p99%3E20%25")).await;
    let page = page.ok().text();
    assert!(
        page.contains("<h1>Regression</h1>") && page.contains("✗ regression") && page.contains("✓ passed"),
        "{page}"
    );
    let wrong = viewer.get(&format!("/gate?baseline=main&candidate={candidate}&fail_on=rps%3C5%25")).await;
    assert_eq!(wrong.status.as_u16(), 422);
    assert!(wrong.text().contains("at 5: the limit after") && wrong.text().contains(&candidate), "{}", wrong.text());
    let nobody = viewer.get(&format!("/gate?baseline=nobody&candidate={candidate}&fail_on=rps%3C-5%25")).await;
    assert_eq!(nobody.status.as_u16(), 404);
}
