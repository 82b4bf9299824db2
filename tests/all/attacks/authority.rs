//! What an administrator created, used after the administrator was removed or demoted.

use brewbench::auth::model::{Role, Scope};
use brewbench_wire::now_ms;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, App, PATIENCE, program::as_user, submit::text, summaries::good};

/// What an administrator created: an invitation, a recovery link, a one-time key, a share link, a webhook.
struct Created {
    invitation: String,
    recovery: String,
    one_time: String,
    share: String,
    webhook: Value,
}

async fn invite_token(who: &Actor, request: &Value) -> String {
    let url = text(&who.post("/api/v1/invites", request).await.ok().json()["url"]);
    url.split("token=").nth(1).expect("a secret").to_owned()
}

impl Created {
    async fn by(who: &Actor, run: &str) -> Self {
        let webhook = json!({"url": "https://hooks.example.com/T0/path", "events": ["agent.disconnected"]});
        let share = json!({"query": format!("runs={run}")});
        Self {
            invitation: invite_token(who, &json!({"role": "admin"})).await,
            recovery: invite_token(who, &json!({"user": "Ada"})).await,
            one_time: text(&who.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.ok().json()["secret"]),
            share: text(&who.post("/api/v1/shares", &share).await.ok().json()["url"]),
            webhook: who.post("/api/v1/webhooks", &webhook).await.ok().json()["webhook"].clone(),
        }
    }

    /// Uses all. Returns the statuses of invitation, recovery link, one-time key and share link, and the number of
    /// webhooks.
    async fn use_all(&self, app: &App, ada: &Actor) -> (u16, u16, u16, u16, usize) {
        let nobody = app.anonymous();
        let start = async |token: &str| {
            let body = json!({"token": token, "name": "Mallory"});
            nobody.post("/api/v1/auth/register/start", &body).await.status.as_u16()
        };
        let hash = json!({"key_sha256": "0".repeat(64)});
        let share = self.share.replacen(app.state.public_url.as_str(), "/", 1);
        let webhooks = ada.get("/api/v1/webhooks").await.ok().json();
        (
            start(&self.invitation).await,
            start(&self.recovery).await,
            nobody.clone().with_secret(&self.one_time).post("/api/v1/agent/enrolment", &hash).await.status.as_u16(),
            nobody.clone().in_browser().get(&share).await.status.as_u16(),
            webhooks["webhooks"].as_array().expect("a list").len(),
        )
    }
}

async fn start() -> (App, Actor, Actor, Created) {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let mallory = app.signed_in_as("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    let run = text(&ada.import(good()).await.ok().json()["runs"][0]["id"]);
    let created = Created::by(&mallory, &run).await;
    (app, ada, mallory, created)
}

fn kinds(list: &Value) -> Vec<String> {
    list["ends"].as_array().expect("a list").iter().map(|ending| text(&ending["kind"])).collect()
}

#[tokio::test]
async fn removing_a_user_ends_all_that_the_user_created() {
    let (app, ada, _, created) = start().await;
    let preview = ada.get("/api/v1/users/Mallory/ends").await.ok().json();
    let all = ["passkey", "session", "invitation", "recovery_link", "agent_key", "share_link", "webhook"];
    assert_eq!(kinds(&preview), all);
    assert_eq!(preview["ends"][6]["name"], "https://hooks.example.com", "its path may be a secret");
    let page = ada.clone().in_browser().get("/users/Mallory/remove").await.ok().text();
    for sentence in
        ["1 invitation ends: admin.", "1 recovery link ends: Ada.", "1 agent key ends: rack.", "1 share link ends: "]
    {
        assert!(page.contains(sentence), "{sentence} {page}");
    }
    assert_eq!(ada.delete("/api/v1/users/Mallory").await.ok().json(), preview);
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    // A new user of the same name inherits nothing.
    app.signed_in_as("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    assert_eq!(kinds(&ada.get("/api/v1/users/Mallory/ends").await.ok().json()), ["passkey", "session"]);
}

#[tokio::test]
async fn demoting_an_administrator_ends_what_requires_the_role() {
    let (app, ada, mallory, created) = start().await;
    let pages = ada.clone().in_browser();
    let confirmation = pages.form("/users/Mallory/role", &[("role", "member")]).await.ok().text();
    assert!(confirmation.contains("1 webhook ends: https://hooks.example.com."), "{confirmation}");
    assert!(!confirmation.contains("share link"), "{confirmation}");
    mallory.get("/api/v1/users").await.ok();
    let done = pages.form("/users/Mallory/role", &[("role", "member"), ("confirmed", "yes")]).await;
    assert_eq!(done.status.as_u16(), 303);
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 200, 0));
    let ended = ada.put("/api/v1/users/Mallory", &json!({"role": "viewer"})).await.ok().json();
    assert_eq!(kinds(&ended), ["share_link"]);
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    // Nothing comes back with the role.
    ada.put("/api/v1/users/Mallory", &json!({"role": "admin"})).await.ok();
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
}

#[tokio::test]
async fn each_use_checks_the_role_of_the_creator_even_without_triggers() {
    let (app, ada, _, created) = start().await;
    let write = &app.state.db.write;
    for trigger in ["authority_of_removed", "authority_of_administrators", "authority_of_members"] {
        let sql = sqlx::AssertSqlSafe(format!("drop trigger {trigger}"));
        sqlx::query(sql).execute(write).await.expect("no trigger");
    }
    sqlx::query("update user set role = 'viewer' where name = 'Mallory'").execute(write).await.expect("a demotion");
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 1));
    let refused = ada.post(&format!("/api/v1/webhooks/{}/test", created.webhook["id"]), &()).await.refused(409);
    assert!(refused.contains("no longer an administrator"), "{refused}");
    sqlx::query("delete from user where name = 'Mallory'").execute(write).await.expect("a removal");
    assert_eq!(created.use_all(&app, &ada).await, (403, 403, 401, 404, 1));
    assert_eq!(ada.get("/api/v1/webhooks").await.ok().json()["webhooks"][0]["is_active"], false);
}

#[tokio::test]
async fn what_a_token_created_depends_on_the_role_of_its_user() {
    let app = App::start().await;
    let ada = app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let mallory = app.signed_in_as("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    let request = json!({"name": "ci", "scope": "admin"});
    let secret = text(&mallory.post("/api/v1/tokens", &request).await.ok().json()["secret"]);
    let program = app.anonymous().with_secret(&secret);
    let invitation = invite_token(&program, &json!({"role": "admin"})).await;
    ada.put("/api/v1/users/Mallory", &json!({"role": "member"})).await.ok();
    let body = json!({"token": invitation, "name": "Eve"});
    app.anonymous().post("/api/v1/auth/register/start", &body).await.refused(403);
    program.get("/api/v1/users").await.refused(403);
}

#[tokio::test]
async fn a_command_lists_what_ends_before_it_changes_a_role() {
    let (app, ada, _, _) = start().await;
    let token = app.token_secret(Scope::Admin, None).await;
    let refused = as_user(&app, &token, &["user", "role", "Mallory", "member"]).await.refused(1);
    assert!(refused.contains("1 agent key ends: rack.") && refused.contains("nothing was changed"), "{refused}");
    let list = ada.get("/api/v1/users").await.ok().json();
    assert!(list["users"].as_array().expect("a list").iter().all(|user| user["role"] == "admin"), "{list}");
    let ended = as_user(&app, &token, &["user", "role", "Mallory", "member", "--yes"]).await.ok();
    assert!(ended.contains("1 invitation ends: admin."), "{ended}");
}

#[tokio::test]
async fn live_updates_end_when_their_user_is_removed() {
    let (app, ada, mallory, _) = start().await;
    let mut streams = Vec::new();
    for path in ["/runs/live", "/queue/live"] {
        let answer = mallory.request(&Method::GET, path).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        streams.push(answer);
    }
    ada.delete("/api/v1/users/Mallory").await.ok();
    for stream in streams {
        tokio::time::timeout(PATIENCE, stream.bytes()).await.expect("an end in time").expect("the rest");
    }
    mallory.get("/runs/live").await.refused(401);
    drop(app);
}
