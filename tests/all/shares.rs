//! Share links, which need no login: what they show and hide, and how they end.

use brewbench::auth::model::Role;
use serde_json::json;

use crate::harness::{
    Actor, App,
    program::as_user,
    submit::{repetitions, text},
};

async fn two_targets(user: &Actor) -> Vec<String> {
    [repetitions(user, "gosherve", "1.0", 4, 0.8).await, repetitions(user, "servy", "1.0", 4, 1.0).await].concat()
}

/// Creates a share link and returns its path.
async fn share(user: &Actor, body: &serde_json::Value) -> String {
    let created = user.post("/api/v1/shares", body).await.ok().json();
    let url = text(&created["url"]);
    url[url.find("/shared/").expect("a link")..].to_owned()
}

#[tokio::test]
async fn a_share_link_shows_the_comparison_and_leads_nowhere_else() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user).await;
    let down = text(&user.import(crate::harness::summaries::target_down()).await.ok().json()["runs"][0]["id"]);
    let path = share(&user, &json!({"query": format!("runs={},{down}&baseline=servy", runs.join(","))})).await;
    let nobody = app.anonymous().in_browser();
    let answer = nobody.get(&path).await.ok();
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
    assert_eq!(answer.header("x-robots-tag"), "noindex, nofollow");
    assert_eq!(answer.header("cache-control"), "no-store");
    let page = answer.text();
    assert!(page.contains("gosherve") && page.contains("data-chart") && page.contains("All repetitions"), "{page}");
    let links: Vec<&str> = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert!(links.iter().all(|link| link.starts_with("/static/") || link.starts_with('#')), "{links:?}");
    assert!(
        !page.contains("<form") && !page.contains("/runs/") && !page.contains("data-on") && !page.contains("Log out")
    );
    for path in ["/compare", "/runs", "/shares", &format!("/runs/{}", runs[0]), "/api/v1/shares"] {
        let status = nobody.get(path).await.status.as_u16();
        assert!(status == 303 || status == 401, "{path}: {status}");
    }
}

#[tokio::test]
async fn a_share_link_names_no_agent() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user).await;
    let write = &app.state.db.write;
    for sql in [
        "insert into agent (name, key_hash, created_at) select value, cast(value as blob), 1
         from json_each('[\"vault-0\",\"vault-1\",\"vault-load\"]')",
        "update run set agent_id = (select id from agent where name = 'vault-' || (repetition % 2)),
             generators = (select json_array(id) from agent where name = 'vault-load')",
        "update run set phase = 'failed', error = 'vault-load: stopped by vault-1' where repetition = 1",
    ] {
        sqlx::query(sql).execute(write).await.expect("runs of agents");
    }
    let inside = user.clone().in_browser();
    for rest in ["&baseline=servy", "&by=agent&baseline=vault-1", "&by=size&allow_confounders=true"] {
        let query = format!("runs={}{rest}", runs.join(","));
        let names = async || inside.get(&format!("/compare?{query}")).await.ok().text().matches("vault").count();
        let before = names().await;
        let path = share(&user, &json!({"query": query})).await;
        let page = app.anonymous().in_browser().get(&path).await.ok().text();
        assert!(!page.contains("vault") && page.contains("agent "), "{page}");
        assert!(before > 0 && names().await == before, "the page inside the site names them: {rest}");
    }
}

#[tokio::test]
async fn revoked_expired_and_unknown_links_show_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let query = format!("runs={}", two_targets(&user).await.join(","));
    let (revoked, expired) =
        (share(&user, &json!({"query": query})).await, json!({"query": query, "expires_in_days": 0}));
    let expired = share(&user, &expired).await;
    user.delete("/api/v1/shares/1").await.ok();
    user.delete("/api/v1/shares/1").await.refused(404);
    let nobody = app.anonymous();
    let errors: Vec<String> = [
        nobody.get(&revoked).await.refused(404),
        nobody.get(&expired).await.refused(404),
        nobody.get("/shared/bbc_0").await.refused(404),
        nobody.get("/shared/%00").await.refused(404),
    ]
    .into();
    assert!(errors.iter().all(|one| *one == errors[0]), "guesses reveal nothing: {errors:?}");
    let states: Vec<_> = user.get("/api/v1/shares").await.ok().json()["shares"].as_array().expect("shares").clone();
    assert_eq!((states.len(), states[1]["revoked_at_ms"].is_number()), (2, true));
}

#[tokio::test]
async fn a_link_shows_only_the_runs_that_were_shared() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user).await;
    let path = share(&user, &json!({"query": format!("runs={}&baseline=servy", runs.join(","))})).await;
    let nobody = app.anonymous().in_browser();
    let page = nobody.get(&format!("{path}?runs={}&baseline=gosherve", runs[0])).await.ok().text();
    assert!(page.contains("8 runs</span></summary>"), "added query parameters change nothing");
    user.delete(&format!("/api/v1/runs/{}", runs[0])).await.ok();
    assert!(nobody.get(&path).await.ok().text().contains("7 runs</span></summary>"));
    for run in &runs[1..] {
        user.delete(&format!("/api/v1/runs/{run}")).await.ok();
    }
    assert_eq!(nobody.get(&path).await.status.as_u16(), 404);
}

#[tokio::test]
async fn a_secret_is_shown_once_stored_as_a_hash_and_not_in_lists_or_the_log() {
    let app = App::start().await;
    let user = app.user().await;
    let query = format!("runs={}", two_targets(&user).await.join(","));
    let path = share(&user, &json!({"query": query})).await;
    let secret = path.trim_start_matches("/shared/").to_owned();
    assert!(secret.len() > 60 && secret.starts_with("bbc_"), "{secret}");
    let list = user.get("/api/v1/shares").await.ok().text();
    let log = app.admin().await.get("/api/v1/audit").await.ok().text();
    assert!(!list.contains(&secret) && !log.contains(&secret) && log.contains("comparison shared"));
    let stored: Vec<u8> = std::fs::read(app.data().join("brewbench.db")).expect("a database");
    let wal = std::fs::read(app.data().join("brewbench.db-wal")).unwrap_or_default();
    let contains_secret = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret.as_bytes());
    assert!(!contains_secret(&stored) && !contains_secret(&wal));
}

#[tokio::test]
async fn only_comparisons_can_be_shared() {
    let app = App::start().await;
    let user = app.user().await;
    for (query, status) in [("", 422), ("runs=", 422), ("runs=x", 404), ("\u{0}", 422)] {
        user.post("/api/v1/shares", &json!({"query": query})).await.refused(status);
    }
    user.post("/api/v1/shares", &json!({"query": "runs=x", "days": 1})).await.refused(422);
    assert_eq!(user.get("/api/v1/shares").await.ok().json(), json!({"shares": []}));
}

#[tokio::test]
async fn links_are_created_listed_and_revoked_by_command_and_form() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user).await;
    let token = user.secret();
    let end = runs[0].rsplit('-').next().expect("an end");
    let url = as_user(&app, token, &["share", "create", end, &runs[4], "--expires-in", "7"]).await.ok();
    let path = url.trim().find("/shared/").map(|at| &url.trim()[at..]).expect("a link");
    app.anonymous().get(path).await.ok();
    let list = as_user(&app, token, &["share", "list"]).await.ok();
    assert!(list.contains("open") && list.lines().all(|line| line.chars().count() <= 80), "{list}");
    as_user(&app, token, &["share", "revoke", "1"]).await.ok();
    app.anonymous().get(path).await.refused(404);

    let member = app.signed_in(Role::Member).await.in_browser();
    let query = format!("runs={}", runs.join(","));
    let page = member.get(&format!("/compare?{query}")).await.ok().text();
    assert!(page.contains(r#"action="/shares""#), "{page}");
    let created = member.form("/shares", &[("query", query.as_str()), ("days", "7")]).await;
    assert_eq!(created.status.as_u16(), 201);
    let page = created.text();
    let at = page.find("/shared/bbc_").expect("a link");
    let path: String = page[at..].chars().take_while(|letter| !matches!(letter, '<' | '"')).collect();
    app.anonymous().get(&path).await.ok();
    assert!(member.get("/shares/2/revoke").await.ok().text().contains("Revoke this link?"));
    member.form("/shares/2/revoke", &[]).await;
    app.anonymous().get(&path).await.refused(404);
}
