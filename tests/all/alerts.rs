//! Alerts on pages, and webhooks to a real receiver: signatures, retries, redirects and allowed addresses.

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
};
use brewbench_cli::events::Events;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle, time::timeout};

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    program::as_user,
    submit::{plan_with, submit, submit_one, text},
    summaries::good,
};

/// A receiver of webhooks.
struct Receiver {
    url: String,
    requests: mpsc::UnboundedReceiver<Received>,
    answers: Answers,
    serving: JoinHandle<()>,
}

/// The statuses of its next answers; 204 if there are none.
type Answers = Arc<Mutex<VecDeque<u16>>>;

/// One request.
struct Received {
    headers: HeaderMap,
    body: String,
}

impl Received {
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

type Shared = (mpsc::UnboundedSender<Received>, Answers);

async fn receive(State((sender, answers)): State<Shared>, headers: HeaderMap, body: String) -> impl IntoResponse {
    let status = answers.lock().expect("no panic").pop_front().unwrap_or(204);
    let _ = sender.send(Received { headers, body });
    let elsewhere = [(header::LOCATION, "/elsewhere")];
    (StatusCode::from_u16(status).expect("a status"), elsewhere, "what is wrong\u{7}")
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let (sender, requests) = mpsc::unbounded_channel();
        let answers = Answers::default();
        let app = Router::new().fallback(receive).with_state((sender, Arc::clone(&answers)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
        Self { url, requests, answers, serving }
    }

    fn answer_with(&self, statuses: &[u16]) {
        self.answers.lock().expect("no panic").extend(statuses);
    }

    async fn next(&mut self) -> Received {
        timeout(PATIENCE, self.requests.recv()).await.expect("an event in time").expect("an event")
    }

    /// Creates a webhook for this receiver; returns its id and secret.
    async fn register(&self, admin: &Actor, events: &[&str]) -> (i64, String) {
        let created = admin.post("/api/v1/webhooks", &json!({"url": self.url, "events": events})).await.ok().json();
        (created["webhook"]["id"].as_i64().expect("an id"), text(&created["secret"]))
    }
}

fn allow_loopback(config: &mut Config) {
    config.webhooks_to = Networks::loopback();
}

async fn alert_after_a_second(admin: &Actor) {
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 1, "queue_standstill_s": 1})).await.ok();
}

/// Queues a run while its only agent is drained; returns the agent.
async fn stall_queue(app: &App, admin: &Actor) -> Agent {
    let agent = Agent::start(app, "rack").await;
    admin.put("/api/v1/agents/rack/availability", &json!({"availability": "drained"})).await.ok();
    submit_one(admin).await;
    agent
}

/// Makes all waiting deliveries due.
async fn make_due(app: &App) {
    let sql = "update webhook_delivery set next_at = 0 where next_at is not null";
    sqlx::query(sql).execute(&app.state.db.write).await.expect("an update");
    app.state.outbox.notify_one();
}

async fn deliveries(admin: &Actor, id: i64) -> Vec<Value> {
    let list = admin.get(&format!("/api/v1/webhooks/{id}/deliveries")).await.ok().json();
    list["deliveries"].as_array().expect("a list").clone()
}

/// Waits until the last delivery is in a state; returns it.
async fn last_is(app: &App, admin: &Actor, id: i64, state: &str) -> Value {
    let last = async || deliveries(admin, id).await.first().filter(|last| last["state"] == state).cloned();
    app.until(state, last).await
}

/// Waits until the last delivery has been tried N times; returns it.
async fn after_attempts(app: &App, admin: &Actor, id: i64, attempts: u32) -> Value {
    app.until("an attempt", async || {
        deliveries(admin, id).await.first().filter(|last| last["attempts"] == attempts).cloned()
    })
    .await
}

async fn alerts(who: &Actor) -> Vec<Value> {
    who.get("/api/v1/alerts").await.ok().json()["alerts"].as_array().expect("a list").clone()
}

#[tokio::test]
async fn a_disconnected_agent_raises_an_alert_on_pages_and_by_webhook_until_it_is_back() {
    let app = App::with(allow_loopback).await;
    let (admin, viewer) = (app.admin().await, app.signed_in(Role::Viewer).await);
    let mut receiver = Receiver::start().await;
    let (_, secret) = receiver.register(&admin, &["agent.disconnected", "agent.connected"]).await;
    let mut agent = Agent::start(&app, "rack").await;
    let _never_connected = Agent::disconnected(&app, "attic").await;
    alert_after_a_second(&admin).await;
    let mut page =
        Events::from_response(viewer.request(&Method::GET, "/dashboard/live").send().await.expect("an answer"));
    agent.disconnect();
    let away = receiver.next().await;
    assert!(away.is_signed_with(&secret) && away.header("content-type") == "application/json", "{}", away.body);
    let event = away.json();
    assert_eq!(
        (&event["event"], &event["data"]["agent"], &event["id"]),
        (&json!("agent.disconnected"), &json!("rack"), &json!(away.header("webhook-id")))
    );
    assert!(text(&event["data"]["url"]).ends_with("/agents/rack"), "{event}");
    let raised = app.until("an alert", async || alerts(&viewer).await.pop()).await;
    assert_eq!((&raised["kind"], &raised["sentence"]), (&json!("agent.disconnected"), &json!("rack is disconnected")));
    for path in ["/", "/agents", "/queue"] {
        let page = viewer.get(path).await.ok().text();
        assert!(page.contains("<b>rack is disconnected</b>"), "{path}: {page}");
    }
    let shown = timeout(PATIENCE, async {
        while let Some(event) = page.next().await.expect("an event") {
            if event.data.contains("<b>rack is disconnected</b>") {
                return true;
            }
        }
        false
    });
    assert!(shown.await.expect("in time"), "the open page shows the alert");
    agent.connect(&app).await.expect("a welcome");
    let back = receiver.next().await;
    assert!(back.is_signed_with(&secret));
    let event = back.json();
    assert_eq!((&event["event"], &event["data"]["state"]), (&json!("agent.connected"), &json!("connected")));
    app.until("the alert to end", async || alerts(&viewer).await.is_empty().then_some(())).await;
    assert!(!viewer.get("/").await.ok().text().contains("rack is disconnected"));
}

#[tokio::test]
async fn a_disabled_agent_raises_no_alert() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.register(&admin, &[]).await;
    let mut agents = [Agent::start(&app, "rack").await, Agent::start(&app, "attic").await];
    admin.put("/api/v1/agents/rack/availability", &json!({"availability": "disabled"})).await.ok();
    alert_after_a_second(&admin).await;
    agents[1].disconnect();
    assert_eq!(receiver.next().await.json()["data"]["agent"], "attic", "the disabled agent would have been first");
    admin.delete("/api/v1/agents/attic").await.ok();
    let event = receiver.next().await.json();
    assert_eq!((&event["event"], &event["data"]["state"]), (&json!("agent.connected"), &json!("forgotten")));
}

#[tokio::test]
async fn a_stalled_queue_raises_an_alert_that_ends_when_it_moves() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.register(&admin, &["queue.stalled", "queue.resumed"]).await;
    alert_after_a_second(&admin).await;
    let mut agent = stall_queue(&app, &admin).await;
    let event = receiver.next().await.json();
    assert_eq!(event["event"], "queue.stalled", "{event}");
    assert!(text(&event["data"]["reason"]).contains("rack is drained"), "{event}");
    app.until("an alert", async || alerts(&admin).await.pop()).await;
    let page = app.signed_in(Role::Viewer).await.get("/queue").await.ok().text();
    assert!(page.contains("the queue is stalled: rack is drained"), "{page}");
    admin.put("/api/v1/agents/rack/availability", &json!({"availability": "enabled"})).await.ok();
    agent.job().await;
    assert_eq!(receiver.next().await.json()["event"], "queue.resumed");
}

#[tokio::test]
async fn a_finished_experiment_is_announced_once_and_again_after_more_repetitions() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    receiver.register(&admin, &["experiment.finished"]).await;
    let mut agent = Agent::start(&app, "rack").await;
    let (id, runs) = submit(&admin, &plan_with(&json!({"repetitions": 2, "name": "night"}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let _second = agent.job().await;
    admin.post(&format!("/api/v1/runs/{}/cancel", runs[1]), &()).await.ok();
    let event = receiver.next().await.json();
    assert_eq!(
        (&event["event"], &event["data"]["name"], &event["data"]["runs"]),
        (&json!("experiment.finished"), &json!("night"), &json!(2))
    );
    let ended = &event["data"]["ended"];
    assert_eq!(ended["cancelled"], 1, "{event}");
    let sum: u64 = ended.as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(sum, 2, "{event}");
    assert!(text(&event["data"]["url"]).ends_with(&format!("/experiments/{id}")), "{event}");

    let cancelled = agent.cancelled().await;
    assert_eq!(cancelled.to_string(), runs[1]);
    agent.send_message(&brewbench_wire::messages::AgentMessage::Done { run: cancelled });
    let imported = json!({"name": "theirs", "runs": [text(&admin.import(good()).await.ok().json()["runs"][0]["id"])]});
    admin.post("/api/v1/experiments/from-imports", &imported).await;
    admin.post(&format!("/api/v1/experiments/{id}/repetitions"), &json!({"repetitions": 1})).await.ok();
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let event = receiver.next().await.json();
    assert_eq!(
        (&event["data"]["experiment"], &event["data"]["runs"]),
        (&json!(id), &json!(3)),
        "imports are not announced"
    );
}

#[tokio::test]
async fn a_failed_delivery_is_retried_with_the_same_id_even_after_a_restart() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, secret) = receiver.register(&admin, &["queue.stalled"]).await;
    receiver.answer_with(&[500, 503]);
    alert_after_a_second(&admin).await;
    let _agent = stall_queue(&app, &admin).await;
    let first = receiver.next().await;
    let waiting = after_attempts(&app, &admin, id, 1).await;
    assert_eq!(
        (&waiting["attempts"], &waiting["status"], &waiting["error"]),
        (&json!(1), &json!(500), &json!("what is wrong"))
    );
    let wait_ms = waiting["next_at_ms"].as_i64().expect("a time") - waiting["last_at_ms"].as_i64().expect("a time");
    assert_eq!(wait_ms, 5_000);
    make_due(&app).await;
    assert_eq!(receiver.next().await.header("webhook-id"), first.header("webhook-id"));
    after_attempts(&app, &admin, id, 2).await;
    let folder = app.stop().await;
    let app = App::on(folder, allow_loopback).await;
    let admin = admin.at(&app.url);
    let active = async || alerts(&admin).await.into_iter().find(|alert| alert["kind"] == "queue.stalled");
    app.until("the alert to stay active", active).await;
    make_due(&app).await;
    let third = receiver.next().await;
    assert!(third.is_signed_with(&secret) && third.body == first.body);
    assert_eq!(last_is(&app, &admin, id, "delivered").await["attempts"], 3);
    assert_eq!(deliveries(&admin, id).await.len(), 1, "the alert is not raised again after the restart");
}

#[tokio::test]
async fn a_delivery_that_always_fails_is_given_up() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, _) = receiver.register(&admin, &["queue.stalled"]).await;
    receiver.answer_with(&[500; 7]);
    alert_after_a_second(&admin).await;
    let _agent = stall_queue(&app, &admin).await;
    for attempts in 1..=7 {
        receiver.next().await;
        after_attempts(&app, &admin, id, attempts).await;
        make_due(&app).await;
    }
    assert_eq!(last_is(&app, &admin, id, "given_up").await["next_at_ms"], Value::Null);
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_a_test_is_sent_once() {
    let app = App::with(allow_loopback).await;
    let admin = app.admin().await;
    let mut receiver = Receiver::start().await;
    let (id, secret) = receiver.register(&admin, &[]).await;
    receiver.answer_with(&[307]);
    let sent = admin.post(&format!("/api/v1/webhooks/{id}/test"), &()).await.ok().json();
    assert_eq!(
        (&sent["state"], &sent["status"], &sent["error"]),
        (&json!("given_up"), &json!(307), &json!("redirects are not followed"))
    );
    assert!(receiver.next().await.is_signed_with(&secret));
    let sent = admin.post(&format!("/api/v1/webhooks/{id}/test"), &()).await.ok().json();
    assert_eq!((&sent["state"], &sent["attempts"]), (&json!("delivered"), &json!(1)));
    assert_eq!(receiver.next().await.json()["event"], "test");
    assert!(receiver.requests.try_recv().is_err(), "the redirect is not followed");
}

#[tokio::test]
async fn private_addresses_are_refused_by_default() {
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
        let error = admin.post("/api/v1/webhooks", &json!({"url": url})).await.refused(422);
        assert!(error.starts_with("url: "), "{url}: {error}");
    }
    // Names are resolved when something is sent.
    let created = admin.post("/api/v1/webhooks", &json!({"url": "https://localhost:9/"})).await.ok().json();
    let path = format!("/api/v1/webhooks/{}/test", created["webhook"]["id"]);
    let sent = admin.post(&path, &()).await.ok().json();
    assert_eq!((&sent["state"], &sent["status"]), (&json!("given_up"), &Value::Null));
    assert!(text(&sent["error"]).contains("is not on the public internet"), "{sent}");
    admin
        .post("/api/v1/webhooks", &json!({"url": "https://hooks.example.com/", "events": ["test"]}))
        .await
        .refused(422);
}

#[tokio::test]
async fn a_secret_is_shown_once_and_never_in_lists_or_the_log() {
    let app = App::with(allow_loopback).await;
    let (admin, pages) = (app.admin().await, app.signed_in(Role::Admin).await.in_browser());
    let receiver = Receiver::start().await;
    let (id, secret) = receiver.register(&admin, &["agent.disconnected"]).await;
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
        let answer = if path.starts_with("/api") { admin.get(path).await.ok() } else { pages.get(path).await.ok() };
        assert!(!answer.text().contains(&secret), "{path}");
    }
    let log = admin.get("/api/v1/audit?action=webhook%20added").await.ok().json();
    let object = text(&log["entries"][0]["object"]);
    assert_eq!(format!("{object}/hook"), receiver.url, "the path of a URL may be a secret");
}

#[tokio::test]
async fn webhooks_are_added_tested_and_removed_by_form_and_by_command() {
    let app = App::with(allow_loopback).await;
    let (admin, pages) = (app.admin().await, app.signed_in(Role::Admin).await.in_browser());
    let mut receiver = Receiver::start().await;
    let refused =
        pages.form("/settings/webhooks", &[("url", "ftp://a.example/"), ("event", "agent.disconnected")]).await;
    assert!(refused.status.as_u16() == 422 && refused.text().contains("must begin with https"), "{}", refused.text());
    let created =
        pages.form("/settings/webhooks", &[("url", receiver.url.as_str()), ("event", "agent.disconnected")]).await;
    assert!(created.status.as_u16() == 201 && created.text().contains("whsec_"), "{}", created.text());
    pages.form("/settings/webhooks/1/test", &[]).await;
    receiver.next().await;
    assert!(pages.get("/settings/webhooks/1").await.ok().text().contains("delivered"));
    assert!(pages.get("/settings/webhooks/1/remove").await.ok().text().contains("Remove this webhook?"));
    pages.form("/settings/webhooks/1/remove", &[]).await;
    assert_eq!(admin.get("/api/v1/webhooks").await.ok().json(), json!({"webhooks": []}));

    let run = async |arguments: &[&str]| as_user(&app, admin.secret(), arguments).await;
    assert!(run(&["webhook", "list"]).await.ok().starts_with("no webhooks"));
    let secret = run(&["webhook", "add", &receiver.url, "--event", "agent.disconnected", "--event", "agent.connected"])
        .await
        .ok();
    assert!(secret.starts_with("whsec_"), "{secret}");
    run(&["webhook", "test", "2"]).await.ok();
    assert!(receiver.next().await.is_signed_with(secret.trim()));
    receiver.answer_with(&[404]);
    assert!(run(&["webhook", "test", "2"]).await.refused(1).contains("status 404"));
    assert!(run(&["webhook", "list"]).await.ok().contains("agent.disconnected, agent.connected"));
    let sent = run(&["webhook", "deliveries", "2"]).await.ok();
    assert!(sent.contains("delivered") && sent.contains("given up") && sent.contains("what is wrong"), "{sent}");
    run(&["webhook", "remove", "2"]).await.ok();
    run(&["webhook", "remove", "2"]).await.refused(1);
}

#[tokio::test]
async fn the_alert_rule_is_set_by_form_and_by_command_and_audited() {
    let app = App::start().await;
    let (admin, pages) = (app.admin().await, app.signed_in(Role::Admin).await.in_browser());
    let run = async |arguments: &[&str]| as_user(&app, admin.secret(), arguments).await;
    assert!(run(&["alert"]).await.ok().starts_with("no active alerts"));
    assert!(run(&["alert", "rule"]).await.ok().contains("disconnected for 5 min"));
    pages.form("/settings/alerts", &[("agent_away", "2.5"), ("queue_standstill", "30")]).await;
    let rule = admin.get("/api/v1/alert-rule").await.ok().json();
    assert_eq!((&rule["agent_away_s"], &rule["queue_standstill_s"]), (&json!(150), &json!(1_800)));
    let rule_text = run(&["alert", "rule", "--agent-away", "1h"]).await.ok();
    assert!(rule_text.contains("disconnected for 1 h") && rule_text.contains("not moved for 30 min"), "{rule_text}");
    admin.put("/api/v1/alert-rule", &json!({"agent_away_s": 0, "queue_standstill_s": 1})).await.refused(422);
    let log = admin.get("/api/v1/audit?action=alert%20rule%20set").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2), "{log}");
}
