//! Managing agents: availability, names, labels, removal, keys, and the doctor.

use std::{os::unix::fs::PermissionsExt, path::Path};

use axum::{
    Router,
    extract::{Request, State},
};
use brewbench::auth::model::Role;
use brewbench_wire::{hex, messages::ServerMessage};
use reqwest::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::{net::TcpListener, process::Command};
use url::Url;

use crate::harness::{
    Actor, Agent, Answer, App, PATIENCE,
    agent::outcome,
    program::{Output, Running, Tools, as_user, brewbench},
    submit::{plan_with, reaches, retry_of, submit, submit_one, text},
    summaries::good,
};

async fn set_availability(admin: &Actor, name: &str, availability: &str) -> Value {
    let path = format!("/api/v1/agents/{name}/availability");
    admin.put(&path, &json!({"availability": availability})).await.ok().json()
}

async fn listed_agent(who: &Actor, name: &str) -> Option<Value> {
    let list = who.get("/api/v1/agents").await.ok().json();
    list["agents"].as_array().expect("a list").iter().find(|agent| agent["name"] == name).cloned()
}

/// The actions on agents in the audit log with their agents, newest first.
async fn agent_actions(admin: &Actor) -> Vec<(String, String)> {
    let log = admin.get("/api/v1/audit?limit=200").await.ok().json();
    let entries = log["entries"].as_array().expect("entries").iter();
    let entries = entries.map(|entry| (text(&entry["action"]), text(&entry["object"])));
    entries.filter(|(what, _)| what.starts_with("agent ")).collect()
}

#[tokio::test]
async fn a_drained_agent_finishes_its_run_and_gets_no_more_until_it_is_enabled() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&admin, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    let drained = set_availability(&admin, "rack", "drained").await;
    assert_eq!((&drained["availability"], &drained["connected"]), (&json!("drained"), &json!(true)));
    agent.finish(&job, &good()).await;
    assert_eq!(admin.run(&runs[0]).await["phase"], "finished");
    app.until("it to be idle", async || {
        let queue = admin.get("/api/v1/queue").await.ok().json();
        (queue["waiting"][0]["reason"] == "drained").then_some(())
    })
    .await;
    assert_eq!(admin.run(&runs[1]).await["phase"], "queued");
    set_availability(&admin, "rack", "enabled").await;
    assert_eq!(agent.job().await.run.to_string(), runs[1]);
    assert_eq!(
        agent_actions(&admin).await[..2],
        [("agent enabled".to_owned(), "rack".to_owned()), ("agent drained".to_owned(), "rack".to_owned())]
    );
}

#[tokio::test]
async fn a_drained_agent_checks_no_scripts_and_stays_drained_after_a_reconnect() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    set_availability(&admin, "rack", "drained").await;
    agent.disconnect();
    agent.connect(&app).await.expect("a welcome");
    let scenario = json!({"name": "mine", "script": "invalid script"});
    let added = admin.post("/api/v1/scenarios", &scenario).await.ok().json();
    assert_eq!(added["check"], Value::Null, "no agent checked it: {added}");
    assert_eq!(listed_agent(&admin, "rack").await.expect("an agent")["availability"], "drained");
}

#[tokio::test]
async fn a_disabled_agent_is_disconnected_and_its_run_goes_to_another() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&admin).await;
    let job = agent.job().await;
    let mut other = Agent::start(&app, "b").await;
    set_availability(&admin, "a", "disabled").await;
    assert_eq!(agent.cancelled().await, job.run);
    assert_eq!(agent.receive().await, None);
    let lost = reaches(&app, &admin, &id, "lost").await;
    assert_eq!(lost["error"], "its agent was disabled");
    assert_eq!(text(&retry_of(&admin, &id).await.expect("a retry")["id"]), other.job().await.run.to_string());
    let refused = agent.connect(&app).await.expect_err("a refusal");
    assert!(refused.contains("403"), "{refused}");
    let error = agent.send(&outcome(&job, &good())).await.refused(403);
    assert!(error.contains("disabled by token admin"), "{error}");
    set_availability(&admin, "a", "enabled").await;
    agent.connect(&app).await.expect("a welcome");
}

#[tokio::test]
async fn an_experiment_stays_on_one_agent_until_it_is_disabled() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut poor = Agent::start_with(&app, "a-poor", |hello| hello.targets.truncate(1)).await;
    let mut rich = Agent::start(&app, "rich").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2}));
    let (experiment, runs) = submit(&admin, &plan).await;
    let first = rich.job().await;
    assert_eq!(first.run.to_string(), runs[0], "only this agent can do all of its runs");
    // The other agent does another experiment's run; the rest of the first experiment waits.
    let other = submit_one(&admin).await;
    let job = poor.job().await;
    assert_eq!(job.run.to_string(), other);
    poor.finish(&job, &good()).await;
    rich.finish(&first, &good()).await;
    let _second = rich.job().await;
    rich.disconnect();
    let away = app
        .until("the agent to be away", async || {
            let queue = admin.get("/api/v1/queue").await.ok().json();
            (queue["waiting"][0]["reason"] == "away").then_some(queue)
        })
        .await;
    assert!(text(&away["waiting"][0]["message"]).contains("is measured on rich, which is not connected"), "{away}");
    set_availability(&admin, "rich", "disabled").await;
    let taken_over = poor.job().await;
    assert_eq!(taken_over.spec.target, "fast", "the only target that it offers");
    assert_eq!(admin.run(&taken_over.run.to_string()).await["experiment"], experiment);
}

#[tokio::test]
async fn admins_manage_agents_on_their_pages() {
    let app = App::start().await;
    let (admin, viewer) =
        (app.signed_in(Role::Admin).await.in_browser(), app.signed_in(Role::Viewer).await.in_browser());
    let mut agent = Agent::start(&app, "rack 1").await;
    let page = async |who: &Actor| who.get("/agents/rack%201").await.ok().text();
    let offered = page(&admin).await;
    for action in ["/drain", "/disable", "/remove", "/revoke", "/rename", "/labels", "/change-key"] {
        assert!(offered.contains(&format!("/agents/rack%201{action}\"")), "{action}: {offered}");
    }
    assert!(!page(&viewer).await.contains("/agents/rack%201/"), "a viewer has no actions");
    let done = admin.form("/agents/rack%201/drain", &[]).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/agents/rack%201"));
    let drained = page(&viewer).await;
    assert!(drained.contains("Drained by admin") && drained.contains("it gets no runs"), "{drained}");
    admin.form("/agents/rack%201/labels", &[("labels", "arm, rack,,arm")]).await;
    let list = viewer.get("/agents").await.ok().text();
    assert!(list.contains(r#"<a href="/agents?label=arm">arm</a>"#), "{list}");
    assert!(viewer.get("/agents?label=arm").await.ok().text().contains("/agents/rack%201\""));
    assert!(viewer.get("/agents?label=x").await.ok().text().contains("No agents with this label."));

    let question = admin.get("/agents/rack%201/disable").await.ok().text();
    assert!(question.contains("Disable this agent?") && question.contains("drain it instead"), "{question}");
    admin.form("/agents/rack%201/disable", &[]).await;
    assert_eq!(agent.receive().await, None);
    assert!(page(&viewer).await.contains("it may not connect"));
    assert_eq!(admin.get("/agents/rack%201/disable").await.status, StatusCode::CONFLICT);
    assert_eq!(admin.get("/agents/rack%201/disable").await.status, StatusCode::CONFLICT);
    admin.form("/agents/rack%201/enable", &[]).await;
    let renamed = admin.form("/agents/rack%201/rename", &[("name", "rack/2")]).await;
    assert_eq!(renamed.header("location"), "/agents/rack%2F2", "{}", renamed.text());
    let question = admin.get("/agents/rack%2F2/remove").await.ok().text();
    assert!(question.contains("Remove this agent?") && question.contains("stay, under its name"), "{question}");
    assert_eq!(admin.form("/agents/rack%2F2/remove", &[]).await.header("location"), "/agents");
    assert_eq!(admin.get("/agents/rack%2F2").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn labels_are_sorted_and_invalid_ones_are_refused() {
    let app = App::start().await;
    let admin = app.admin().await;
    app.key("rack").await;
    let labels = async |labels: Value| admin.put("/api/v1/agents/rack/labels", &json!({"labels": labels})).await;
    assert_eq!(labels(json!(["rack 2", "arm"])).await.ok().json()["labels"], json!(["arm", "rack 2"]));
    assert!(labels(json!(["a,b"])).await.refused(422).starts_with("labels: "));
    assert_eq!(labels(json!([])).await.ok().json()["labels"], json!([]));
    admin.put("/api/v1/agents/nobody/labels", &json!({"labels": []})).await.refused(404);
    admin.put("/api/v1/agents/nobody/availability", &json!({"availability": "drained"})).await.refused(404);
    let error = admin.put("/api/v1/agents/rack/availability", &json!({"availability": "tired"})).await.refused(422);
    assert!(error.contains("tired") && error.contains("drained"), "{error}");
}

#[tokio::test]
async fn an_agent_is_renamed_with_its_runs_unless_it_is_busy() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "old").await;
    app.key("taken").await;
    let (experiment, runs) = submit(&admin, &plan_with(&json!({"agent": "old", "repetitions": 2}))).await;
    let job = agent.job().await;
    let rename = async |new: &str| admin.put("/api/v1/agents/old/name", &json!({"name": new})).await;
    assert!(rename("new").await.refused(409).contains("is busy"));
    set_availability(&admin, "old", "drained").await;
    agent.finish(&job, &good()).await;
    assert!(rename("taken").await.refused(409).contains("already"));
    rename(" ").await.refused(422);
    assert_eq!(rename("new").await.ok().json()["name"], "new");
    assert_eq!(agent.receive().await, None, "it must reconnect");
    set_availability(&admin, "new", "enabled").await;
    agent.name = "new".to_owned();
    agent.connect(&app).await.expect("a welcome by its new name");
    assert_eq!(agent.job().await.run.to_string(), runs[1], "its queued run still waits for it");
    assert_eq!(admin.run(&runs[0]).await["agent"], "new");
    let plan = &admin.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json()["experiment"]["plan"];
    assert_eq!(plan["agent"], "new");
    rename("again").await.refused(404);
}

#[tokio::test]
async fn a_removed_agent_is_disconnected_its_runs_stay_and_its_name_is_free() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&admin).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    admin.delete("/api/v1/agents/rack").await.ok();
    assert_eq!(agent.close_code().await, Some(1001));
    assert_eq!(agent.connect(&app).await, Err("401".to_owned()));
    assert_eq!(admin.run(&id).await["agent"], "rack");
    assert_eq!(listed_agent(&admin, "rack").await, None);
    admin.delete("/api/v1/agents/rack").await.refused(404);
    app.key("shelf").await;
    let renamed = admin.put("/api/v1/agents/shelf/name", &json!({"name": "rack"})).await;
    assert!(renamed.refused(409).contains("removed one"), "its runs would be those of another agent");
    admin.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.ok();
    assert!(listed_agent(&admin, "rack").await.is_some_and(|agent| agent["about"].is_null()), "a new one");
    assert_eq!(admin.get("/api/v1/runs?agent=rack").await.ok().json()["runs"][0]["id"], json!(id));
    admin.post("/api/v1/agent-keys", &json!({"name": "rack"})).await.refused(409);
}

#[tokio::test]
async fn another_process_with_the_same_key_is_refused_and_the_first_keeps_its_run() {
    let app = App::start().await;
    let user = app.user().await;
    let mut first = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = first.job().await;
    let mut copy = Agent { name: "rack".to_owned(), ..Agent::disconnected(&app, "unused").await };
    copy.http = first.http.clone();
    copy.hello.machine.hostname = "rack-2".to_owned();
    let reason = copy.connect(&app).await.expect_err("refused");
    assert!(reason.contains("another process is connected with this agent's key, on rack-1"), "{reason}");
    first.finish(&job, &good()).await;
    assert_eq!(user.run(&id).await["phase"], "finished");
    // Once the first is gone, the other may connect.
    first.disconnect();
    copy.connect(&app).await.expect("a welcome");
}

fn new_key(key: &str) -> Value {
    json!({"key_sha256": hex(&Sha256::digest(key.as_bytes()))})
}

#[tokio::test]
async fn a_one_time_key_is_exchanged_once_and_grants_nothing_else() {
    let app = App::start().await;
    let admin = app.admin().await;
    let newcomer = app.anonymous().with_secret(&app.one_time_key("rack").await);
    newcomer.get("/api/v1/agent/self").await.refused(401);
    newcomer.get("/api/v1/agent/channel").await.refused(401);
    newcomer.post("/api/v1/agent/enrolment", &json!({"key_sha256": "short"})).await.refused(422);
    // The response may get lost, so the same request may come twice.
    for _ in 0..2 {
        newcomer.post("/api/v1/agent/enrolment", &new_key("bba_mine")).await.ok();
    }
    let error = newcomer.post("/api/v1/agent/enrolment", &new_key("bba_other")).await.refused(409);
    assert!(error.contains("was already used"), "{error}");
    let own = app.anonymous().with_secret("bba_mine");
    assert_eq!(own.get("/api/v1/agent/self").await.ok().json(), json!({"name": "rack"}));
    own.post("/api/v1/agent/enrolment", &new_key("bba_other")).await.refused(401);
    assert_eq!(agent_actions(&admin).await[0], ("agent enrolled".to_owned(), "rack".to_owned()));

    let late = app.anonymous().with_secret(&app.one_time_key("late").await);
    let expire = "update agent set one_time_until = 1 where name = 'late'";
    sqlx::query(expire).execute(&app.state.db.write).await.expect("a week later");
    late.post("/api/v1/agent/enrolment", &new_key("bba_late")).await.refused(401);
    let revoked = app.anonymous().with_secret(&app.one_time_key("revoked").await);
    admin.delete("/api/v1/agent-keys/revoked").await.ok();
    revoked.post("/api/v1/agent/enrolment", &new_key("bba_revoked")).await.refused(401);
}

#[tokio::test]
async fn a_key_rotation_keeps_the_old_key_until_the_new_one_is_used() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "rack").await;
    let requested = admin.post("/api/v1/agent-keys/rack/change", &()).await.ok().json();
    assert!(requested["rotation_requested_at_ms"].is_i64(), "{requested}");
    assert_eq!(agent.receive().await, Some(ServerMessage::ChangeKey));
    // It reconnects before it has rotated the key, so the request is repeated.
    agent.disconnect();
    agent.connect(&app).await.expect("a welcome");
    assert_eq!(agent.receive().await, Some(ServerMessage::ChangeKey));
    let (old, new) = (agent.http.clone(), agent.http.clone().with_secret("bba_new"));
    old.put("/api/v1/agent/key", &new_key("bba_new")).await.ok();
    old.get("/api/v1/agent/self").await.ok();
    new.get("/api/v1/agent/self").await.ok();
    old.get("/api/v1/agent/self").await.refused(401);
    let listed = listed_agent(&admin, "rack").await.expect("an agent");
    assert_eq!(listed["rotation_requested_at_ms"], Value::Null);
    assert_eq!(agent_actions(&admin).await[0], ("agent key rotated".to_owned(), "rack".to_owned()));
    // The open connection stays, and its run counts.
    let id = submit_one(&admin).await;
    let job = agent.job().await;
    agent.http = new;
    agent.finish(&job, &good()).await;
    assert_eq!(admin.run(&id).await["phase"], "finished");

    app.one_time_key("fresh").await;
    let error = admin.post("/api/v1/agent-keys/fresh/change", &()).await.refused(409);
    assert!(error.contains("no key of its own"), "{error}");
    admin.post("/api/v1/agent-keys/nobody/change", &()).await.refused(404);
}

fn agent_program(app: &App, state: &Path, tools: &Tools, more: &[&str]) -> Command {
    let mut command = brewbench(&["agent", "--server", app.url.as_str()]);
    command.args(more).arg("--state").arg(state).arg("--k6").arg(&tools.k6);
    command
}

async fn wait_for_agent(app: &App, admin: &Actor) {
    app.until("the agent", async || listed_agent(admin, "rack").await.filter(|agent| agent["connected"] == true)).await;
}

fn stored_key(state: &Path) -> String {
    let stored: Value = serde_json::from_slice(&std::fs::read(state.join("key")).expect("a key")).expect("JSON");
    text(&stored["key"])
}

#[tokio::test]
async fn a_real_agent_creates_stores_and_rotates_its_key() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let admin = app.admin().await;
    let folder = tempfile::tempdir().expect("a folder");
    let one_time = app.one_time_key("rack").await;
    let mut agent = Running::start(agent_program(&app, folder.path(), &tools, &["--key", &one_time]));
    wait_for_agent(&app, &admin).await;
    let first = stored_key(folder.path());
    assert!(first.starts_with("bba_") && first != one_time);
    let mode = std::fs::metadata(folder.path().join("key")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    admin.post("/api/v1/agent-keys/rack/change", &()).await.ok();
    app.until("another key", async || {
        let agent = listed_agent(&admin, "rack").await?;
        (agent["rotation_requested_at_ms"].is_null() && stored_key(folder.path()) != first).then_some(())
    })
    .await;
    app.anonymous().with_secret(&first).get("/api/v1/agent/self").await.refused(401);
    let (_, runs) = submit(&admin, &plan_with(&json!({"targets": ["rust-hyper"]}))).await;
    reaches(&app, &admin, &runs[0], "finished").await;

    agent.signal(nix::sys::signal::Signal::SIGTERM);
    agent.ended(PATIENCE).await;
    // Its own key is enough from now on, and a leftover one-time key is ignored.
    for more in [&[][..], &["--key", &one_time]] {
        let mut again = Running::start(agent_program(&app, folder.path(), &tools, more));
        wait_for_agent(&app, &admin).await;
        again.signal(nix::sys::signal::Signal::SIGTERM);
        again.ended(PATIENCE).await;
    }
    let other = tempfile::tempdir().expect("a folder");
    let error = Output::of(agent_program(&app, other.path(), &tools, &["--key", &one_time])).await.refused(1);
    assert!(error.contains("was already used"), "{error}");
    let error = Output::of(agent_program(&app, other.path(), &tools, &[])).await.refused(1);
    assert!(error.contains("agent-key new NAME"), "{error}");
}

#[tokio::test]
async fn commands_manage_agents() {
    let app = App::start().await;
    let admin = app.admin().await;
    let token = admin.secret().to_owned();
    app.key("rack").await;
    let run = async |arguments: &[&str]| as_user(&app, &token, arguments).await;
    let done = run(&["fleet", "drain", "rack"]).await;
    assert!(done.err.contains("rack is drained"), "{}", done.err);
    let disabled = run(&["fleet", "disable", "rack", "--json"]).await.json();
    assert_eq!(disabled["availability"], "disabled");
    assert!(run(&["fleet", "list"]).await.ok().contains("disabled"));
    run(&["fleet", "enable", "rack"]).await.ok();
    run(&["fleet", "label", "rack", "arm", "old"]).await.ok();
    assert!(run(&["fleet", "list", "--label", "arm"]).await.ok().contains("arm, old"));
    assert!(!run(&["fleet", "list", "--label", "new"]).await.ok().contains("rack"));
    run(&["fleet", "rename", "rack", "shelf"]).await.ok();
    let done = run(&["agent-key", "change", "shelf"]).await;
    assert!(done.err.contains("shelf rotates its key the next time it connects"), "{}", done.err);
    run(&["fleet", "forget", "shelf"]).await.ok();
    let error = run(&["fleet", "forget", "shelf"]).await.refused(1);
    assert!(error.contains("shelf"), "{error}");
}

async fn doctor(server: &str, key: &str, state: &Path, k6: &Path) -> Output {
    let mut command = brewbench(&["agent", "doctor", "--server", server, "--key", key, "--json"]);
    command.arg("--state").arg(state).arg("--k6").arg(k6);
    Output::of(command).await
}

fn finding<'a>(findings: &'a Value, what: &str) -> &'a Value {
    let found = findings.as_array().expect("findings").iter().find(|finding| finding["check"] == what);
    found.unwrap_or_else(|| panic!("no finding about {what}: {findings}"))
}

#[tokio::test]
async fn the_doctor_reports_problems_and_remedies_and_exits_with_1() {
    let app = App::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let key = app.key("rack").await;
    let done = doctor(app.url.as_str(), &key, folder.path(), Path::new("/nonexistent/k6")).await;
    assert_eq!(done.code, Some(1), "{}", done.err);
    let findings: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(finding(&findings, "k6")["rank"], "bad");
    assert!(text(&finding(&findings, "k6")["observed"]).contains("go install"), "{findings}");
    for fine in ["server", "clock", "key", "WebSocket"] {
        assert_eq!(finding(&findings, fine)["rank"], "good", "{findings}");
    }
    for what in ["targets", "control groups", "cores", "frequency", "ports", "open files", "state folder"] {
        assert!(finding(&findings, what)["observed"].is_string(), "{findings}");
    }
    assert!(!folder.path().join("key").exists(), "the doctor exchanges no key");

    let done = doctor("http://127.0.0.1:1/", &key, folder.path(), Path::new("/nonexistent/k6")).await;
    let findings: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(finding(&findings, "server")["rank"], "bad");
    let done = doctor(app.url.as_str(), "bba_wrong", folder.path(), Path::new("/nonexistent/k6")).await;
    let findings: Value = serde_json::from_str(&done.out).expect("JSON");
    assert!(text(&finding(&findings, "key")["remedy"]).contains("agent-key new"), "{findings}");
}

/// Passes requests on to a server without the headers of an upgrade, as a proxy that knows none.
async fn passed_on(State(server): State<Url>, request: Request) -> (StatusCode, String) {
    let mut onward = Actor::anonymous(&server).request(request.method(), request.uri().path());
    if let Some(key) = request.headers().get("authorization") {
        onward = onward.header("authorization", key);
    }
    let answer = Answer::to(onward).await;
    (answer.status, answer.text())
}

#[tokio::test]
async fn the_doctor_reports_a_proxy_that_passes_no_websockets() {
    let app = App::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let key = app.key("rack").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let proxy = format!("http://{}/", listener.local_addr().expect("an address"));
    let router = Router::new().fallback(passed_on).with_state(app.url.clone());
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let done = doctor(&proxy, &key, folder.path(), Path::new("/nonexistent/k6")).await;
    serving.abort();
    let findings: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(finding(&findings, "key")["rank"], "good", "{findings}");
    assert_eq!(finding(&findings, "WebSocket")["rank"], "bad", "{findings}");
}

#[tokio::test]
async fn the_doctor_succeeds_without_problems() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let one_time = app.one_time_key("rack").await;
    let mut command = brewbench(&["agent", "doctor", "--server", app.url.as_str(), "--key", &one_time]);
    command.arg("--state").arg(folder.path()).arg("--k6").arg(&tools.k6);
    let out = Output::of(command).await.ok();
    assert!(out.contains("k6") && out.contains("exchanged at the first start"), "{out}");
    let spent = app.anonymous().with_secret(&one_time).post("/api/v1/agent/enrolment", &new_key("bba_x")).await;
    spent.ok();
}

/// A copied key must not take over the agent by omitting which process uses it.
#[tokio::test]
async fn a_process_without_an_id_is_refused_while_another_one_uses_the_key() {
    let app = App::start().await;
    let mut first = Agent::start(&app, "rack").await;
    let mut copy = Agent { name: "rack".to_owned(), ..Agent::disconnected(&app, "unused").await };
    (copy.http, copy.hello.life) = (first.http.clone(), None);
    let reason = copy.connect(&app).await.expect_err("refused");
    assert!(reason.contains("another process is connected with this agent's key"), "{reason}");
    first.disconnect();
    copy.connect(&app).await.expect("a welcome");
}
