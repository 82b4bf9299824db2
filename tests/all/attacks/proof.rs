//! Unattended browsers, stolen sessions and a wrong clock.

use brewbench::{
    app::db::{self, Db},
    auth::{
        housekeeping,
        model::{Role, Scope},
        secret,
        store::sessions::record_confirmation,
    },
};
use brewbench_wire::now_ms;
use reqwest::Method;
use serde_json::json;

use crate::{
    browser::{
        Tab,
        passkeys::{ALERT, device, register},
    },
    harness::{Actor, Answer, App, submit::text},
    routes::{AgentKey, Needs, Nothing, ROUTES, address, ask, is_page},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const MINUTE_MS: i64 = 60 * 1_000;

/// Sets how long ago all sessions confirmed the passkey, in ms.
async fn set_last_proof(app: &App, ms: i64) {
    let sql = "update session set proved_at = ?";
    sqlx::query(sql).bind(now_ms() - ms).execute(&app.state.db.write).await.expect("sessions");
}

/// The routes that need a recent proof: they open a way in or out, or remove what cannot be restored. The `GET` routes
/// of pages lead to such a form.
const PROOF: &[(&str, &str)] = &[
    ("GET", "/account/passkeys/{id}/remove"),
    ("POST", "/account/passkeys/{id}/remove"),
    ("POST", "/tokens"),
    ("POST", "/users/invites"),
    ("POST", "/users/{name}/role"),
    ("GET", "/users/{name}/remove"),
    ("POST", "/users/{name}/remove"),
    ("GET", "/users/{name}/reset-passkeys"),
    ("POST", "/users/{name}/reset-passkeys"),
    ("POST", "/shares"),
    ("POST", "/settings/series"),
    ("POST", "/settings/webhooks"),
    ("POST", "/agents"),
    ("POST", "/api/v1/account/passkeys/start"),
    ("POST", "/api/v1/account/passkeys/finish"),
    ("DELETE", "/api/v1/account/passkeys/{id}"),
    ("POST", "/api/v1/tokens"),
    ("PUT", "/api/v1/users/{name}"),
    ("DELETE", "/api/v1/users/{name}"),
    ("POST", "/api/v1/invites"),
    ("POST", "/api/v1/shares"),
    ("POST", "/api/v1/agent-keys"),
    ("POST", "/api/v1/webhooks"),
    ("GET", "/api/v1/backup"),
    ("PUT", "/api/v1/retention"),
    ("DELETE", "/api/v1/retention"),
];

/// Other routes on which administrators or users change something, because they grant nothing.
const NO_PROOF: &[(&str, &str)] = &[
    // Gives the proof.
    ("POST", "/api/v1/auth/confirm/start"),
    ("POST", "/api/v1/auth/confirm/finish"),
    // End access, and must work at once.
    ("POST", "/logout"),
    ("POST", "/account/sessions/{id}/end"),
    ("POST", "/account/sessions/end-others"),
    ("DELETE", "/api/v1/account/sessions"),
    ("DELETE", "/api/v1/account/sessions/{id}"),
    ("POST", "/tokens/{name}/revoke"),
    ("DELETE", "/api/v1/tokens/{name}"),
    ("POST", "/users/invites/{id}/withdraw"),
    ("DELETE", "/api/v1/invites/{id}"),
    ("POST", "/agents/{name}/revoke"),
    ("POST", "/agents/{name}/disable"),
    ("POST", "/agents/{name}/remove"),
    ("DELETE", "/api/v1/agent-keys/{name}"),
    ("DELETE", "/api/v1/agents/{name}"),
    ("POST", "/settings/webhooks/{id}/remove"),
    ("DELETE", "/api/v1/webhooks/{id}"),
    // Change how something is used that has its access already.
    ("POST", "/account/notices/dismiss"),
    ("DELETE", "/api/v1/account/notices"),
    ("POST", "/account/passkeys/{id}/rename"),
    ("PUT", "/api/v1/account/passkeys/{id}"),
    ("POST", "/trends/{target}/{cell}/pin"),
    ("POST", "/trends/{target}/{cell}/unpin"),
    ("POST", "/settings/alerts"),
    ("PUT", "/api/v1/alert-rule"),
    ("POST", "/settings/webhooks/{id}/test"),
    ("POST", "/api/v1/webhooks/{id}/test"),
    ("POST", "/agents/{name}/drain"),
    ("POST", "/agents/{name}/enable"),
    ("PUT", "/api/v1/agents/{name}/availability"),
    ("POST", "/agents/{name}/labels"),
    ("PUT", "/api/v1/agents/{name}/labels"),
    ("POST", "/agents/{name}/rename"),
    ("PUT", "/api/v1/agents/{name}/name"),
    ("POST", "/agents/{name}/change-key"),
    ("POST", "/api/v1/agent-keys/{name}/change"),
    // Sizes and targets that no run uses.
    ("POST", "/sizes"),
    ("POST", "/sizes/{name}/remove"),
    ("POST", "/api/v1/sizes"),
    ("DELETE", "/api/v1/sizes/{name}"),
    ("POST", "/targets/{name}/remove"),
    ("DELETE", "/api/v1/targets/{name}"),
    ("DELETE", "/api/v1/targets"),
    ("POST", "/unused-targets/remove"),
];

/// Returns whether a route asks a session for a proof.
async fn asks_for_proof(who: &Actor, method: &str, path: &str) -> bool {
    let (status, headers) = ask(&who.clone().in_browser(), method, path).await;
    if is_page(path) {
        let is_redirect = status.as_u16() == 303;
        return is_redirect && headers["location"].to_str().is_ok_and(|to| to.starts_with("/confirm?next="));
    }
    if status.as_u16() != 403 {
        return false;
    }
    let request = who.request(&method.parse().expect("a method"), &address(path));
    Answer::to(request.header("content-type", "application/json").body("{}")).await.json()["confirm"] == true
}

#[tokio::test]
async fn every_route_that_opens_a_way_in_or_out_needs_a_recent_proof() {
    let app = App::start().await;
    for (method, path, needs) in ROUTES.iter().filter(|(_, _, needs)| !matches!(needs, Nothing | AgentKey)) {
        let (is_guarded, is_free) = (PROOF.contains(&(method, path)), NO_PROOF.contains(&(method, path)));
        let decides = *method != "GET" && matches!(needs, Needs::User | Needs::UserOrAdminToken | Needs::Admin);
        assert!(!(is_guarded && is_free), "{method} {path} is in both lists");
        assert!(is_guarded || is_free || !decides, "{method} {path} is new: add it to PROOF or NO_PROOF in this file");
        let ada = app.signed_in(Role::Admin).await;
        set_last_proof(&app, 15 * MINUTE_MS).await;
        assert_eq!(asks_for_proof(&ada, method, path).await, is_guarded, "{method} {path} with an old proof");
        if is_guarded {
            set_last_proof(&app, 0).await;
            assert!(!asks_for_proof(&ada, method, path).await, "{method} {path} with a new proof");
        }
    }
    let known = |route: &&(&str, &str)| ROUTES.iter().any(|(method, path, _)| (*method, *path) == **route);
    assert_eq!(PROOF.iter().chain(NO_PROOF).find(|route| !known(route)), None, "no such route");
}

/// Sends requests that need a recent proof; returns their statuses.
async fn send_all(who: &Actor) -> Vec<(&'static str, u16)> {
    let name = uuid::Uuid::now_v7().to_string();
    let link = |request| async move { who.post("/api/v1/invites", &request).await };
    let answers = [
        ("token", who.post("/api/v1/tokens", &json!({"name": name, "scope": "read"})).await),
        ("role", who.put("/api/v1/users/Eve", &json!({"role": "admin"})).await),
        ("invitation", link(json!({"role": "member"})).await),
        ("recovery", link(json!({"user": "Eve"})).await),
        ("agent key", who.post("/api/v1/agent-keys", &json!({"name": name})).await),
        ("webhook", who.post("/api/v1/webhooks", &json!({"url": format!("https://hooks.example.com/{name}")})).await),
        ("retention", who.put("/api/v1/retention", &json!({"after_days": 9, "reduction": "delete"})).await),
        ("backup", who.get("/api/v1/backup").await),
    ];
    for (what, answer) in &answers {
        if answer.status == 403 {
            assert_eq!(answer.json()["confirm"], true, "{what}: {}", answer.text());
        }
    }
    answers.map(|(what, answer)| (what, answer.status.as_u16())).to_vec()
}

#[tokio::test]
async fn an_open_session_without_a_recent_proof_cannot_grant_access() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    app.signed_in_as("Eve", Role::Viewer, now_ms() + DAY_MS).await;
    set_last_proof(&app, 14 * MINUTE_MS).await;
    assert!(send_all(&ada).await.iter().all(|(_, status)| *status < 300));
    ada.post("/api/v1/account/passkeys/start", &()).await.ok();
    ada.put("/api/v1/users/Eve", &json!({"role": "viewer"})).await.ok();
    set_last_proof(&app, 15 * MINUTE_MS).await;
    for (what, status) in send_all(&ada).await {
        assert_eq!(status, 403, "{what}");
    }
    ada.post("/api/v1/account/passkeys/start", &()).await.refused(403);
    ada.delete("/api/v1/users/Eve").await.refused(403);
    // Other requests need no proof, and neither do tokens.
    ada.get("/api/v1/users").await.ok();
    assert!(send_all(&app.token(Scope::Admin).await).await.iter().all(|(_, status)| *status < 300));

    // A form redirects to the confirmation, which leads back to the site's own page only.
    let request = ada.clone().in_browser().request(&Method::POST, "/tokens");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body("name=x&scope=read&days=7");
    let from = |page: &str| request.try_clone().expect("a request").header("referer", page);
    let redirect = Answer::to(from(app.state.public_url.join("tokens").expect("an address").as_str())).await;
    assert_eq!((redirect.status.as_u16(), redirect.header("location")), (303, "/confirm?next=%2Ftokens"));
    let redirect = Answer::to(from("https://evil.example//evil.example")).await;
    assert_eq!((redirect.status.as_u16(), redirect.header("location")), (303, "/confirm?next=%2F"));
}

#[tokio::test]
async fn a_form_asks_for_the_passkey_and_is_then_submitted() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Admin).await, "Ada").await;
    tab.wait_for_path("/").await;
    set_last_proof(&app, DAY_MS).await;
    tab.go("/tokens").await;
    tab.click("input[name=name]").await;
    tab.type_text("ci").await;
    tab.click("form[action='/tokens'] button").await;
    tab.shows("h1", "Token ci").await;
    set_last_proof(&app, DAY_MS).await;
    tab.go("/account").await;
    tab.click("form[data-passkey=add] button").await;
    // The device refuses a second passkey only after the proof was given.
    tab.shows(ALERT, "This device already has a passkey for this account.").await;
    let log = app.admin().await.get("/api/v1/audit?action=identity+confirmed").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn the_passkey_of_another_user_confirms_nothing() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Admin).await, "Mallory").await;
    tab.wait_for_path("/").await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    set_last_proof(&app, DAY_MS).await;
    tab.set_session(&ada).await;
    tab.go("/confirm?next=%2Ftokens").await;
    tab.click("button[data-passkey=confirm]").await;
    tab.shows(ALERT, "this passkey belongs to Mallory; use one of yours").await;
    ada.post("/api/v1/tokens", &json!({"name": "x", "scope": "read"})).await.refused(403);
}

#[tokio::test]
async fn a_proof_changes_the_secret_of_the_session() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Admin).await, "Ada").await;
    tab.wait_for_path("/").await;
    let sql = "select user_id from session";
    let ada: String = sqlx::query_scalar(sql).fetch_one(&app.state.db.read).await.expect("a user");
    // Another person knows the secret of the session, stolen or planted.
    let stolen = app.session_of(&ada, now_ms() + DAY_MS).await;
    set_last_proof(&app, DAY_MS).await;
    tab.set_session(&stolen).await;
    tab.go("/confirm?next=%2Ftokens").await;
    tab.click("button[data-passkey=confirm]").await;
    tab.wait_for_path("/tokens").await;
    stolen.get("/api/v1/account").await.refused(401);
    tab.click("input[name=name]").await;
    tab.type_text("ci").await;
    tab.click("form[action='/tokens'] button").await;
    tab.shows("h1", "Token ci").await;
}

#[tokio::test]
async fn of_two_proofs_of_a_session_at_once_one_counts() {
    let app = App::start().await;
    let ada = app.signed_in(Role::Admin).await;
    let hash = secret::hash(ada.session());
    let confirm = async |new: &[u8]| {
        let mut connection = app.state.db.write.acquire().await.expect("a connection");
        record_confirmation(&mut connection, &hash, new, now_ms()).await
    };
    confirm(b"one").await.expect("the first");
    let refused = confirm(b"two").await.expect_err("the second").to_string();
    assert!(refused.contains("try again"), "{refused}");
}

#[tokio::test]
async fn an_unused_session_expires() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 30 * DAY_MS).await;
    let idle = async |days: i64| {
        let sql = "update session set last_used_at = ?";
        sqlx::query(sql).bind(now_ms() - days * DAY_MS).execute(&app.state.db.write).await.expect("a session");
    };
    idle(6).await;
    let account = ada.get("/api/v1/account").await.ok().json();
    assert!(account["sessions"][0]["expires_at_ms"].as_i64() <= Some(now_ms() + 7 * DAY_MS), "{account}");
    idle(7).await;
    ada.get("/api/v1/account").await.refused(401);
    assert_eq!(housekeeping::prune(&app.state).await.expect("pruned").1, 1);
}

#[tokio::test]
async fn a_login_ends_the_previous_session_of_the_browser() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.wait_for_path("/").await;
    let sessions = async || -> Vec<Vec<u8>> {
        let sql = "select hash from session";
        sqlx::query_scalar(sql).fetch_all(&app.state.db.read).await.expect("sessions")
    };
    let before = sessions().await;
    tab.go("/login").await;
    tab.click("[data-passkey=login]").await;
    tab.wait_for_path("/").await;
    let after = sessions().await;
    assert!(before.len() == 1 && after.len() == 1 && before != after, "{before:?} {after:?}");
}

#[tokio::test]
async fn a_start_with_a_clock_that_is_far_ahead_deletes_nothing() {
    let app = App::start().await;
    app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    app.admin().await.post("/api/v1/tokens", &json!({"name": "old", "scope": "read"})).await.ok();
    // Backdates everything. A running server would delete it.
    let folder = app.stop().await;
    let stopped = db::open(folder.path()).await.expect("a database");
    for sql in [
        "update audit set at = at - 400 * 86400000",
        "update session set last_used_at = last_used_at - 400 * 86400000, created_at = created_at - 400 * 86400000,
             expires_at = expires_at - 400 * 86400000",
    ] {
        sqlx::query(sql).execute(&stopped.write).await.expect("rows");
    }
    let count = async |db: &Db| -> (i64, i64) {
        let sql = "select (select count(*) from audit), (select count(*) from session)";
        sqlx::query_as(sql).fetch_one(&db.read).await.expect("counts")
    };
    let before = count(&stopped).await;
    assert!(before.0 > 0 && before.1 == 1, "{before:?}");
    stopped.close().await;
    let again = App::on(folder, |_| ()).await;
    assert!(!again.state.clock.may_delete());
    assert_eq!(housekeeping::prune(&again.state).await.expect("nothing"), (0, 0));
    assert_eq!(count(&again.state.db).await, before);
    // An entry of today is stored, so the next start trusts the clock and deletes old sessions.
    again.admin().await.post("/api/v1/tokens", &json!({"name": "new", "scope": "read"})).await.ok();
    let trusting = App::on(again.stop().await, |_| ()).await;
    assert!(trusting.state.clock.may_delete());
    let old = async || -> i64 {
        let sql = "select (select count(*) from audit where object = 'old') + (select count(*) from session)";
        sqlx::query_scalar(sql).fetch_one(&trusting.state.db.read).await.expect("a count")
    };
    trusting.until("old entries and sessions to be deleted", async || (old().await == 0).then_some(())).await;
    let log = trusting.admin().await.get("/api/v1/audit?action=token+created&limit=1000").await.ok().json();
    let objects: Vec<String> =
        log["entries"].as_array().expect("entries").iter().map(|entry| text(&entry["object"])).collect();
    assert!(!objects.contains(&"old".to_owned()) && objects.contains(&"new".to_owned()), "{objects:?}");
}
