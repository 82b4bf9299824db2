//! Names that break URLs, are invisible or look like others.

use brewbench::auth::{
    model::{Role, Scope},
    store::User,
};
use brewbench_wire::now_ms;
use reqwest::Method;
use serde_json::json;

use crate::harness::{Actor, Agent, Answer, App, program::as_user, submit::text, summaries::good};

/// Names that every input refuses.
const BAD: [&str; 9] =
    [".", "..", "~..", "a\u{202e}b", "a\u{200b}b", "a\u{feff}", "\u{430}dmin", "x\u{3164}", "a\u{2215}b"];

/// Sends a name to everything that accepts a new one.
async fn send_all(who: &Actor, name: &str, run: &str) -> Vec<(&'static str, Answer)> {
    let segment = brewbench::web::address::segment(name);
    let import = who.request(&Method::POST, "/api/v1/runs/import").query(&[("target", name)]);
    let script = json!({"name": name, "script": "export default () => {}"});
    vec![
        ("token", who.post("/api/v1/tokens", &json!({"name": name, "scope": "read"})).await),
        ("agent", who.post("/api/v1/agent-keys", &json!({"name": name})).await),
        ("rename", who.put("/api/v1/agents/rack/name", &json!({"name": name})).await),
        ("size", who.post("/api/v1/sizes", &json!({"name": name, "vcpus": 3.5, "memory_bytes": 1 << 30})).await),
        ("scenario", who.post("/api/v1/scenarios", &script).await),
        ("baseline", who.put(&format!("/api/v1/baselines/{segment}"), &json!({"runs": [run]})).await),
        ("target", Answer::to(import.body(good())).await),
    ]
}

#[tokio::test]
async fn every_input_refuses_invalid_names() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    ada.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.ok();
    let run = text(&ada.import(good()).await.ok().json()["runs"][0]["id"]);
    for name in BAD {
        for (what, answer) in send_all(&ada, name, &run).await {
            let error = answer.text();
            assert_eq!(answer.status.as_u16(), 422, "{what} {name:?}: {error}");
            assert!(error.contains("name: ") || error.contains("target: "), "{what} {name:?}: {error}");
        }
        let token = app.invite(Role::Member).await.split("token=").nth(1).expect("a secret").to_owned();
        let body = json!({"token": token, "name": name});
        app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(422);
    }
    for (what, answer) in
        send_all(&ada, "  Zoe\u{308} 7 ", &run).await.into_iter().filter(|(what, _)| *what != "rename")
    {
        assert!(answer.status.is_success(), "{what}: {}", answer.text());
        assert!(!answer.text().contains("e\u{308}"), "{what}: {}", answer.text());
    }
}

#[tokio::test]
async fn names_of_dots_from_earlier_versions_can_be_managed() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let pages = ada.clone().in_browser();
    for name in [".", ".."] {
        let now = now_ms();
        for sql in [
            "insert into user (id, name, role, created_at) values (?1, ?1, 'member', ?2)",
            "insert into token (name, hash, scope, created_at) values (?1, cast(?1 as blob), 'read', ?2)",
            "insert into agent (name, key_hash, created_at) values (?1, cast(?1 as blob), ?2)",
            "insert into machine_size (name, vcpus, memory_bytes, created_at) values (?1, 1, 1000000000, ?2)",
            "insert into baseline (name, set_by, set_at) values (?1, 'Ada', ?2)",
            "insert into target (name, version, identity, description, first_seen_at, last_seen_at)
             values (?1, '1', 'ab', '', ?2, ?2)",
        ] {
            sqlx::query(sql).bind(name).bind(now).execute(&app.state.db.write).await.expect("a row");
        }
        let shown = pages.get("/users").await.ok().text();
        let address = format!("/users/~{name}/remove");
        assert!(shown.contains(&format!("href=\"{address}\"")), "{shown}");
        let confirmation = pages.get(&address).await.ok().text();
        assert!(confirmation.contains(&format!("<p class=\"break\">{name}, member</p>")), "{confirmation}");
        assert_eq!(pages.form(&address, &[]).await.status.as_u16(), 303);
        assert!(pages.get("/tokens").await.ok().text().contains(&format!("/tokens/~{name}/revoke")));
        let token = app.token_secret(Scope::Admin, None).await;
        as_user(&app, &token, &["token", "revoke", name]).await.ok();
        let renamed = ada.put(&format!("/api/v1/agents/~{name}/name"), &json!({"name": format!("was {name}")})).await;
        assert_eq!(renamed.ok().json()["name"], format!("was {name}"));
        ada.delete(&format!("/api/v1/sizes/~{name}")).await.ok();
        ada.get(&format!("/api/v1/baselines/~{name}")).await.ok();
        ada.delete(&format!("/api/v1/baselines/~{name}")).await.ok();
        pages.get(&format!("/targets/~{name}")).await.ok();
        as_user(&app, &token, &["target", "remove", name]).await.ok();
    }
}

#[tokio::test]
async fn a_user_name_that_looks_like_another_is_refused() {
    let app = App::start().await;
    app.signed_in_as("Alice", Role::Admin, now_ms() + 86_400_000).await;
    let user = |name: &str| User { id: uuid::Uuid::now_v7().to_string(), name: name.to_owned(), role: Role::Member };
    let mut connection = app.state.db.write.acquire().await.expect("a connection");
    for name in ["A1ice", "AIice"] {
        let error = brewbench::auth::store::insert_user(&mut connection, &user(name), now_ms()).await;
        let error = error.expect_err("a look-alike").to_string();
        assert_eq!(error, format!("the name {name:?} looks like the existing user \"Alice\"; choose another"));
    }
    drop(connection);
    let token = app.invite(Role::Viewer).await.split("token=").nth(1).expect("a secret").to_owned();
    for name in ["t\u{43e}ken ci", "T0ken ci", "An0nymous"] {
        let body = json!({"token": token, "name": name});
        app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(422);
    }
}

#[tokio::test]
async fn capitals_accents_and_other_scripts_make_no_second_admin() {
    let app = App::start().await;
    app.signed_in_as("admin1", Role::Admin, now_ms() + 86_400_000).await;
    let user = |name: &str| User { id: uuid::Uuid::now_v7().to_string(), name: name.to_owned(), role: Role::Member };
    let mut connection = app.state.db.write.acquire().await.expect("a connection");
    let alike =
        ["ADMIN1", "Admin1", "adm\u{131}n1", "ADM\u{130}N1", "admi\u{307}n1", "\u{e1}dmin1", "admin\u{332}1", "adminl"];
    for name in alike {
        let error = brewbench::auth::store::insert_user(&mut connection, &user(name), now_ms()).await;
        let error = error.expect_err(name).to_string();
        assert_eq!(error, format!("the name {name:?} looks like the existing user \"admin1\"; choose another"));
    }
    brewbench::auth::store::insert_user(&mut connection, &user("coco"), now_ms()).await.expect("a user");
    let cyrillic = user("\u{421}\u{41e}\u{421}\u{41e}");
    brewbench::auth::store::insert_user(&mut connection, &cyrillic, now_ms()).await.expect_err("a look-alike");
    for name in ["admin2", "Neil", "Nell", "\u{41e}\u{43b}\u{435}\u{433}"] {
        brewbench::auth::store::insert_user(&mut connection, &user(name), now_ms()).await.expect(name);
    }
    drop(connection);
    let token = app.invite(Role::Viewer).await.split("token=").nth(1).expect("a secret").to_owned();
    for name in ["TOKEN ci", "OWNER of the data folder", "\u{e1}nonymous", "Token  ci"] {
        let body = json!({"token": token, "name": name});
        app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(422);
    }
}

#[tokio::test]
async fn look_alike_names_of_earlier_versions_stay_valid() {
    let app = App::start().await;
    app.signed_in_as("admin1", Role::Admin, now_ms() + 86_400_000).await;
    let sql = "insert into user (id, name, role, created_at) values (?1, ?1, 'member', 0)";
    sqlx::query(sql).bind("ADMIN1").execute(&app.state.db.write).await.expect("a user");
    let admin = app.admin().await;
    admin.put("/api/v1/users/ADMIN1", &json!({"role": "viewer"})).await.ok();
    let other = app.session_of("ADMIN1", now_ms() + 86_400_000).await;
    assert_eq!(other.get("/api/v1/account").await.ok().json()["role"], "viewer");
    admin.post("/api/v1/invites", &json!({"user": "ADMIN1"})).await.ok();
    admin.delete("/api/v1/users/ADMIN1").await.ok();
}

#[tokio::test]
async fn tokens_and_agents_that_look_like_others_are_refused() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let token = async |name: &str| ada.post("/api/v1/tokens", &json!({"name": name, "scope": "read"})).await;
    let key = async |name: &str| ada.post("/api/v1/agent-keys", &json!({"name": name})).await;
    token("deploy1").await.ok();
    ada.delete("/api/v1/tokens/deploy1").await.ok();
    key("rack1").await.ok();
    key("other").await.ok();
    for name in ["DEPLOY1", "dep1oy1", "d\u{e9}ploy1"] {
        let error = token(name).await.refused(409);
        assert!(error.contains("looks like the existing token \"deploy1\""), "{error}");
    }
    for name in ["RACK1", "rackl", "r\u{e4}ck1"] {
        let error = key(name).await.refused(409);
        assert!(error.contains("looks like the existing agent \"rack1\""), "{error}");
        ada.put("/api/v1/agents/other/name", &json!({"name": name})).await.refused(409);
    }
    ada.put("/api/v1/agents/rack1/name", &json!({"name": "Rack1"})).await.ok();
}

#[tokio::test]
async fn a_target_that_looks_like_another_is_refused_from_imports_and_agents() {
    let app = App::start().await;
    let user = app.user().await;
    let import = async |name: &str| user.import_as(&[("target", name)], good()).await;
    import("server1").await.ok();
    import("server1").await.ok();
    let error = import("serverl").await.refused(409);
    assert_eq!(error, "target: \"serverl\" looks like \"server1\"; choose another name");
    import("s1ow").await.ok();
    // The agents of the harness offer `slow`.
    let mut agent = Agent::disconnected(&app, "rack").await;
    let refused = agent.connect(&app).await.expect_err("refused");
    assert!(refused.contains("\"slow\" looks like \"s1ow\""), "{refused}");
    agent.hello.targets.retain(|offer| offer.name != "slow");
    agent.connect(&app).await.expect("a welcome");
}
