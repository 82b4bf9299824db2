//! A stolen agent key: what it can add to the catalog, and how to remove that.

use brewbench::auth::model::{Role, Scope};
use brewbench_wire::{messages::TargetOffer, offer::MAX_TARGETS, target::Identity};
use serde_json::json;

use crate::harness::{Agent, App, program::as_user, summaries::good};

fn offers(hello: usize, count: usize) -> Vec<TargetOffer> {
    (0..count)
        .map(|place| TargetOffer {
            name: format!("junk-{hello}-{place}"),
            version: "1".to_owned(),
            description: String::new(),
            identity: program("cd".repeat(32)),
            anywhere: false,
            profile: None,
            compiles_at_run_time: false,
            revisions: Vec::new(),
        })
        .collect()
}

fn program(sha256: String) -> Identity {
    Identity::Process { sha256, code: None }
}

async fn count(app: &App, table: &'static str) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
    sqlx::query_scalar(sql).fetch_one(&app.state.db.read).await.expect("a count")
}

#[tokio::test]
async fn the_hello_message_of_an_agent_is_limited() {
    let app = App::start().await;
    let mut agent = Agent::disconnected(&app, "rack").await;
    agent.hello.targets = offers(0, MAX_TARGETS + 1);
    let refused = agent.connect(&app).await.expect_err("too many");
    assert!(refused.contains("201 targets; the maximum is 200"), "{refused}");
    for (change, expected) in [
        ((|offer| offer.name = "..".to_owned()) as fn(&mut TargetOffer), "name: "),
        (|offer| offer.name = "a\u{202e}b".to_owned(), "U+202E"),
        (|offer| offer.version = "1".repeat(101), "version: "),
        (|offer| offer.description = "x".repeat(100_000), "description: "),
        (|offer| offer.identity = program("xx".repeat(32)), "sha256: "),
        (|offer| offer.identity = Identity::Url { base: "javascript:alert(1)".to_owned() }, "url.base: "),
    ] {
        agent.hello.targets = offers(0, 1);
        change(&mut agent.hello.targets[0]);
        let refused = agent.connect(&app).await.expect_err(expected);
        assert!(refused.contains(expected) && refused.len() < 500, "{refused}");
    }
    assert_eq!((count(&app, "target").await, count(&app, "target_colour").await), (0, 0));
}

#[tokio::test]
async fn an_agent_that_changes_its_targets_cannot_fill_the_catalog() {
    let app = App::start().await;
    let mut agent = Agent::disconnected(&app, "rack").await;
    for hello in 0..6 {
        agent.hello.targets = offers(hello, MAX_TARGETS);
        agent.connect(&app).await.expect("a welcome");
    }
    assert_eq!((count(&app, "target").await, count(&app, "target_colour").await), (400, 400));
    // Neither can one that changes their versions.
    for version in 0..6 {
        agent.hello.targets = offers(0, MAX_TARGETS);
        for offer in &mut agent.hello.targets {
            offer.identity = program(format!("{version:064x}"));
        }
        agent.connect(&app).await.expect("a welcome");
    }
    assert!(count(&app, "target").await <= 400);
    let reader = app.reader().await;
    let page = reader.get("/api/v1/targets?limit=50").await.ok().json();
    assert_eq!((page["targets"].as_array().map(|all| all.len() >= 50), page["next"].is_string()), (Some(true), true));
    let html = reader.in_browser().get("/targets").await.ok().text();
    assert!(html.contains("Next page") && html.matches("<th class=\"first\" scope=\"row\"").count() == 100);
}

#[tokio::test]
async fn the_target_of_a_run_stays_in_the_catalog() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let user = app.user().await;
    crate::harness::submit::submit(&user, &crate::harness::submit::plan()).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    for hello in 0..4 {
        agent.hello.targets = offers(hello, MAX_TARGETS);
        agent.connect(&app).await.expect("a welcome");
    }
    let admin = app.admin().await;
    let path = format!("/api/v1/targets/{}", job.spec.target);
    assert!(admin.delete(&path).await.refused(409).contains("runs use"));
    let page = app.reader().await.in_browser().get(&format!("/targets/{}", job.spec.target)).await.ok().text();
    assert!(page.contains(&"ab".repeat(32)), "its version stays: {page}");
}

#[tokio::test]
async fn only_unused_targets_are_removed() {
    let app = App::start().await;
    let mut agent = Agent::disconnected(&app, "rack").await;
    agent.hello.targets = offers(0, 150);
    agent.connect(&app).await.expect("a welcome");
    agent.hello.targets.truncate(1);
    agent.connect(&app).await.expect("a welcome");
    app.user().await.import(good()).await.ok();
    let (admin, member) = (app.signed_in(Role::Admin).await, app.signed_in(Role::Member).await);
    assert!(admin.delete("/api/v1/targets/junk-0-0").await.refused(409).contains("a connected agent offers"));
    assert!(admin.delete("/api/v1/targets/t").await.refused(409).contains("runs use"));
    admin.delete("/api/v1/targets/nothing").await.refused(404);
    member.delete("/api/v1/targets/junk-0-1").await.refused(403);

    let pages = admin.clone().in_browser();
    assert!(pages.get("/targets").await.ok().text().contains("149 of them are unused"));
    assert!(!member.in_browser().get("/targets").await.ok().text().contains("Remove unused targets"));
    assert!(pages.get("/targets/junk-0-1").await.ok().text().contains("/targets/junk-0-1/remove"));
    pages.get("/targets/junk-0-1/remove").await.ok();
    assert_eq!(pages.form("/targets/junk-0-1/remove", &[]).await.status.as_u16(), 303);
    assert_eq!(pages.get("/targets/junk-0-1").await.status.as_u16(), 404);

    let token = app.token_secret(Scope::Admin, None).await;
    as_user(&app, &token, &["target", "remove", "junk-0-2", "junk-0-3"]).await.ok();
    assert!(pages.get("/unused-targets/remove").await.ok().text().contains("146 targets"));
    let removed = as_user(&app, &token, &["target", "remove", "--unused", "--json"]).await.json();
    assert_eq!(removed["removed"].as_array().map(Vec::len), Some(146));
    let left = admin.get("/api/v1/targets").await.ok().json();
    assert_eq!((&left["targets"][0]["name"], &left["targets"][1]), (&json!("junk-0-0"), &json!(null)));
    let log = admin.get("/api/v1/audit?action=target+removed&limit=1000").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(149));
}
