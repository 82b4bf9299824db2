//! What somebody made as an administrator, used after the removal or demotion.

use brewbench::auth::model::{Role, Scope};
use brewbench_agent::wire::now_ms;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Actor, App, PATIENCE, program::as_user, submit::text, summaries::good};

/// What an administrator made: an invitation, a recovery link, a one-time key, a share link, a webhook.
struct Made {
    invitation: String,
    recovery: String,
    one_time: String,
    share: String,
    webhook: Value,
}

async fn token_of(who: &Actor, asked: &Value) -> String {
    let url = text(&who.post("/api/v1/invites", asked).await.ok().json()["url"]);
    url.split("token=").nth(1).expect("a secret").to_owned()
}

impl Made {
    async fn by(who: &Actor, run: &str) -> Self {
        let webhook = json!({"url": "https://hooks.example.com/T0/path", "events": ["agent.away"]});
        let share = json!({"query": format!("runs={run}")});
        Self {
            invitation: token_of(who, &json!({"role": "admin"})).await,
            recovery: token_of(who, &json!({"person": "Ada"})).await,
            one_time: text(&who.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.ok().json()["secret"]),
            share: text(&who.post("/api/v1/shares", &share).await.ok().json()["url"]),
            webhook: who.post("/api/v1/webhooks", &webhook).await.ok().json()["webhook"].clone(),
        }
    }

    /// Statuses of its use: invitation, recovery link, one-time key, share link; and how many webhooks there are.
    async fn use_all(&self, app: &App, ada: &Actor) -> (u16, u16, u16, u16, usize) {
        let nobody = app.nobody();
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
            nobody.clone().at_pages().get(&share).await.status.as_u16(),
            webhooks["webhooks"].as_array().expect("a list").len(),
        )
    }
}

async fn start() -> (App, Actor, Actor, Made) {
    let app = App::start().await;
    let ada = app.named("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let mallory = app.named("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    let run = text(&ada.import(good()).await.ok().json()["runs"][0]["id"]);
    let made = Made::by(&mallory, &run).await;
    (app, ada, mallory, made)
}

fn kinds(list: &Value) -> Vec<String> {
    list["ends"].as_array().expect("a list").iter().map(|ending| text(&ending["kind"])).collect()
}

#[tokio::test]
async fn what_somebody_made_ends_with_the_removal() {
    let (app, ada, _, made) = start().await;
    let would = ada.get("/api/v1/people/Mallory/ends").await.ok().json();
    let all = ["passkey", "session", "invitation", "recovery_link", "agent_key", "share_link", "webhook"];
    assert_eq!(kinds(&would), all);
    assert_eq!(would["ends"][6]["name"], "https://hooks.example.com", "its path may be a secret");
    let page = ada.clone().at_pages().get("/people/Mallory/remove").await.ok().text();
    for sentence in
        ["1 invitation ends: admin.", "1 recovery link ends: Ada.", "1 agent key ends: rack.", "1 share link ends: "]
    {
        assert!(page.contains(sentence), "{sentence} {page}");
    }
    assert_eq!(ada.delete("/api/v1/people/Mallory").await.ok().json(), would);
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    // Neither does a new person of the same name inherit anything.
    app.named("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    assert_eq!(kinds(&ada.get("/api/v1/people/Mallory/ends").await.ok().json()), ["passkey", "session"]);
}

#[tokio::test]
async fn what_takes_an_administrator_ends_when_its_maker_is_none_any_more() {
    let (app, ada, mallory, made) = start().await;
    let pages = ada.clone().at_pages();
    let asked = pages.form("/people/Mallory/role", &[("role", "member")]).await.ok().text();
    assert!(asked.contains("1 webhook ends: https://hooks.example.com.") && !asked.contains("share link"), "{asked}");
    mallory.get("/api/v1/people").await.ok();
    let done = pages.form("/people/Mallory/role", &[("role", "member"), ("confirmed", "yes")]).await;
    assert_eq!(done.status.as_u16(), 303);
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 200, 0));
    let ended = ada.put("/api/v1/people/Mallory", &json!({"role": "viewer"})).await.ok().json();
    assert_eq!(kinds(&ended), ["share_link"]);
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
    // It does not come back with the role.
    ada.put("/api/v1/people/Mallory", &json!({"role": "admin"})).await.ok();
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 0));
}

#[tokio::test]
async fn a_use_asks_for_the_makers_role_even_where_nothing_ended_it() {
    let (app, ada, _, made) = start().await;
    let write = &app.state.db.write;
    for trigger in ["authority_of_removed", "authority_of_administrators", "authority_of_members"] {
        let sql = sqlx::AssertSqlSafe(format!("drop trigger {trigger}"));
        sqlx::query(sql).execute(write).await.expect("no trigger");
    }
    sqlx::query("update user set role = 'viewer' where name = 'Mallory'").execute(write).await.expect("a demotion");
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 1));
    let refused = ada.post(&format!("/api/v1/webhooks/{}/test", made.webhook["id"]), &()).await.refused(409);
    assert!(refused.contains("no administrator any more"), "{refused}");
    sqlx::query("delete from user where name = 'Mallory'").execute(write).await.expect("a removal");
    assert_eq!(made.use_all(&app, &ada).await, (403, 403, 401, 404, 1));
    assert_eq!(ada.get("/api/v1/webhooks").await.ok().json()["webhooks"][0]["is_active"], false);
}

#[tokio::test]
async fn what_a_token_made_hangs_on_the_user_whose_token_it_is() {
    let app = App::start().await;
    let ada = app.named("Ada", Role::Admin, now_ms() + 86_400_000).await;
    let mallory = app.named("Mallory", Role::Admin, now_ms() + 86_400_000).await;
    let asked = json!({"name": "ci", "scope": "admin"});
    let secret = text(&mallory.post("/api/v1/tokens", &asked).await.ok().json()["secret"]);
    let program = app.nobody().with_secret(&secret);
    let invitation = token_of(&program, &json!({"role": "admin"})).await;
    ada.put("/api/v1/people/Mallory", &json!({"role": "member"})).await.ok();
    let body = json!({"token": invitation, "name": "Eve"});
    app.nobody().post("/api/v1/auth/register/start", &body).await.refused(403);
    program.get("/api/v1/people").await.refused(403);
}

#[tokio::test]
async fn a_command_says_what_ends_before_it_does_so() {
    let (app, ada, _, _) = start().await;
    let token = app.token_secret(Scope::Admin, None).await;
    let kept = as_user(&app, &token, &["user", "role", "Mallory", "member"]).await.refused(1);
    assert!(kept.contains("1 agent key ends: rack.") && kept.contains("nothing was changed"), "{kept}");
    let list = ada.get("/api/v1/people").await.ok().json();
    assert!(list["people"].as_array().expect("a list").iter().all(|person| person["role"] == "admin"), "{list}");
    let ended = as_user(&app, &token, &["user", "role", "Mallory", "member", "--yes"]).await.ok();
    assert!(ended.contains("1 invitation ends: admin."), "{ended}");
}

#[tokio::test]
async fn whoever_is_removed_follows_nothing_any_more() {
    let (app, ada, mallory, _) = start().await;
    let mut streams = Vec::new();
    for path in ["/runs/live", "/queue/live"] {
        let answer = mallory.request(&Method::GET, path).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        streams.push(answer);
    }
    ada.delete("/api/v1/people/Mallory").await.ok();
    for stream in streams {
        tokio::time::timeout(PATIENCE, stream.bytes()).await.expect("an end within patience").expect("all of it");
    }
    mallory.get("/runs/live").await.refused(401);
    drop(app);
}
