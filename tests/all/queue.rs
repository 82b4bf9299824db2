//! The queue: order, wait reasons, expected starts, and runs moved to the front.

use brewbench::auth::model::Role;
use brewbench_cli::events::Events;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    program::as_user,
    submit::{plan_with, submit, text},
    summaries::good,
};

async fn queue(who: &Actor) -> Value {
    who.get("/api/v1/queue").await.ok().json()
}

/// The queued runs in their order.
fn order(queue: &Value) -> Vec<String> {
    queue["waiting"].as_array().expect("a list").iter().map(|waiting| text(&waiting["run"]["id"])).collect()
}

fn reasons(queue: &Value) -> Vec<&str> {
    queue["waiting"].as_array().expect("a list").iter().filter_map(|waiting| waiting["reason"].as_str()).collect()
}

/// Waits until all queued runs have this wait reason; returns the queue.
async fn all_wait(app: &App, who: &Actor, reason: &str) -> Value {
    app.until(reason, async || {
        let queue = queue(who).await;
        let reasons = reasons(&queue);
        (!reasons.is_empty() && reasons.iter().all(|known| *known == reason)).then_some(queue)
    })
    .await
}

#[tokio::test]
async fn queued_runs_have_a_position_a_wait_reason_and_an_expected_start() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let load = json!({"kind": "vus", "vus": 2, "duration_s": 10.0});
    let (experiment, runs) = submit(&user, &plan_with(&json!({"repetitions": 3, "load": load, "name": "night"}))).await;
    let job = agent.job().await;
    assert_eq!(job.run.to_string(), runs[0]);
    let busy = all_wait(&app, &user, "busy").await;
    assert_eq!((&busy["total"], order(&busy)), (&json!(2), runs[1..].to_vec()));
    assert_eq!(busy["working"][0]["id"], runs[0]);
    let first = &busy["waiting"][0];
    let expected = json!({"position": 1, "message": "rack is busy", "agents": ["rack"], "experiment_name": "night",
        "required_agent": null, "priority": 0});
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&first[field], value, "{field}: {first}");
    }
    let starts = |place: usize| busy["waiting"][place]["starts_in_s"].as_f64().expect("a time");
    assert!(starts(0) > 0.0 && starts(0) <= 11.5, "{busy}");
    assert!((starts(1) - starts(0) - 11.5).abs() < 0.01, "the planned duration of a run: {busy}");

    user.post(&format!("/api/v1/experiments/{experiment}/pause"), &()).await.ok();
    let paused = all_wait(&app, &user, "paused").await;
    assert!(text(&paused["waiting"][0]["message"]).contains("paused by token submit"), "{paused}");
    assert_eq!(paused["waiting"][0]["starts_in_s"], Value::Null);
    user.post(&format!("/api/v1/experiments/{experiment}/resume"), &()).await.ok();
    agent.disconnect();
    let away = all_wait(&app, &user, "away").await;
    let why = text(&away["waiting"][0]["message"]);
    assert!(why.starts_with("its experiment is measured on rack, which is not connected"), "{why}");
}

#[tokio::test]
async fn runs_that_no_agent_can_do_have_the_obstacle_as_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let mut able = Agent::start_with(&app, "able", |hello| hello.any_scenario = true).await;
    let script = "export default function () {}";
    user.post("/api/v1/scenarios", &json!({"name": "mine", "script": script})).await.ok();
    app.admin().await.put("/api/v1/agents/able/availability", &json!({"availability": "drained"})).await.ok();
    for change in [
        json!({"targets": ["slow"]}),
        json!({"sizes": ["4/8GiB"]}),
        json!({"scenario": "mine"}),
        json!({"agent": "able"}),
    ] {
        submit(&user, &plan_with(&change)).await;
    }
    all_wait(&app, &user, "drained").await;
    able.disconnect();
    let _small = Agent::start_with(&app, "small", |hello| {
        hello.machine.cores = 2;
        hello.targets.truncate(1);
    })
    .await;
    let queue = app
        .until("all agents to be away", async || {
            let queue = queue(&user).await;
            (reasons(&queue).last() == Some(&"away")).then_some(queue)
        })
        .await;
    assert_eq!(reasons(&queue), ["not_offered", "does_not_fit", "script_not_taken", "away"]);
    let sentences: Vec<_> = (0..4).map(|place| text(&queue["waiting"][place]["message"])).collect();
    assert_eq!(sentences[0], "no connected agent offers slow");
    assert!(sentences[1].contains("small has 2 cores"), "{sentences:?}");
    assert!(sentences[2].contains("--any-scenario"), "{sentences:?}");
    assert_eq!(sentences[3], "it requires agent able, which is not connected");
}

#[tokio::test]
async fn a_run_moved_to_the_front_is_next() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, first) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    let (later, second) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    let put = user.post(&format!("/api/v1/experiments/{later}/next"), &()).await.ok().json();
    assert_eq!(order(&put), [&second[..], &first[1..]].concat());
    let put = user.post(&format!("/api/v1/runs/{}/next", first[2]), &()).await.ok().json();
    assert_eq!(order(&put), [&first[2..], &second[..], &first[1..2]].concat());
    assert!(put["waiting"][0]["priority"].as_i64() > put["waiting"][1]["priority"].as_i64(), "{put}");
    agent.finish(&job, &good()).await;
    let next = agent.job().await;
    assert_eq!(next.run.to_string(), first[2]);
    let error = user.post(&format!("/api/v1/runs/{}/next", first[2]), &()).await.refused(409);
    assert!(error.contains("is not waiting"), "{error}");
    user.post("/api/v1/runs/nothing/next", &()).await.refused(404);
    user.post("/api/v1/experiments/nothing/next", &()).await.refused(404);
    let log = app.admin().await.get("/api/v1/audit?action=run%20moved%20to%20front").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2), "{log}");
}

#[tokio::test]
async fn the_page_shows_the_queue_and_members_can_reorder_it() {
    let app = App::start().await;
    let (user, viewer) =
        (app.signed_in(Role::Member).await.in_browser(), app.signed_in(Role::Viewer).await.in_browser());
    let empty = viewer.get("/queue").await.ok().text();
    assert!(empty.contains("No queued runs.") && empty.contains(r#"href="/agents""#), "{empty}");
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"repetitions": 3, "name": "<night>"}));
    let (experiment, runs) = submit(&app.user().await, &plan).await;
    let _job = agent.job().await;
    let page = user.get("/queue").await.ok().text();
    for part in
        ["2 runs queued", "rack is busy", "&#60;night&#62;", "/queue/live", &format!("/runs/{}/cancel", runs[1])]
    {
        assert!(page.contains(part), "{part}: {page}");
    }
    let next = format!("/queue/runs/{}/next", runs[2]);
    assert!(page.contains(&next), "{page}");
    let read_only = viewer.get("/queue").await.ok().text();
    assert!(!read_only.contains("/next\"") && !read_only.contains("/cancel\""), "{read_only}");
    let done = user.form(&next, &[]).await;
    assert_eq!((done.status, done.header("location")), (StatusCode::SEE_OTHER, "/queue"));
    let order = order(&queue(&app.reader().await).await);
    assert_eq!(order, [runs[2].clone(), runs[1].clone()]);
    user.form(&format!("/queue/experiments/{experiment}/next"), &[]).await;
    agent.disconnect();
    let (reader, stuck) = (app.reader().await, "2 blocked until a user acts");
    all_wait(&app, &reader, "away").await;
    assert!(viewer.get("/queue").await.ok().text().contains(stuck));
}

/// Waits until a live page receives a text.
async fn shows(events: &mut Events, text: &str) {
    let shown = timeout(PATIENCE, async {
        while let Some(event) = events.next().await.expect("an event") {
            if event.data.contains(text) {
                return;
            }
        }
        panic!("it ended without {text:?}");
    });
    shown.await.unwrap_or_else(|_| panic!("timed out waiting for {text:?}"));
}

#[tokio::test]
async fn the_page_updates_with_runs_and_agents() {
    let app = App::start().await;
    let (viewer, admin) = (app.signed_in(Role::Viewer).await, app.admin().await);
    let mut agent = Agent::start(&app, "rack").await;
    let answer = viewer.request(&Method::GET, "/queue/live").send().await.expect("an answer");
    let mut page = Events::from_response(answer);
    shows(&mut page, "No queued runs.").await;
    submit(&admin, &plan_with(&json!({"repetitions": 2}))).await;
    let _job = agent.job().await;
    shows(&mut page, "rack is busy").await;
    admin.put("/api/v1/agents/rack/availability", &json!({"availability": "drained"})).await.ok();
    shows(&mut page, "rack is drained").await;
}

#[tokio::test]
async fn commands_show_and_reorder_the_queue() {
    let app = App::start().await;
    let user = app.user().await;
    let token = user.secret().to_owned();
    let run = async |arguments: &[&str]| as_user(&app, &token, arguments).await;
    assert_eq!(run(&["queue"]).await.ok(), "no queued runs\n");
    let mut agent = Agent::start(&app, "rack").await;
    let (_, first) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    let (later, second) = submit(&user, &plan_with(&json!({"targets": ["slow"]}))).await;
    let _job = agent.job().await;
    let shown = run(&["queue"]).await.ok();
    let end = |id: &str| id.rsplit('-').next().expect("a part").to_owned();
    assert!(shown.contains("rack is busy") && shown.contains(&end(&first[1])), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let put = run(&["queue", "next", &later, &end(&first[2]), "--json"]).await.json();
    assert_eq!(order(&put), [&second[..], &first[2..], &first[1..2]].concat());
    let error = run(&["queue", "next", "nothing"]).await.refused(1);
    assert!(error.contains("nothing"), "{error}");
}
