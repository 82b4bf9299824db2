//! What the holder of a stolen passkey, session or token does unnoticed, and guesses that nobody sees.

use std::net::IpAddr;

use brewbench::auth::{
    audit::{AuditEvent, action::Action},
    model::{Role, Scope},
    store::audit::note_all,
};
use brewbench_wire::now_ms;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Answer, App,
        program::{Running, as_user, brewbench},
        submit::text,
    },
    processes::{GRACE, until},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

async fn notices(who: &Actor) -> Vec<Value> {
    who.get("/api/v1/account").await.ok().json()["notices"].as_array().expect("a list").clone()
}

async fn actions(who: &Actor) -> Vec<String> {
    notices(who).await.iter().map(|notice| text(&notice["action"])).collect()
}

/// Stores the login of a user from an address with a device.
async fn log_in(app: &App, user: &str, (address, device, session): (&str, &str, i64)) {
    let address: Option<IpAddr> = Some(address.parse().expect("an address"));
    let detail = json!({"device": device, "session": session});
    let login = AuditEvent::new(user, address, Action::LoggedIn, "").with(detail);
    note_all(&app.state.db.write, &[login]).await.expect("an entry");
}

#[tokio::test]
async fn a_user_sees_new_tokens_passkeys_links_and_logins_until_they_are_dismissed() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    let eve = app.signed_in_as("Eve", Role::Admin, now_ms() + DAY_MS).await;
    assert_eq!(notices(&ada).await, [] as [Value; 0]);
    // A token of Ada's creates another one.
    let secret =
        text(&ada.post("/api/v1/tokens", &json!({"name": "ci", "scope": "admin"})).await.ok().json()["secret"]);
    let program = app.anonymous().with_secret(&secret);
    program.post("/api/v1/tokens", &json!({"name": "hidden", "scope": "read"})).await.ok();
    eve.post("/api/v1/invites", &json!({"user": "Ada"})).await.ok();
    eve.post("/api/v1/invites", &json!({"role": "viewer"})).await.ok();
    let passkey = AuditEvent::new("Ada", None, Action::PasskeyAdded, "Phone");
    note_all(&app.state.db.write, &[passkey]).await.expect("an entry");
    // Only the first login from a place counts, and not that of the session that reads the notices.
    let sql = "select session.id from session join user on user.id = user_id where name = 'Ada'";
    let own: i64 = sqlx::query_scalar(sql).fetch_one(&app.state.db.read).await.expect("a session");
    for place in [
        ("192.0.2.9", "Chrome on Windows", 901),
        ("192.0.2.9", "Chrome on Windows", 902),
        ("192.0.2.1", "Firefox on Linux", own),
        ("192.0.2.1", "Firefox on Linux", 903),
    ] {
        log_in(&app, "Ada", place).await;
    }
    log_in(&app, "Eve", ("192.0.2.9", "Chrome on Windows", 904)).await;
    let expected = ["logged in", "passkey added", "invitation created", "token created", "token created"];
    assert_eq!(actions(&ada).await, expected);
    let all = notices(&ada).await;
    assert_eq!((&all[0]["address"], &all[0]["device"]), (&json!("192.0.2.9"), &json!("Chrome on Windows")));
    assert_eq!((&all[3]["object"], &all[3]["actor"]), (&json!("hidden"), &json!("token ci")));
    assert_eq!(actions(&eve).await, ["logged in"], "notices of others are not shown");

    let pages = ada.clone().in_browser();
    for page in ["/", "/account"] {
        let html = pages.get(page).await.ok().text();
        for sentence in
            ["New login to your account", "Token hidden was created by token ci", "Eve created a recovery link"]
        {
            assert!(html.contains(sentence), "{page}: {sentence} {html}");
        }
    }
    // Tokens see no notices, and cannot dismiss them.
    assert!(!program.clone().in_browser().get("/").await.ok().text().contains("New login to your account"));
    program.delete("/api/v1/account/notices?until_ms=9999999999999").await.refused(403);
    // What happened after the page was read stays.
    let newest = all[0]["at_ms"].as_i64().expect("a time");
    let later = "update audit set at = ? where action = 'passkey added'";
    sqlx::query(later).bind(newest + 1).execute(&app.state.db.write).await.expect("a later entry");
    let dismissed = pages.form("/account/notices/dismiss", &[("until_ms", &newest.to_string())]).await;
    assert_eq!(dismissed.status.as_u16(), 303);
    assert_eq!(actions(&ada).await, ["passkey added"]);
    ada.delete("/api/v1/account/notices?until_ms=9999999999999999").await.ok();
    assert_eq!(notices(&ada).await, [] as [Value; 0]);
    let sql = "select notices_from from user where name = 'Ada'";
    let from: i64 = sqlx::query_scalar(sql).fetch_one(&app.state.db.read).await.expect("a time");
    assert!(from <= now_ms(), "future notices cannot be dismissed");
}

#[tokio::test]
async fn a_new_user_gets_no_notices_of_an_earlier_one_with_the_name() {
    let app = App::start().await;
    app.signed_in_as("Kept", Role::Admin, now_ms() + DAY_MS).await;
    app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    log_in(&app, "Ada", ("192.0.2.9", "Chrome on Windows", 901)).await;
    app.admin().await.delete("/api/v1/users/Ada").await.ok();
    let before = "update audit set at = at - 10";
    sqlx::query(before).execute(&app.state.db.write).await.expect("earlier entries");
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    assert_eq!(notices(&ada).await, [] as [Value; 0]);
}

#[tokio::test]
async fn a_token_expires_unless_its_creator_chooses_otherwise_and_says_so() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + DAY_MS).await;
    let expiry = async |name: &str| {
        let list = ada.get("/api/v1/tokens").await.ok().json();
        let found = list["tokens"].as_array().expect("a list").iter().find(|token| token["name"] == name).cloned();
        found.expect("a token")["expires_at_ms"].as_i64()
    };
    let is_in_days = |at: Option<i64>, days: i64| at.is_some_and(|at| (at - now_ms() - days * DAY_MS).abs() < DAY_MS);
    let create = async |more: Value| {
        let mut request = json!({"name": "api", "scope": "read"});
        request.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        ada.post("/api/v1/tokens", &request).await
    };
    let secret = text(&create(json!({})).await.ok().json()["secret"]);
    assert!(is_in_days(expiry("api").await, 90));
    create(json!({"name": "forever", "never_expires": true})).await.ok();
    assert_eq!(expiry("forever").await, None);
    create(json!({"name": "both", "never_expires": true, "expires_in_days": 1})).await.refused(422);
    as_user(&app, &app.token_secret(Scope::Admin, None).await, &["token", "new", "cli"]).await.ok();
    assert!(is_in_days(expiry("cli").await, 90));
    let admin = app.token_secret(Scope::Admin, None).await;
    as_user(&app, &admin, &["token", "new", "cli2", "--never"]).await.ok();
    assert_eq!(expiry("cli2").await, None);
    as_user(&app, &admin, &["token", "new", "cli3", "--never", "--expires-in", "3"]).await.refused(2);

    // Attention before the end, except for tokens that live no longer.
    let home = async || ada.clone().in_browser().get("/").await.ok().text();
    let sql = "update token set expires_at = ?1 + ?2, created_at = ?1 - ?3 where name = 'api'";
    let ends_in = async |ms: i64, age: i64| {
        let query = sqlx::query(sql).bind(now_ms()).bind(ms).bind(age);
        query.execute(&app.state.db.write).await.expect("a token");
    };
    assert!(!home().await.contains("Token api expires"));
    ends_in(5 * DAY_MS, 85 * DAY_MS).await;
    assert!(home().await.contains("Token api expires"));
    ends_in(5 * DAY_MS, DAY_MS).await;
    assert!(!home().await.contains("Token api expires"));

    let program = app.anonymous().with_secret(&secret);
    program.get("/api/v1/runs").await.ok();
    ends_in(-1_000, 90 * DAY_MS).await;
    let error = program.get("/api/v1/runs").await.refused(401);
    assert!(error.starts_with("the token \"api\" expired on 20") && error.ends_with("create a new one"), "{error}");
    let shown = as_user(&app, &secret, &["run", "list"]).await.refused(1);
    assert!(shown.contains("the token \"api\" expired on 20"), "{shown}");
    ada.delete("/api/v1/tokens/api").await.ok();
    let error = program.get("/api/v1/runs").await.refused(401);
    assert!(error.starts_with("the token \"api\" was revoked on 20"), "{error}");
}

/// The lines of the documentation's filter, without `<ADDR>`: text and JSON.
const FORMS: [&str; 2] = [
    "WARN authentication refused address=203.0.113.9 what=",
    r#","level":"WARN","message":"authentication refused","address":"203.0.113.9","what":""#,
];

#[tokio::test]
async fn each_refusal_is_one_log_line_with_the_address_in_a_stable_form() {
    for (log, form) in ["text", "json"].into_iter().zip(FORMS) {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().display().to_string();
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--behind-proxy", "--log", log, "--data", &data];
        let mut program = Running::start(brewbench(&arguments));
        let port = program.wait_for("brewbench listens on 127.0.0.1:").await;
        let port: String = port.chars().take_while(char::is_ascii_digit).collect();
        let site = format!("http://localhost:{port}/").parse().expect("an address");
        let nobody = Actor::anonymous(&site);
        // A caller cannot write such a line about others.
        let forged = "bbt_x WARN authentication refused address=198.51.100.1 what=token";
        for (who, method, path) in [
            (nobody.clone().with_secret(forged), Method::GET, "/api/v1/runs"),
            (nobody.clone().with_secret("bba_x"), Method::GET, "/api/v1/agent/self"),
            (nobody.clone(), Method::POST, "/api/v1/auth/register/start"),
        ] {
            let request = who.request(&method, path).header("x-forwarded-for", "198.51.100.2, 203.0.113.9:4711");
            let answer = Answer::to(request.json(&json!({"token": forged, "name": forged}))).await;
            assert!(matches!(answer.status.as_u16(), 401 | 403), "{path}: {}", answer.text());
        }
        let what = ["token", "agent-key", "invitation"];
        let lines = until(&program, "three lines", async || {
            let lines: Vec<String> = program
                .stderr()
                .lines()
                .filter(|line| line.contains("authentication refused"))
                .map(str::to_owned)
                .collect();
            (lines.len() >= what.len()).then_some(lines)
        });
        let lines = lines.await;
        assert_eq!(lines.len(), what.len(), "{lines:?}");
        for (line, what) in lines.iter().zip(what) {
            let is_stable = match log {
                "json" => line.starts_with("{\"timestamp\":\"") && line.contains(&format!("{form}{what}\",")),
                _ => line.ends_with(&format!("{form}{what}")) && line.starts_with("20"),
            };
            assert!(is_stable, "{line}");
        }
        program.signal(Signal::SIGTERM);
        program.ended(GRACE).await;
    }
    let guide = include_str!("../../../docs/guide/security.md");
    for form in FORMS {
        let (start, end) = form.split_once("203.0.113.9").expect("an address");
        assert!(guide.contains(&format!("{start}<ADDR>{end}")), "the filter reads another form: {form}");
    }
}
