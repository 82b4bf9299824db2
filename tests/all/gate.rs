//! The gate by API, command and page: outcomes, formats and exit codes.

use brewbench::auth::model::Role;
use serde_json::{Value, json};

use crate::harness::{
    Actor, App,
    program::{Output, as_user, brewbench},
    submit::{interleaved, repetitions, text},
    summaries::target_down,
};

/// Creates the baseline `main` of ten repetitions; returns ten of a candidate that is `faster` times as fast.
async fn candidate_runs(user: &Actor, faster: f64) -> String {
    let runs = interleaved(user, &[("servy", "1.0", 1.0), ("servy", "1.1", faster)], 10).await;
    user.put("/api/v1/baselines/main", &json!({"runs": runs[0]})).await.ok();
    runs[1].join(",")
}

async fn gate(user: &Actor, query: &str) -> Value {
    user.get(&format!("/api/v1/compare/gate?{query}")).await.ok().json()
}

#[tokio::test]
async fn the_gate_fails_only_on_a_significant_difference_beyond_a_rule() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = candidate_runs(&user, 0.9).await;
    let check = async |rules: &str| gate(&user, &format!("baseline=main&candidate={candidate}&{rules}")).await;
    let failed = check("fail_on=rps%3C-5%25&fail_on=p99%3E20%25").await;
    assert_eq!(failed["outcome"], "regression", "{failed}");
    let outcomes: Vec<_> =
        failed["checks"].as_array().expect("checks").iter().map(|check| text(&check["outcome"])).collect();
    assert_eq!(outcomes, ["regression", "fine"]);
    assert!(text(&failed["headline"]).starts_with("Regression: throughput −10.0"), "{failed}");
    assert_eq!(failed["baseline"], "main");
    assert_eq!(check("fail_on=rps%3C-15%25").await["outcome"], "fine");
    let page = app.signed_in(Role::Viewer).await;
    let url = text(&failed["url"]);
    let path = &url[url.find("/compare").expect("a page")..];
    page.get(path).await.ok();
}

#[tokio::test]
async fn inconclusive_checks_are_reported_and_invalid_queries_are_refused() {
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
    let error = refused(&format!("baseline={base}&candidate={one}&fail_on=rsp%3C-5%25"), 422).await;
    assert!(error.starts_with("fail_on: \"rsp<-5%\": at 1: unknown metric \"rsp\"; use one of rps"), "{error}");
    assert_eq!(
        refused(&format!("baseline=main&candidate={one}&fail_on=rps%3C0%25"), 404).await,
        "there is no baseline \"main\""
    );
    let error = refused(&format!("baseline={base}&candidate={one}"), 422).await;
    assert!(error.starts_with("fail_on: write 1 to 50 rules"), "{error}");
    refused(&format!("baseline=&candidate={one}&fail_on=rps%3C0%25"), 422).await;
    refused(&format!("baseline={base}&candidate={base},{one}&fail_on=rps%3C0%25"), 422).await;
    refused(&format!("baseline={base}&candidate={one}&fail_on=rps%3C0%25&accept=everything"), 422).await;
    refused(&format!("baseline={base}&candidate={one}&fail_on=rps%3C0%25&candidate_target=x"), 422).await;
}

#[tokio::test]
async fn results_are_available_as_markdown_and_junit() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = candidate_runs(&user, 0.9).await;
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
async fn the_command_exits_with_0_1_2_or_64_and_writes_its_files() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = candidate_runs(&user, 0.9).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (markdown, junit) = (path("gate.md"), path("gate.xml"));
    let check = async |more: &[&str]| {
        let arguments = [&["compare", "--baseline", "main", "--candidate", &candidate], more].concat();
        as_user(&app, user.secret(), &arguments).await
    };
    let fine = check(&["--fail-on", "rps<-50%"]).await.ok();
    assert!(fine.starts_with("No regression: rps<-50% is ruled out\n"), "{fine}");
    let failed = check(&["--fail-on", "rps<-5%", "--markdown", &markdown, "--junit", &junit]).await;
    assert_eq!((failed.code, failed.err.as_str()), (Some(1), ""), "{}", failed.out);
    assert!(failed.out.contains("✗ regression") && failed.out.lines().all(|line| line.chars().count() < 1_000));
    assert!(std::fs::read_to_string(&markdown).expect("a file").starts_with("### ❌"));
    assert!(std::fs::read_to_string(&junit).expect("a file").starts_with("<?xml"));
    let json: Value = serde_json::from_str(&check(&["--fail-on", "rps<-5%", "--json"]).await.out).expect("JSON");
    assert_eq!(json["outcome"], "regression");
    let piped = check(&["--fail-on", "rps<-5%", "--markdown", "-"]).await;
    assert!(piped.out.starts_with("### ❌") && piped.code == Some(1), "{}", piped.out);

    let end = candidate.rsplit('-').next().expect("an end");
    let one =
        as_user(&app, user.secret(), &["compare", "--baseline", "main", "--candidate", end, "--fail-on", "rps<-5%"])
            .await;
    assert_eq!(one.code, Some(2), "{}{}", one.out, one.err);

    let misspelt = check(&["--fail-on", "rps<5%"]).await.refused(64);
    assert!(misspelt.contains("at 5: the limit after < must not be positive, as in rps<-5%"), "{misspelt}");
    check(&[]).await.refused(64);
    let nobody = ["compare", "--baseline", "nobody", "--candidate", &candidate, "--fail-on", "rps<-5%"];
    let error = as_user(&app, user.secret(), &nobody).await.refused(64);
    assert!(error.contains("no baseline, experiment or run matches \"nobody\""), "{error}");
    let unreachable = [&nobody[..], &["--url", "http://127.0.0.1:9", "--token", "x"]].concat();
    Output::of(brewbench(&unreachable)).await.refused(2);
}

#[tokio::test]
async fn targets_tell_both_sides_of_one_baseline_apart() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = interleaved(&user, &[("old", "1", 1.0), ("new", "1", 1.3)], 10).await.concat();
    user.put("/api/v1/baselines/both", &json!({"runs": runs})).await.ok();
    let query = "baseline=both&candidate=both&fail_on=rps%3C-5%25";
    let found = gate(&user, &format!("{query}&baseline_target=old&candidate_target=new")).await;
    assert_eq!(found["outcome"], "fine");
    let swapped = gate(&user, &format!("{query}&baseline_target=new&candidate_target=old")).await;
    assert_eq!(swapped["outcome"], "regression", "{swapped}");
    let error = user.get(&format!("/api/v1/compare/gate?{query}")).await.refused(422);
    assert!(error.contains("would be compared with itself"), "{error}");
}

#[tokio::test]
async fn the_page_shows_the_result_and_keeps_invalid_input() {
    let app = App::start().await;
    let user = app.user().await;
    let candidate = candidate_runs(&user, 0.9).await;
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
