//! Search: what it finds, in which order, and for whom.

use brewbench::auth::model::Role;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App,
    program::as_user,
    submit::{plan_with, repetitions, submit, text},
    summaries::good,
};

async fn hits(who: &Actor, words: &str) -> Vec<Value> {
    let answer = Answer::to(who.request(&Method::GET, "/api/v1/search").query(&[("q", words)])).await.ok().json();
    answer["hits"].as_array().expect("hits").clone()
}

async fn titles(who: &Actor, words: &str, kind: &str) -> Vec<String> {
    hits(who, words).await.iter().filter(|hit| hit["kind"] == kind).map(|hit| text(&hit["title"])).collect()
}

/// The paths of pages that a caller finds without words.
async fn pages(who: &Actor) -> Vec<String> {
    let request = who.request(&Method::GET, "/search").header("accept", "application/json");
    let found = Answer::to(request).await.ok().json();
    let path = |hit: &Value| text(&hit["url"]).parse::<url::Url>().expect("a URL").path().to_owned();
    found["hits"].as_array().expect("hits").iter().map(path).collect()
}

#[tokio::test]
async fn everything_is_found_by_its_name_and_runs_and_experiments_by_their_id() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"name": "After the New parser"}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let run = &runs[0];

    let found = hits(&user, "fast").await;
    let first = (text(&found[0]["kind"]), text(&found[0]["title"]), text(&found[0]["url"]));
    assert_eq!(first, ("target".to_owned(), "fast".to_owned(), format!("{}targets/fast", app.state.public_url)));
    assert!(found[0]["mark"].is_number(), "{found:?}");
    assert_eq!(titles(&user, "parser new", "experiment").await, ["After the New parser"]);
    assert_eq!(titles(&user, "audit", "page").await, [""; 0], "a token of scope submit");
    assert_eq!(titles(&user, "AGENTS", "page").await, ["Agents"]);
    assert!(titles(&user, "minimum effect", "documentation").await.iter().any(|title| title.starts_with("Statistics")));
    for part in [&run[..], &run[..13], run.rsplit('-').next().expect("a part")] {
        assert_eq!(titles(&user, part, "run").await, [run.as_str()], "{part}");
    }
    for part in [&experiment[..], &experiment[..20]] {
        assert!(hits(&user, part).await.iter().any(|hit| text(&hit["url"]).ends_with(&experiment)), "{part}");
    }
    assert_eq!(hits(&user, run).await[0]["kind"], "run", "the only exact match comes first");
    user.delete(&format!("/api/v1/runs/{run}")).await.ok();
    assert!(hits(&user, run).await.is_empty(), "it was deleted");

    let printed = as_user(&app, app.admin().await.secret(), &["search", "new", "parser"]).await.ok();
    assert!(printed.contains("experiment") && printed.contains(&format!("/experiments/{experiment}")), "{printed}");
    let printed = as_user(&app, app.admin().await.secret(), &["search", "zzzz"]).await.ok();
    assert!(printed.contains("nothing matches \"zzzz\""), "{printed}");
}

#[tokio::test]
async fn better_matches_come_first_and_their_number_is_bounded() {
    let app = App::start().await;
    let user = app.user().await;
    for target in ["my-servy", "servy-2", "servy", "reservyed"] {
        repetitions(&user, target, "1", 1, 1.0).await;
    }
    assert_eq!(titles(&user, "Servy", "target").await, ["servy", "servy-2", "my-servy", "reservyed"]);
    for count in 0..30 {
        repetitions(&user, &format!("many-{count:02}"), "1", 1, 1.0).await;
    }
    assert_eq!(titles(&user, "many", "target").await.len(), 20);
    let request = user.request(&Method::GET, "/search?q=many").header("accept", "application/json");
    assert!(Answer::to(request).await.ok().json()["hits"].as_array().is_some_and(|hits| hits.len() < 20));
    let groups: Vec<String> = hits(&user, "trend").await.iter().map(|hit| text(&hit["kind"])).collect();
    let mut distinct = groups.clone();
    distinct.dedup();
    assert_eq!(distinct, ["page", "documentation"], "each kind once: {groups:?}");
}

#[tokio::test]
async fn every_page_that_is_found_can_be_opened_and_others_are_not_found() {
    let app = App::start().await;
    let admin = app.signed_in(Role::Admin).await.in_browser();
    let all = pages(&admin).await;
    assert!(all.len() > 20, "{all:?}");
    for (role, missing) in [
        (Role::Viewer, &["/runs/import", "/users", "/audit", "/settings/webhooks"][..]),
        (Role::Member, &["/users", "/audit", "/settings/webhooks"][..]),
        (Role::Admin, &[][..]),
    ] {
        let user = app.signed_in(role).await.in_browser();
        let found = pages(&user).await;
        for path in &all {
            assert_eq!(found.contains(path), !missing.contains(&path.as_str()), "{path} as {role:?}");
            let expected = if found.contains(path) { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(user.get(path).await.status, expected, "{path} as {role:?}");
        }
    }
    let token = hits(&app.admin().await, "").await;
    assert!(token.iter().all(|hit| hit["title"] != "Account"), "a token has no account: {token:?}");
}

#[tokio::test]
async fn anonymous_visitors_find_the_documentation_and_nothing_else() {
    let app = App::start().await;
    let user = app.user().await;
    repetitions(&user, "verdict-server", "1", 1, 1.0).await;
    let nobody = app.anonymous().in_browser();
    let page = nobody.get("/search?q=verdict").await.ok().text();
    assert!(page.contains("/docs/guide/verdict") && !page.contains("verdict-server"), "{page}");
    assert!(!page.contains("New run") && !page.contains("Pages</h2>"), "{page}");
    assert!(pages(&app.anonymous()).await.iter().all(|path| path.starts_with("/docs")));
    assert!(nobody.get("/docs").await.ok().text().contains("action=\"/search\""));
    let own = app.signed_in(Role::Viewer).await.in_browser().get("/search?q=verdict").await.ok().text();
    assert!(own.contains("verdict-server"), "{own}");
    app.anonymous().get("/api/v1/search?q=verdict").await.refused(401);
}

#[tokio::test]
async fn no_query_is_syntax_or_markup() {
    let app = App::start().await;
    let user = app.user().await;
    repetitions(&user, "<b>servy</b> 100%", "1", 1, 1.0).await;
    assert_eq!(titles(&user, "%", "target").await, ["<b>servy</b> 100%"], "it is a character as any other");
    for odd in ["_", "*", "\"", "'", "' or 1=1 --", "a AND (", "\u{0}\u{1b}", "[]", "NEAR(", &"é".repeat(5_000)] {
        assert_eq!(titles(&user, odd, "target").await, [""; 0], "{odd}");
    }
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let page = viewer.get("/search?q=%3Cb%3Eservy").await.ok().text();
    assert!(page.contains("&#60;b&#62;servy") && !page.contains("<b>servy"), "{page}");
    let nothing = viewer.get("/search?q=zzz%3Cscript%3Ealert(1)").await.ok().text();
    assert!(nothing.contains("Nothing matches") && !nothing.contains("<script>alert"), "{nothing}");
}
