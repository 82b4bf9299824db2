//! Tokens, invitations and sessions.

use brewbench::{
    app::error::Result,
    auth::{
        model::Role,
        secret::{self, Kind},
        store::{
            User,
            invites::{InviteRow, insert_invite, spend_invite},
        },
    },
};
use brewbench_wire::now_ms;
use serde_json::{Value, json};
use url::Url;

use crate::harness::{Actor, App, submit::text};

async fn tokens(admin: &Actor) -> Vec<Value> {
    admin.get("/api/v1/tokens").await.ok().json()["tokens"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn a_token_works_until_it_is_revoked_and_is_shown_only_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let created = admin.post("/api/v1/tokens", &json!({"name": " ci ", "scope": "read", "expires_in_days": 1})).await;
    assert_eq!(created.status, 201);
    let created = created.json();
    assert_eq!(created["name"], "ci");
    let secret = text(&created["secret"]);
    let program = app.anonymous().with_secret(&secret);
    // A use is not recorded while something else writes; the next one is.
    let listed = app
        .until("the last use", async || {
            program.get("/api/v1/runs").await.ok();
            let listed = tokens(&admin).await.into_iter().find(|token| token["name"] == "ci").expect("it is listed");
            (!listed["last_used_at_ms"].is_null()).then_some(listed)
        })
        .await;

    let list = admin.get("/api/v1/tokens").await.ok();
    assert!(!list.text().contains(&secret[4..]) && !list.text().contains("bbt_") && !list.text().contains("hash"));
    assert_eq!((&listed["scope"], &listed["revoked_at_ms"]), (&json!("read"), &Value::Null));
    assert!(listed["expires_at_ms"].as_i64() > Some(now_ms()));

    assert_eq!(admin.delete("/api/v1/tokens/ci").await.status, 204);
    program.get("/api/v1/runs").await.refused(401);
    let again = admin.delete("/api/v1/tokens/ci").await.refused(404);
    assert_eq!(again, "there is no unrevoked token \"ci\"");
    let same = admin.post("/api/v1/tokens", &json!({"name": "ci", "scope": "read"})).await.refused(409);
    assert!(same.contains("already exists"), "{same}");
}

#[tokio::test]
async fn names_are_one_visible_line_of_at_most_80_characters() {
    let app = App::start().await;
    let admin = app.admin().await;
    let before = tokens(&admin).await.len();
    for name in ["", "   ", "a\nb", "\u{1b}[2J", &"x".repeat(81)] {
        let token = admin.post("/api/v1/tokens", &json!({"name": name, "scope": "read"})).await.refused(422);
        let key = admin.post("/api/v1/agent-keys", &json!({"name": name})).await.refused(422);
        assert_eq!(
            (token.as_str(), key.as_str()),
            ("name: 1 to 80 characters on one line", token.as_str()),
            "{name:?}"
        );
    }
    assert_eq!(tokens(&admin).await.len(), before);
    for name in ["ä", "<b>", "../..", &"x".repeat(80)] {
        admin.post("/api/v1/tokens", &json!({"name": name, "scope": "read"})).await.ok();
        let path = format!("/api/v1/tokens/{}", brewbench_cli::connection::encoded(name));
        admin.delete(&path).await.ok();
    }
}

#[tokio::test]
async fn an_invalid_request_is_refused_with_its_field() {
    let app = App::start().await;
    let admin = app.admin().await;
    let scope = admin.post("/api/v1/tokens", &json!({"name": "x", "scope": "root"})).await.refused(422);
    assert!(scope.contains("scope") && scope.contains("root"), "{scope}");
    let missing = admin.post("/api/v1/tokens", &json!({"name": "x"})).await.refused(422);
    assert!(missing.contains("scope"), "{missing}");
    let role = admin.post("/api/v1/invites", &json!({"role": "owner"})).await.refused(422);
    assert!(role.contains("owner"), "{role}");
}

/// Creates a registration link; returns its secret.
async fn invite(admin: &Actor, role: &str) -> String {
    let created = admin.post("/api/v1/invites", &json!({"role": role})).await.ok().json();
    let url: Url = text(&created["url"]).parse().expect("a link");
    assert_eq!((url.path(), url.host_str()), ("/register", Some("localhost")));
    url.query_pairs().find(|(name, _)| name == "token").expect("a token").1.into_owned()
}

async fn register(app: &App, invite: &str, name: &str) -> Result<()> {
    let user = User { id: uuid::Uuid::now_v7().to_string(), name: name.to_owned(), role: Role::Member };
    let mut transaction = app.state.db.write.begin().await?;
    spend_invite(&mut transaction, &secret::hash(invite), now_ms()).await?;
    brewbench::auth::store::insert_user(&mut transaction, &user, now_ms()).await?;
    Ok(transaction.commit().await?)
}

#[tokio::test]
async fn a_registration_link_works_once() {
    let app = App::start().await;
    let (admin, nobody) = (app.admin().await, app.anonymous());
    let token = invite(&admin, "member").await;
    let page = format!("/register?token={token}");
    let start = json!({"token": token, "name": "Ada"});
    let shown = nobody.clone().in_browser().get(&page).await.ok().text();
    assert!(shown.contains("member"), "the page shows the role");
    let started = nobody.post("/api/v1/auth/register/start", &start).await.ok().json();
    assert_eq!(started["options"]["publicKey"]["authenticatorSelection"]["residentKey"], "required");

    register(&app, &token, "Ada").await.expect("the first time");
    let spent = nobody.post("/api/v1/auth/register/start", &start).await.refused(403);
    assert_eq!(spent, "this registration link was already used or has expired; ask for a new one");
    assert_eq!(nobody.get(&page).await.refused(403), spent);
    assert_eq!(register(&app, &token, "Eve").await.expect_err("the second time").to_string(), spent);
}

#[tokio::test]
async fn expired_and_unknown_registration_links_are_refused() {
    let app = App::start().await;
    let expired = secret::generate(Kind::Invite);
    let (hash, now) = (secret::hash(&expired), now_ms());
    let row = InviteRow {
        hash: &hash,
        role: Role::Admin,
        user_id: None,
        resets_passkeys: false,
        created_by: None,
        made_by: None,
        expires_at_ms: now - 1,
    };
    let mut connection = app.state.db.write.acquire().await.expect("a connection");
    insert_invite(&mut connection, &row, now - 2).await.expect("an invitation");
    drop(connection);
    for token in [expired.as_str(), "", "bbi_unknown"] {
        let body = json!({"token": token, "name": "Eve"});
        app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(403);
    }
    register(&app, &expired, "Eve").await.expect_err("it has expired");
}

#[tokio::test]
async fn a_taken_name_is_refused_and_the_link_stays_valid() {
    let app = App::start().await;
    let admin = app.admin().await;
    let (first, second) = (invite(&admin, "viewer").await, invite(&admin, "viewer").await);
    register(&app, &first, "Ada").await.expect("a user");
    let taken = register(&app, &second, "Ada").await.expect_err("a name is unique");
    assert_eq!(taken.to_string(), "the name \"Ada\" is taken; choose another");
    register(&app, &second, "Grace").await.expect("the link was not used up");
}

#[tokio::test]
async fn a_login_with_an_unknown_passkey_is_refused() {
    let app = App::start().await;
    let nobody = app.anonymous();
    let started = nobody.post("/api/v1/auth/login/start", &json!({})).await.ok().json();
    assert_eq!(started["options"]["publicKey"]["userVerification"], "required");
    let unknown = json!({"ceremony": started["ceremony"], "credential": {"id": "AAAA", "rawId": "AAAA",
        "type": "public-key", "extensions": {}, "response": {"authenticatorData": "AAAA", "clientDataJSON": "AAAA",
        "signature": "AAAA", "userHandle": "AAAAAAAAAAAAAAAAAAAAAA"}}});
    nobody.post("/api/v1/auth/login/finish", &unknown).await.refused(403);
    let invalid = nobody.post("/api/v1/auth/login/finish", &json!({"ceremony": 1})).await.refused(422);
    assert!(invalid.contains("ceremony"), "{invalid}");
}

#[tokio::test]
async fn a_session_ends_with_the_logout() {
    let app = App::start().await;
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    viewer.get("/runs").await.ok();
    let out = viewer.post("/logout", &()).await;
    assert_eq!((out.status.as_u16(), out.header("location")), (303, "/login"));
    assert!(out.header("set-cookie").contains("Max-Age=0"), "{}", out.header("set-cookie"));
    assert_eq!(viewer.get("/runs").await.status, 303);
    viewer.get("/api/v1/runs").await.refused(401);
}

#[tokio::test]
async fn the_start_prints_a_link_only_until_a_user_has_registered() {
    let app = App::start().await;
    assert!(!brewbench::auth::store::any_user(&app.state.db.read).await.expect("an answer"));
    let token = invite(&app.admin().await, "admin").await;
    register(&app, &token, "Ada").await.expect("a user");
    assert!(brewbench::auth::store::any_user(&app.state.db.read).await.expect("an answer"));
}
