//! Users, invitations, tokens, sessions and the audit log: API, commands and forms without JavaScript.

use std::net::SocketAddr;

use brewbench::{
    app::{
        config::{Rate, Rates},
        networks::Networks,
    },
    auth::{
        caller::SECURE_SESSION_COOKIE,
        model::{Role, Scope},
    },
};
use brewbench_wire::now_ms;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, App, program::as_user, submit::text, summaries::good};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

async fn named(app: &App, name: &str, role: Role) -> Actor {
    app.signed_in_as(name, role, now_ms() + DAY_MS).await
}

async fn form(who: &Actor, path: &str, fields: &[(&str, &str)]) -> Answer {
    let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let request = who.request(&Method::POST, path).header("content-type", "application/x-www-form-urlencoded");
    Answer::to(request.body(body)).await
}

/// The audit log as (actor, action, object), newest first.
async fn log(app: &App, query: &str) -> Vec<(String, String, String)> {
    let list = app.admin().await.get(&format!("/api/v1/audit?{query}")).await.ok().json();
    let entries = list["entries"].as_array().expect("a list");
    entries.iter().map(|entry| (text(&entry["actor"]), text(&entry["action"]), text(&entry["object"]))).collect()
}

fn entry(who: &str, what: &str, object: &str) -> (String, String, String) {
    (who.to_owned(), what.to_owned(), object.to_owned())
}

#[tokio::test]
async fn a_changed_role_applies_at_once_and_the_last_administrator_stays() {
    let app = App::start().await;
    let (ada, eve) = (named(&app, "Ada", Role::Admin).await, named(&app, "Eve", Role::Viewer).await);
    eve.post("/api/v1/experiments", &json!({})).await.refused(403);
    ada.put("/api/v1/users/Eve", &json!({"role": "member"})).await.ok();
    eve.post("/api/v1/experiments", &json!({})).await.refused(422);

    let error = ada.put("/api/v1/users/Ada", &json!({"role": "member"})).await.refused(409);
    assert!(error.starts_with("Ada is the last administrator"), "{error}");
    assert_eq!(ada.delete("/api/v1/users/Ada").await.refused(409), error);
    ada.put("/api/v1/users/Eve", &json!({"role": "admin"})).await.ok();
    ada.put("/api/v1/users/Ada", &json!({"role": "viewer"})).await.ok();
    ada.get("/api/v1/users").await.refused(403);
    assert_eq!(log(&app, "action=role+changed&actor=Ada").await.len(), 3);
}

#[tokio::test]
async fn a_removed_user_loses_sessions_and_tokens_and_the_runs_stay() {
    let app = App::start().await;
    let (ada, eve) = (named(&app, "Ada", Role::Admin).await, named(&app, "Eve / <b>", Role::Member).await);
    let token =
        text(&eve.post("/api/v1/tokens", &json!({"name": "eve", "scope": "submit"})).await.ok().json()["secret"]);
    let program = app.anonymous().with_secret(&token);
    program.import(good()).await.ok();
    let pages = ada.clone().in_browser();
    let confirmation = pages.get("/users/Eve%20%2F%20%3Cb%3E/remove").await.ok().text();
    assert!(confirmation.contains("Eve / &#60;b&#62;, member"), "{confirmation}");
    let done = form(&pages, "/users/Eve%20%2F%20%3Cb%3E/remove", &[]).await;
    assert_eq!((done.status.as_u16(), done.header("location")), (303, "/users"));
    eve.get("/api/v1/runs").await.refused(401);
    program.get("/api/v1/runs").await.refused(401);
    assert_eq!(ada.count_runs().await, 1);
    let error = ada.delete("/api/v1/users/Eve").await.refused(404);
    assert_eq!(error, "there is no user \"Eve\"");
}

#[tokio::test]
async fn tokens_of_a_user_never_exceed_the_role_of_the_user() {
    let app = App::start().await;
    let (ada, eve) = (named(&app, "Ada", Role::Admin).await, named(&app, "Eve", Role::Member).await);
    let error = eve.post("/api/v1/tokens", &json!({"name": "big", "scope": "admin"})).await.refused(403);
    assert_eq!(error, "scope: your tokens can have at most your own scope, submit");
    let secret =
        text(&eve.post("/api/v1/tokens", &json!({"name": "hers", "scope": "submit"})).await.ok().json()["secret"]);
    let program = app.anonymous().with_secret(&secret);
    program.get("/api/v1/tokens").await.refused(403);
    program.post("/api/v1/tokens", &json!({"name": "child", "scope": "read"})).await.refused(403);
    program.import(good()).await.ok();

    ada.post("/api/v1/tokens", &json!({"name": "adas", "scope": "read"})).await.ok();
    let names = async |who: &Actor| -> Vec<Value> {
        let list = who.get("/api/v1/tokens").await.ok().json();
        list["tokens"].as_array().expect("a list").iter().map(|token| json!([token["name"], token["owner"]])).collect()
    };
    assert_eq!(names(&eve).await, [json!(["hers", "Eve"])]);
    assert_eq!(names(&ada).await, [json!(["adas", "Ada"]), json!(["hers", "Eve"])]);
    eve.delete("/api/v1/tokens/adas").await.refused(404);

    ada.put("/api/v1/users/Eve", &json!({"role": "viewer"})).await.ok();
    program.get("/api/v1/runs").await.ok();
    assert_eq!(program.import(good()).await.refused(403), "this needs the scope submit; yours is read");
    ada.delete("/api/v1/tokens/hers").await.ok();
    program.get("/api/v1/runs").await.refused(401);
}

#[tokio::test]
async fn a_form_creates_a_token_shows_it_once_and_keeps_invalid_input() {
    let app = App::start().await;
    let eve = named(&app, "Eve", Role::Member).await.in_browser();
    let page = eve.get("/tokens").await.ok().text();
    assert!(page.contains(r#"value="submit""#) && !page.contains(r#"value="admin""#));
    let created = form(&eve, "/tokens", &[("name", "ci"), ("scope", "read"), ("days", "7")]).await;
    assert_eq!((created.status.as_u16(), created.header("cache-control")), (201, "no-store"));
    let html = created.text();
    let secret = html.split("bbt_").nth(1).and_then(|rest| rest.split('"').next()).expect("the secret");
    app.anonymous().with_secret(&format!("bbt_{secret}")).get("/api/v1/runs").await.ok();
    assert!(!eve.get("/tokens").await.ok().text().contains(secret));
    let again = form(&eve, "/tokens", &[("name", "ci"), ("scope", "submit"), ("days", "0")]).await;
    assert_eq!(again.status.as_u16(), 409);
    let html = again.text();
    assert!(html.contains("a token") && html.contains("already exists") && html.contains(r#"value="ci""#), "{html}");
    assert!(html.contains(r#"<option value="submit" selected>"#) && html.contains(r#"<option value="0" selected>"#));
}

#[tokio::test]
async fn invitations_are_listed_without_their_secret_and_can_be_withdrawn() {
    let app = App::start().await;
    let ada = named(&app, "Ada", Role::Admin).await;
    let created = ada.post("/api/v1/invites", &json!({"role": "viewer"})).await.ok().json();
    let link = text(&created["url"]).replacen(app.state.public_url.as_str(), "/", 1);
    let secret = link.split('=').nth(1).expect("a secret").to_owned();
    let list = ada.get("/api/v1/invites").await.ok();
    assert!(!list.text().contains(&secret[4..]));
    let invites = &list.json()["invites"];
    assert_eq!((&invites[0]["role"], &invites[0]["created_by"]), (&json!("viewer"), &json!("Ada")));
    let page = ada.clone().in_browser().get("/users").await.ok().text();
    assert!(page.contains("New user") && !page.contains(&secret[4..]));
    app.anonymous().in_browser().get(&link).await.ok();
    ada.delete(&format!("/api/v1/invites/{}", invites[0]["id"])).await.ok();
    app.anonymous().get(&link).await.refused(403);
    assert_eq!(ada.get("/api/v1/invites").await.ok().json(), json!({"invites": []}));

    let nobody = ada.post("/api/v1/invites", &json!({"user": "Nobody"})).await.refused(404);
    assert_eq!(nobody, "there is no user \"Nobody\"");
    let invalid = ada.post("/api/v1/invites", &json!({"resets_passkeys": true})).await.refused(422);
    assert!(invalid.contains("set user"), "{invalid}");
}

#[tokio::test]
async fn names_reserved_for_the_audit_log_are_refused() {
    let app = App::start().await;
    let link = app.invite(Role::Viewer).await;
    let token = link.split('=').nth(1).expect("a secret");
    for name in ["token ci", "Token ci", "owner of the data folder", "Anonymous"] {
        let body = json!({"token": token, "name": name});
        let error = app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(422);
        assert!(error.contains("the audit log"), "{error}");
    }
    app.anonymous().post("/api/v1/auth/register/start", &json!({"token": token, "name": "tokenist"})).await.ok();
}

#[tokio::test]
async fn users_can_end_only_their_own_sessions() {
    let app = App::start().await;
    let eve = named(&app, "Eve", Role::Viewer).await;
    let ada = named(&app, "Ada", Role::Admin).await;
    let id: String = sqlx::query_scalar("select id from user where name = 'Eve'")
        .fetch_one(&app.state.db.read)
        .await
        .expect("an id");
    let (phone, tablet, desk) = (
        app.session_of(&id, now_ms() + DAY_MS).await,
        app.session_of(&id, now_ms() + DAY_MS).await,
        app.session_of(&id, now_ms() + DAY_MS).await,
    );
    let account = phone.get("/api/v1/account").await.ok().json();
    assert_eq!((&account["name"], &account["sessions"][0]["this"]), (&json!("Eve"), &json!(true)));
    assert_eq!(account["sessions"].as_array().map(Vec::len), Some(4));
    let own = tablet.get("/api/v1/account").await.ok().json()["sessions"][0]["id"].clone();
    ada.delete(&format!("/api/v1/account/sessions/{own}")).await.refused(404);
    phone.delete(&format!("/api/v1/account/sessions/{own}")).await.ok();
    tablet.get("/api/v1/runs").await.refused(401);
    let done = form(&phone.clone().in_browser(), "/account/sessions/end-others", &[]).await;
    assert_eq!(done.status.as_u16(), 303);
    eve.get("/api/v1/runs").await.refused(401);
    desk.get("/api/v1/runs").await.refused(401);
    phone.get("/api/v1/runs").await.ok();
    ada.get("/api/v1/runs").await.ok();
    phone.delete("/api/v1/account/passkeys/1").await.refused(409);
}

#[tokio::test]
async fn sessions_survive_a_restart_of_the_server() {
    let app = App::start().await;
    let eve = named(&app, "Eve", Role::Member).await;
    eve.get("/api/v1/runs").await.ok();
    let again = App::on(app.stop().await, |_| ()).await;
    let account = eve.at(&again.url).get("/api/v1/account").await.ok().json();
    assert_eq!((&account["name"], &account["role"]), (&json!("Eve"), &json!("member")));
}

#[tokio::test]
async fn over_tls_only_the_host_bound_cookie_counts() {
    let app = App::with(|config| config.public_url = "https://bench.example.com/".parse().ok()).await;
    let eve = named(&app, "Eve", Role::Viewer).await;
    eve.get("/api/v1/runs").await.refused(401);
    let secure = |request: reqwest::RequestBuilder| {
        request.header("cookie", format!("{SECURE_SESSION_COOKIE}={}", eve.session()))
    };
    let nobody = app.anonymous().at_origin("https://bench.example.com");
    Answer::to(secure(nobody.request(&Method::GET, "/api/v1/runs"))).await.ok();
    let out = Answer::to(secure(nobody.request(&Method::POST, "/logout"))).await;
    let cookie = out.header("set-cookie");
    assert!(cookie.starts_with("__Host-brewbench_session=;") && cookie.contains("Max-Age=0"), "{cookie}");
    assert!(cookie.contains("; Secure") && cookie.contains("; Path=/"), "otherwise browsers keep the cookie: {cookie}");
}

#[tokio::test]
async fn the_audit_log_records_who_did_what_only_for_successful_actions() {
    let app = App::start().await;
    let ada = named(&app, "Ada", Role::Admin).await;
    ada.post("/api/v1/tokens", &json!({"name": "ci", "scope": "read"})).await.ok();
    ada.post("/api/v1/tokens", &json!({"name": "ci", "scope": "read"})).await.refused(409);
    ada.delete("/api/v1/tokens/ci").await.ok();
    ada.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.ok();
    ada.delete("/api/v1/agent-keys/rack").await.ok();
    ada.delete("/api/v1/agent-keys/rack").await.refused(404);
    ada.post("/api/v1/sizes", &json!({"name": "odd", "vcpus": 3.0, "memory_bytes": 1 << 30})).await.ok();
    let scenario = json!({"name": "mine", "script": "export default () => {}", "files": {}, "defaults": {}});
    ada.post("/api/v1/scenarios", &scenario).await.ok();
    let run = text(&ada.import(good()).await.ok().json()["runs"][0]["id"]);
    ada.delete(&format!("/api/v1/runs/{run}")).await.ok();
    ada.post("/logout", &()).await;
    let expected = [
        entry("Ada", "logged out", ""),
        entry("Ada", "run deleted", &run),
        entry("Ada", "scenario added", "mine"),
        entry("Ada", "size added", "odd"),
        entry("Ada", "agent key revoked", "rack"),
        entry("Ada", "agent key created", "rack"),
        entry("Ada", "token revoked", "ci"),
        entry("Ada", "token created", "ci"),
    ];
    assert_eq!(log(&app, "actor=Ada").await, expected);
    assert_eq!(log(&app, "actor=Ada&action=size+added").await.len(), 1);
    assert_eq!(log(&app, "actor=Ada&to=2020-01-01").await, []);
    assert_eq!(log(&app, "actor=ada").await, []);
    let list = app.admin().await.get("/api/v1/audit?actor=Ada&limit=1").await.ok().json();
    assert_eq!(list["entries"][0]["address"], "127.0.0.1");
    let bad = app.admin().await.get("/api/v1/audit?from=soon").await.refused(422);
    assert_eq!(bad, "from: \"soon\" is not a date, write it as 2026-03-04");
}

#[tokio::test]
async fn a_refused_login_is_logged_without_a_name() {
    let app = App::start().await;
    let nobody = app.anonymous();
    let started = nobody.post("/api/v1/auth/login/start", &json!({})).await.ok().json();
    let forged = json!({"ceremony": started["ceremony"], "credential": {"id": "AAAA", "rawId": "AAAA",
        "type": "public-key", "extensions": {}, "response": {"authenticatorData": "AAAA", "clientDataJSON": "AAAA",
        "signature": "AAAA", "userHandle": "AAAAAAAAAAAAAAAAAAAAAA"}}});
    nobody.post("/api/v1/auth/login/finish", &forged).await.refused(403);
    let logged = app.until("the entry", async || {
        Some(log(&app, "action=login+refused").await).filter(|entries| !entries.is_empty())
    });
    assert_eq!(logged.await, [entry("anonymous", "login refused", "")]);
}

#[tokio::test]
async fn the_audit_log_is_paged_and_exported_safely_for_spreadsheets() {
    let app = App::start().await;
    let admin = app.admin().await;
    for name in ["=cmd|' /C calc'!A0", "<script>", "c"] {
        admin.post("/api/v1/agent-keys", &json!({"name": name})).await.ok();
    }
    let mut objects = Vec::new();
    let mut query = "action=agent+key+created&limit=2".to_owned();
    loop {
        let list = admin.get(&format!("/api/v1/audit?{query}")).await.ok().json();
        objects.extend(list["entries"].as_array().expect("a list").iter().map(|entry| text(&entry["object"])));
        let Some(next) = list["next"].as_i64() else { break };
        query = format!("action=agent+key+created&limit=2&after={next}");
    }
    assert_eq!(objects, ["c", "<script>", "=cmd|' /C calc'!A0"]);
    let csv = admin.get("/api/v1/audit/export?format=csv&action=agent+key+created").await.ok();
    assert!(csv.header("content-disposition").contains("brewbench-audit.csv"));
    let lines: Vec<_> = csv.text().lines().map(str::to_owned).collect();
    assert_eq!((lines.len(), lines[0].as_str()), (4, "time,actor,action,object,detail,address"));
    assert!(lines[3].contains(",'=cmd|' /C calc'!A0,"), "{}", lines[3]);
    let all = admin.get("/api/v1/audit/export?format=json").await.ok().json();
    assert!(all.as_array().is_some_and(|entries| entries.len() >= 4), "{all}");
    let none = admin.get("/api/v1/audit/export?format=json&actor=nobody").await.ok().json();
    assert_eq!(none, json!([]));
    let page = admin.in_browser().get("/audit?action=agent+key+created").await.ok().text();
    assert!(page.contains("&#60;script&#62;") && page.contains("format=csv"), "{page}");
}

#[tokio::test]
async fn too_many_attempts_are_limited_per_address() {
    let app = App::with(|config| {
        config.proxies = Networks::loopback();
        config.rates = Rates { sign_in: Rate::new(3, 1), wrong_secrets: Rate::new(3, 1) };
    })
    .await;
    let good = app.reader().await;
    let from = |who: &Actor, method: Method, path: &str, address: &str| {
        Answer::to(who.request(&method, path).header("x-forwarded-for", format!("203.0.113.9, {address}")).json(&()))
    };
    let nobody = app.anonymous();
    let start = "/api/v1/auth/login/start";
    for _ in 0..3 {
        from(&nobody, Method::POST, start, "192.0.2.1").await.ok();
    }
    let refused = from(&nobody, Method::POST, start, "192.0.2.1").await;
    let seconds: u64 = refused.header("retry-after").parse().expect("seconds");
    assert!((1..=61).contains(&seconds), "{seconds}");
    assert_eq!(refused.refused(429), format!("too many attempts; try again in {seconds} s"));
    from(&nobody, Method::POST, "/api/v1/auth/register/start", "192.0.2.1").await.refused(429);
    from(&nobody, Method::POST, start, "192.0.2.2").await.ok();

    let wrong = app.anonymous().with_secret("bbt_wrong");
    for _ in 0..3 {
        from(&wrong, Method::GET, "/api/v1/runs", "192.0.2.1").await.refused(401);
    }
    from(&wrong, Method::GET, "/api/v1/runs", "192.0.2.1").await.refused(429);
    from(&wrong, Method::GET, "/api/v1/agent/channel", "192.0.2.1").await.refused(429);
    let page = from(&wrong.clone().in_browser(), Method::GET, "/runs", "192.0.2.1").await;
    assert!(page.text().contains("Too many attempts"), "{}", page.text());
    assert!(!page.header("retry-after").is_empty());
    from(&wrong, Method::GET, "/api/v1/runs", "192.0.2.2").await.refused(401);
    from(&good, Method::GET, "/api/v1/runs", "192.0.2.1").await.ok();
}

#[tokio::test]
async fn forwarded_addresses_are_ignored_without_a_proxy() {
    let app = App::start().await;
    let admin = app.admin().await;
    let request = admin.request(&Method::POST, "/api/v1/agent-keys").header("x-forwarded-for", "203.0.113.9");
    Answer::to(request.json(&json!({"name": "rack"}))).await.ok();
    let list = admin.get("/api/v1/audit?action=agent+key+created").await.ok().json();
    let local = SocketAddr::from(([127, 0, 0, 1], 0)).ip().to_string();
    assert_eq!(list["entries"][0]["address"], local);
}

/// The address in the audit log of a request with an `X-Forwarded-For` header.
async fn logged_address(proxies: &str, forwarded: &str) -> Value {
    let app = App::with(|config| config.proxies = proxies.parse().expect("networks")).await;
    let admin = app.admin().await;
    let request = admin.request(&Method::POST, "/api/v1/agent-keys").header("x-forwarded-for", forwarded);
    Answer::to(request.json(&json!({"name": "rack"}))).await.ok();
    admin.get("/api/v1/audit?action=agent+key+created").await.ok().json()["entries"][0]["address"].clone()
}

#[tokio::test]
async fn only_addresses_from_trusted_proxies_are_accepted() {
    for (proxies, forwarded, address) in [
        ("loopback", "203.0.113.9, 192.0.2.7", "192.0.2.7"),
        ("127.0.0.1,192.0.2.0/24", "198.51.100.1, 203.0.113.9, 192.0.2.7", "203.0.113.9"),
        ("127.0.0.1,192.0.2.0/24", "192.0.2.8, 192.0.2.7", "192.0.2.8"),
        ("192.0.2.0/24", "203.0.113.9", "127.0.0.1"),
        ("", "203.0.113.9", "127.0.0.1"),
    ] {
        assert_eq!(logged_address(proxies, forwarded).await, address, "{proxies}: {forwarded}");
    }
}

#[tokio::test]
async fn commands_manage_users_invitations_and_the_audit_log() {
    let app = App::start().await;
    named(&app, "Ada", Role::Admin).await;
    named(&app, "Eve", Role::Viewer).await;
    let token = app.token_secret(Scope::Admin, None).await;
    let run = async |arguments: &[&str]| as_user(&app, &token, arguments).await;
    let list = run(&["user", "list"]).await.ok();
    assert!(list.lines().any(|line| line.split_whitespace().take(3).eq(["Eve", "viewer", "1"])), "{list}");
    run(&["user", "role", "Eve", "member"]).await.ok();
    assert_eq!(run(&["user", "list", "--json"]).await.json()["users"][1]["role"], "member");
    let refused = run(&["user", "remove", "Ada", "--yes"]).await.refused(1);
    assert!(refused.contains("the last administrator"), "{refused}");

    let link = run(&["invite", "--for", "Eve", "--reset-passkeys"]).await.ok();
    let page =
        app.anonymous().in_browser().get(&link.trim().replacen(app.state.public_url.as_str(), "/", 1)).await.ok();
    assert!(page.text().contains("You are <b class=\"break\">Eve</b>") && page.text().contains("are deleted"));
    let open = run(&["invite", "list", "--json"]).await.json();
    assert_eq!((&open["invites"][0]["user"], &open["invites"][0]["resets_passkeys"]), (&json!("Eve"), &json!(true)));
    let id = open["invites"][0]["id"].to_string();
    run(&["invite", "withdraw", &id]).await.ok();
    assert!(run(&["invite", "list"]).await.ok().contains("no unused invitations"));
    let both = run(&["invite", "--for", "Eve", "--role", "admin"]).await.refused(2);
    assert!(both.contains("--for"), "{both}");

    let unconfirmed = run(&["user", "remove", "Eve"]).await.refused(1);
    assert!(
        unconfirmed.contains("1 passkey ends: none.") && unconfirmed.contains("nothing was changed"),
        "{unconfirmed}"
    );
    run(&["user", "remove", "Eve", "--yes"]).await.ok();
    let log = run(&["audit", "list", "--action", "user removed"]).await.ok();
    assert!(log.contains("user removed") && log.contains("Eve") && log.contains("127.0.0.1"), "{log}");
    let log = run(&["audit", "list", "--json", "--limit", "1"]).await.json();
    assert_eq!(log["entries"][0]["action"], "user removed");
}
