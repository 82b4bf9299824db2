//! Alerts on pages, and webhooks before a receiver that is really there: signed, sent anew, never led astray.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::IntoResponse,
};
use brewbench::{
    alerts::sign::signature,
    app::{config::Config, networks::Networks},
    auth::model::Role,
    cli::events::Events,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle, time::timeout};

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    program::as_user,
    submit::{plan_with, submit, submit_one, text},
    summaries::good,
};

/// Somebody who is told.
struct Receiver {
    url: String,
    heard: mpsc::UnboundedReceiver<Heard>,
    answers: Answers,
    serving: JoinHandle<()>,
}

/// What it answers next; 204 where nothing is said.
type Answers = Arc<Mutex<VecDeque<u16>>>;

/// One request.
struct Heard {
    headers: HeaderMap,
    body: String,
}

impl Heard {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// Whether it was signed with this secret.
    fn is_signed_with(&self, secret: &str) -> bool {
        let at: i64 = self.header("webhook-timestamp").parse().expect("a time");
        let expected = signature(secret, self.header("webhook-id"), at, &self.body).expect("a good secret");
        self.header("webhook-signature") == expected
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

type Place = (mpsc::UnboundedSender<Heard>, Answers);

async fn take(State((hear, answers)): State<Place>, headers: HeaderMap, body: String) -> impl IntoResponse {
    let status = answers.lock().expect("no panic").pop_front().unwrap_or(204);
    let _ = hear.send(Heard { headers, body });
    let elsewhere = [(header::LOCATION, "/elsewhere")];
    (StatusCode::from_u16(status).expect("a status"), elsewhere, "what is wrong\u{7}")
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let (hear, heard) = mpsc::unbounded_channel();
        let answers = Answers::default();
        let app = Router::new().fallback(take).with_state((hear, Arc::clone(&answers)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { url, heard, answers, serving }
    }

    fn answers(&self, statuses: &[u16]) {
        self.answers.lock().expect("no panic").extend(statuses);
    }

    async fn hear(&mut self) -> Heard {
        timeout(PATIENCE, self.heard.recv()).await.expect("an event in time").expect("an event")
    }

    /// Adds a webhook for it; gives its id and its secret.
    async fn added(&self, admin: &Actor, events: &[&str]) -> (i64, String) {
        let made = admin.post("/api/v1/webhooks", &json!({"url": self.url, "events": events})).await.ok().json();
        (made["webhook"]["id"].as_i64().expect("an id"), text(&made["secret"]))
    }
}

fn to_loopback(config: &mut Config) {
    config.webhooks_to = Networks::loopback();
}

async fn impatient(admin: &Actor) {
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 1, "queue_standstill_s": 1})).await.ok();
}

/// A run that waits for an agent which takes nothing.
async fn stranded(app: &App, admin: &Actor) -> Agent {
    let agent = Agent::start(app, "rack").await;
    admin.put("/api/v1/agents/rack/standing", &json!({"standing": "drained"})).await.ok();
    submit_one(admin).await;
    agent
}

/// What waits is due now, whatever its time.
async fn hurry(app: &App) {
    let hurry = "update webhook_delivery set next_at = 0 where next_at is not null";
    sqlx::query(hurry).execute(&app.state.db.write).await.expect("an update");
    app.state.outbox.notify_one();
}

async fn deliveries(admin: &Actor, id: i64) -> Vec<Value> {
    let list = admin.get(&format!("/api/v1/webhooks/{id}/deliveries")).await.ok().json();
    list["deliveries"].as_array().expect("a list").clone()
}

/// Waits until the last delivery is in a state; gives it.
async fn last_is(app: &App, admin: &Actor, id: i64, state: &str) -> Value {
    let last = async || deliveries(admin, id).await.first().filter(|last| last["state"] == state).cloned();
    app.until(state, last).await
}

/// Waits until the last delivery was tried so often; gives it.
async fn tried(app: &App, admin: &Actor, id: i64, tries: u32) -> Value {
    app.until("a try", async || deliveries(admin, id).await.first().filter(|last| last["tries"] == tries).cloned())
        .await
}

async fn alerts(who: &Actor) -> Vec<Value> {
    who.get("/api/v1/alerts").await.ok().json()["alerts"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn an_agent_that_is_away_too_long_is_told_on_pages_and_by_webhook_until_it_is_back() {
    let app = App::with(to_loopback).await;
    let (admin, viewer) = (app.admin().await, app.person(Role::Viewer).await);
    let mut receiver = Receiver::start().await;
    let (_, secret) = receiver.added(&admin, &["agent.away", "agent.back"]).await;
    let mut agent = Agent::start(&app, "rack").await;
    let _never_there = Agent::away(&app, "attic").await;
    impatient(&admin).await;
    let mut page = Events::of(viewer.request(&Method::GET, "/dashboard/live").send().await.expect("an answer"));
    agent.hang_up();
    let away = receiver.hear().await;
    assert!(away.is_signed_with(&secret) && away.header("content-type") == "application/json", "{}", away.body);
    let said = away.json();
    assert_eq!(
        (&said["event"], &said["data"]["agent"], &said["id"]),
        (&json!("agent.away"), &json!("rack"), &json!(away.header("webhook-id")))
    );
    assert!(text(&said["data"]["url"]).ends_with("/agents/rack"), "{said}");
    let raised = app.until("an alert", async || alerts(&viewer).await.pop()).await;
    assert_eq!((&raised["kind"], &raised["sentence"]), (&json!("agent.away"), &json!("rack is away")));
    for path in ["/", "/agents", "/queue"] {
        let page = viewer.get(path).await.ok().text();
        assert!(page.contains("<b>rack is away</b>"), "{path}: {page}");
    }
    let shown = timeout(PATIENCE, async {
        while let Some(event) = page.next().await.expect("an event") {
            if event.data.contains("<b>rack is away</b>") {
                return true;
            }
        }
        false
    });
    assert!(shown.await.expect("in time"), "the page that follows says so");
    agent.dial(&app).await.expect("a welcome");
    let back = receiver.hear().await;
    assert!(back.is_signed_with(&secret));
    let said = back.json();
    assert_eq!((&said["event"], &said["data"]["state"]), (&json!("agent.back"), &json!("connected")));
    app.until("calm", async || alerts(&viewer).await.is_empty().then_some(())).await;
    assert!(!viewer.get("/").await.ok().text().contains("rack is away"));
}

#[tokio::test]
async fn nobody_misses_an_agent_that_is_disabled() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.added(&admin, &[]).await;
    let mut agents = [Agent::start(&app, "rack").await, Agent::start(&app, "attic").await];
    admin.put("/api/v1/agents/rack/standing", &json!({"standing": "disabled"})).await.ok();
    impatient(&admin).await;
    agents[1].hang_up();
    assert_eq!(receiver.hear().await.json()["data"]["agent"], "attic", "and rack would have been first");
    admin.delete("/api/v1/agents/attic").await.ok();
    let said = receiver.hear().await.json();
    assert_eq!((&said["event"], &said["data"]["state"]), (&json!("agent.back"), &json!("forgotten")));
}

#[tokio::test]
async fn a_queue_that_nobody_serves_is_told_and_told_again_when_it_moves() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.added(&admin, &["queue.standstill", "queue.moving"]).await;
    impatient(&admin).await;
    let mut agent = stranded(&app, &admin).await;
    let said = receiver.hear().await.json();
    assert_eq!(said["event"], "queue.standstill", "{said}");
    assert!(text(&said["data"]["why"]).contains("rack is drained"), "{said}");
    app.until("an alert", async || alerts(&admin).await.pop()).await;
    let page = app.person(Role::Viewer).await.get("/queue").await.ok().text();
    assert!(page.contains("the queue stands still: rack is drained"), "{page}");
    admin.put("/api/v1/agents/rack/standing", &json!({"standing": "enabled"})).await.ok();
    agent.job().await;
    assert_eq!(receiver.hear().await.json()["event"], "queue.moving");
}

#[tokio::test]
async fn a_finished_experiment_is_told_once_and_once_more_when_it_went_on() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.added(&admin, &["experiment.finished"]).await;
    let mut agent = Agent::start(&app, "rack").await;
    let (id, runs) = submit(&admin, &plan_with(&json!({"repetitions": 2, "name": "night"}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let _second = agent.job().await;
    admin.post(&format!("/api/v1/runs/{}/cancel", runs[1]), &()).await.ok();
    let said = receiver.hear().await.json();
    assert_eq!(
        (&said["event"], &said["data"]["name"], &said["data"]["runs"]),
        (&json!("experiment.finished"), &json!("night"), &json!(2))
    );
    let ended = &said["data"]["ended"];
    assert_eq!(ended["cancelled"], 1, "{said}");
    let sum: u64 = ended.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 2, "{said}");
    assert!(text(&said["data"]["url"]).ends_with(&format!("/experiments/{id}")), "{said}");

    let cancelled = agent.cancelled().await;
    assert_eq!(cancelled.to_string(), runs[1]);
    agent.say(&brewbench_agent::wire::messages::AgentMessage::Done { run: cancelled });
    let imported = json!({"name": "theirs", "runs": [text(&admin.import(good()).await.ok().json()["runs"][0]["id"])]});
    admin.post("/api/v1/experiments/gathered", &imported).await;
    admin.post(&format!("/api/v1/experiments/{id}/repetitions"), &json!({"repetitions": 1})).await.ok();
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let said = receiver.hear().await.json();
    assert_eq!((&said["data"]["experiment"], &said["data"]["runs"]), (&json!(id), &json!(3)), "not what was brought");
}

#[tokio::test]
async fn what_is_not_taken_is_sent_anew_under_the_same_id_also_by_the_next_server() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, secret) = receiver.added(&admin, &["queue.standstill"]).await;
    receiver.answers(&[500, 503]);
    impatient(&admin).await;
    let _agent = stranded(&app, &admin).await;
    let first = receiver.hear().await;
    let waiting = tried(&app, &admin, id, 1).await;
    assert_eq!(
        (&waiting["tries"], &waiting["status"], &waiting["error"]),
        (&json!(1), &json!(500), &json!("what is wrong"))
    );
    let wait_ms = waiting["next_at_ms"].as_i64().expect("a time") - waiting["last_at_ms"].as_i64().expect("a time");
    assert_eq!(wait_ms, 5_000);
    hurry(&app).await;
    assert_eq!(receiver.hear().await.header("webhook-id"), first.header("webhook-id"));
    tried(&app, &admin, id, 2).await;
    let folder = app.stop().await;
    let app = App::on(folder, to_loopback).await;
    let admin = admin.at(&app.url);
    let stands = async || alerts(&admin).await.into_iter().find(|alert| alert["kind"] == "queue.standstill");
    app.until("what was raised to stay raised", stands).await;
    hurry(&app).await;
    let third = receiver.hear().await;
    assert!(third.is_signed_with(&secret) && third.body == first.body);
    assert_eq!(last_is(&app, &admin, id, "delivered").await["tries"], 3);
    assert_eq!(deliveries(&admin, id).await.len(), 1, "the next server does not raise it once more");
}

#[tokio::test]
async fn what_is_never_taken_is_given_up() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, _) = receiver.added(&admin, &["queue.standstill"]).await;
    receiver.answers(&[500; 7]);
    impatient(&admin).await;
    let _agent = stranded(&app, &admin).await;
    for tries in 1..=7 {
        receiver.hear().await;
        tried(&app, &admin, id, tries).await;
        hurry(&app).await;
    }
    assert_eq!(last_is(&app, &admin, id, "given_up").await["next_at_ms"], Value::Null);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_test_is_sent_once() {
    let app = App::with(to_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, secret) = receiver.added(&admin, &[]).await;
    receiver.answers(&[307]);
    let sent = admin.post(&format!("/api/v1/webhooks/{id}/test"), &()).await.ok().json();
    assert_eq!(
        (&sent["state"], &sent["status"], &sent["error"]),
        (&json!("given_up"), &json!(307), &json!("redirects are not followed"))
    );
    assert!(receiver.hear().await.is_signed_with(&secret));
    let sent = admin.post(&format!("/api/v1/webhooks/{id}/test"), &()).await.ok().json();
    assert_eq!((&sent["state"], &sent["tries"]), (&json!("delivered"), &json!(1)));
    assert_eq!(receiver.hear().await.json()["event"], "test");
    assert!(receiver.heard.try_recv().is_err(), "nothing came from elsewhere");
}

#[tokio::test]
async fn private_addresses_are_refused_unless_the_server_was_told_otherwise() {
    let app = App::start().await;
    let admin = app.admin().await;
    let receiver = Receiver::start().await;
    for url in [
        "https://127.0.0.1/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://169.254.169.254/",
        &receiver.url,
        "ftp://a.example/",
        "",
    ] {
        let told = admin.post("/api/v1/webhooks", &json!({"url": url})).await.refused(422);
        assert!(told.starts_with("url: "), "{url}: {told}");
    }
    // A name is looked at when something is sent.
    let made = admin.post("/api/v1/webhooks", &json!({"url": "https://localhost:9/"})).await.ok().json();
    let path = format!("/api/v1/webhooks/{}/test", made["webhook"]["id"]);
    let sent = admin.post(&path, &()).await.ok().json();
    assert_eq!((&sent["state"], &sent["status"]), (&json!("given_up"), &Value::Null));
    assert!(text(&sent["error"]).contains("is not of the public internet"), "{sent}");
    admin
        .post("/api/v1/webhooks", &json!({"url": "https://hooks.example.com/", "events": ["test"]}))
        .await
        .refused(422);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_kept_out_of_lists_and_the_log() {
    let app = App::with(to_loopback).await;
    let (admin, person) = (app.admin().await, app.person(Role::Admin).await.at_pages());
    let receiver = Receiver::start().await;
    let (id, secret) = receiver.added(&admin, &["agent.away"]).await;
    admin.post(&format!("/api/v1/webhooks/{id}/test"), &()).await.ok();
    let page = format!("/settings/webhooks/{id}");
    for path in [
        "/api/v1/webhooks",
        &format!("/api/v1/webhooks/{id}/deliveries"),
        "/api/v1/audit",
        "/settings/webhooks",
        &page,
        "/audit",
    ] {
        let said = if path.starts_with("/api") { admin.get(path).await.ok() } else { person.get(path).await.ok() };
        assert!(!said.text().contains(&secret), "{path}");
    }
    let log = admin.get("/api/v1/audit?what=webhook%20added").await.ok().json();
    let object = text(&log["entries"][0]["object"]);
    assert_eq!(format!("{object}/hook"), receiver.url, "the rest of an address may be a secret");
}

#[tokio::test]
async fn webhooks_are_added_tried_and_removed_by_form_and_by_command() {
    let app = App::with(to_loopback).await;
    let (admin, person) = (app.admin().await, app.person(Role::Admin).await.at_pages());
    let mut receiver = Receiver::start().await;
    let refused = person.form("/settings/webhooks", &[("url", "ftp://a.example/"), ("event", "agent.away")]).await;
    assert!(refused.status.as_u16() == 422 && refused.text().contains("begins with https"), "{}", refused.text());
    let made = person.form("/settings/webhooks", &[("url", receiver.url.as_str()), ("event", "agent.away")]).await;
    assert!(made.status.as_u16() == 201 && made.text().contains("whsec_"), "{}", made.text());
    person.form("/settings/webhooks/1/test", &[]).await;
    receiver.hear().await;
    assert!(person.get("/settings/webhooks/1").await.ok().text().contains("delivered"));
    assert!(person.get("/settings/webhooks/1/remove").await.ok().text().contains("Remove this webhook?"));
    person.form("/settings/webhooks/1/remove", &[]).await;
    assert_eq!(admin.get("/api/v1/webhooks").await.ok().json(), json!({"webhooks": []}));

    let run = async |arguments: &[&str]| as_user(&app, admin.secret(), arguments).await;
    assert!(run(&["webhook", "list"]).await.ok().starts_with("nobody is told elsewhere"));
    let secret = run(&["webhook", "add", &receiver.url, "--event", "agent.away", "--event", "agent.back"]).await.ok();
    assert!(secret.starts_with("whsec_"), "{secret}");
    run(&["webhook", "test", "2"]).await.ok();
    assert!(receiver.hear().await.is_signed_with(secret.trim()));
    receiver.answers(&[404]);
    assert!(run(&["webhook", "test", "2"]).await.refused(1).contains("answered 404"));
    assert!(run(&["webhook", "list"]).await.ok().contains("agent.away, agent.back"));
    let sent = run(&["webhook", "deliveries", "2"]).await.ok();
    assert!(sent.contains("delivered") && sent.contains("given up") && sent.contains("what is wrong"), "{sent}");
    run(&["webhook", "remove", "2"]).await.ok();
    run(&["webhook", "remove", "2"]).await.refused(1);
}

#[tokio::test]
async fn the_rule_is_set_by_form_and_by_command_and_the_log_knows_by_whom() {
    let app = App::start().await;
    let (admin, person) = (app.admin().await, app.person(Role::Admin).await.at_pages());
    let run = async |arguments: &[&str]| as_user(&app, admin.secret(), arguments).await;
    assert!(run(&["alert"]).await.ok().starts_with("all is well"));
    assert!(run(&["alert", "rule"]).await.ok().contains("missed after 5 min"));
    person.form("/settings/alerts", &[("agent_away", "2.5"), ("queue_standstill", "30")]).await;
    let rule = admin.get("/api/v1/alert-rule").await.ok().json();
    assert_eq!((&rule["agent_away_s"], &rule["queue_standstill_s"]), (&json!(150), &json!(1_800)));
    let told = run(&["alert", "rule", "--agent-away", "1h"]).await.ok();
    assert!(told.contains("missed after 1 h") && told.contains("still after 30 min"), "{told}");
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 0, "queue_standstill_s": 1})).await.refused(422);
    let log = admin.get("/api/v1/audit?what=rule%20for%20alerts%20set").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2), "{log}");
}
