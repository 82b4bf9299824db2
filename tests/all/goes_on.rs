//! Experiments after submission: retries, pauses, more repetitions, adaptive repetitions, and knee searches.

use brewbench_wire::{
    job::Job,
    outcome::{Cause, Ended, IdleWaitResult, Outcome},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Agent, App,
        agent::outcome,
        program::as_user,
        submit::{plan_with, reaches, retry_of, submit, text},
        summaries::{good, good_with, scaled, target_down},
    },
    new_run::fill_in,
};

async fn fetch(user: &Actor, id: &str) -> Value {
    user.get(&format!("/api/v1/experiments/{id}")).await.ok().json()
}

/// Waits until an experiment is over; returns it.
async fn wait_until_over(app: &App, user: &Actor, id: &str) -> Value {
    let is_over = |full: &Value| full["progress"]["state"] == "finished";
    app.until("the end of an experiment", async || Some(fetch(user, id).await).filter(is_over)).await
}

/// Reports a job as failed.
async fn fail(agent: &Agent, job: &Job) {
    let ended = Ended::Failed { reason: "the port was taken".to_owned(), cause: Cause::Other };
    agent.end(Outcome { ended, summary: None, ..outcome(job, "") }).await;
}

#[tokio::test]
async fn failed_and_invalid_runs_are_retried_up_to_a_limit_and_retries_are_shown() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"retries": 2}))).await;
    let first = agent.job().await;
    fail(&agent, &first).await;
    let second = agent.job().await;
    let retry = user.run(&second.run.to_string()).await;
    assert_eq!((text(&retry["retry_of"]), &retry["repetition"]), (runs[0].clone(), &json!(1)));
    agent.finish(&second, &target_down()).await;
    assert_eq!(user.run(&second.run.to_string()).await["verdict"], "invalid");
    let third = agent.job().await;
    assert_eq!(text(&user.run(&third.run.to_string()).await["retry_of"]), second.run.to_string());
    fail(&agent, &third).await;
    let full = wait_until_over(&app, &user, &experiment).await;
    assert_eq!(retry_of(&user, &third.run.to_string()).await, None, "two retries, and no third");
    assert_eq!((&full["progress"]["total"], &full["progress"]["ended"]), (&json!(1), &json!(1)));
    let sentence = "2 runs were retried; the first: fast, repetition 1 failed (the port was taken)";
    assert_eq!(full["repeated"], sentence);
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains(sentence), "{page}");
    let shown = as_user(&app, user.secret(), &["experiment", "show", &experiment]).await.ok();
    assert!(shown.contains(sentence), "{shown}");
}

#[tokio::test]
async fn a_cell_that_is_invalid_for_the_same_reason_again_is_not_retried_again() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"retries": 2, "repetitions": 2}))).await;
    // A run and its retry, then the second repetition: what went wrong twice goes wrong again.
    for _ in 0..3 {
        let job = agent.job().await;
        agent.finish(&job, &target_down()).await;
    }
    let full = wait_until_over(&app, &user, &experiment).await;
    assert_eq!((runs.len(), full["runs"].as_array().map(Vec::len)), (2, Some(3)), "{full}");
    let states: Vec<_> = full["runs"].as_array().expect("runs").iter().map(|run| text(&run["verdict"])).collect();
    assert_eq!(states, ["invalid"; 3]);
}

#[tokio::test]
async fn a_script_that_k6_refuses_is_not_retried() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"retries": 2}))).await;
    let job = agent.job().await;
    let ended = Ended::Failed { reason: "k6 failed: no exported functions".to_owned(), cause: Cause::Script };
    agent.end(Outcome { ended, summary: None, ..outcome(&job, "") }).await;
    wait_until_over(&app, &user, &experiment).await;
    assert_eq!(user.run(&runs[0]).await["phase"], "failed");
    assert_eq!(retry_of(&user, &runs[0]).await, None);
}

#[tokio::test]
async fn cancelled_runs_and_runs_without_retries_are_not_retried() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, once) = submit(&user, &plan_with(&json!({"retries": 0}))).await;
    let job = agent.job().await;
    fail(&agent, &job).await;
    reaches(&app, &user, &once[0], "failed").await;
    let (_, cancelled) = submit(&user, &plan_with(&json!({}))).await;
    let job = agent.job().await;
    user.post(&format!("/api/v1/runs/{}/cancel", cancelled[0]), &()).await.ok();
    agent.end_cancelled(&job).await;
    assert_eq!(user.count_runs().await, 2);
}

#[tokio::test]
async fn a_paused_experiment_starts_no_runs_and_its_current_run_finishes() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    let first = agent.job().await;
    let path = format!("/api/v1/experiments/{experiment}");
    let paused = user.post(&format!("{path}/pause"), &()).await.ok().json();
    assert_eq!((&paused["progress"]["state"], paused["experiment"]["paused_by"].is_string()), (&json!("paused"), true));
    assert_eq!(user.post(&format!("{path}/pause"), &()).await.refused(409), "the experiment is already paused");
    agent.finish(&first, &good()).await;
    assert_eq!(user.run(&runs[0]).await["phase"], "finished");
    // Another experiment overtakes it.
    let (other, _) = submit(&user, &plan_with(&json!({}))).await;
    let job = agent.job().await;
    assert_eq!(text(&user.run(&job.run.to_string()).await["experiment"]), other);
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("no run starts until you resume") && page.contains("/resume"), "{page}");
    user.post(&format!("{path}/resume"), &()).await.ok();
    assert_eq!(user.post(&format!("{path}/resume"), &()).await.refused(409), "the experiment is not paused");
    agent.finish(&job, &good()).await;
    assert_eq!(agent.job().await.run.to_string(), runs[1]);
}

#[tokio::test]
async fn pages_and_commands_pause_resume_extend_and_cancel_and_are_audited() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, _) = submit(&user, &plan_with(&json!({}))).await;
    let command = async |arguments: &[&str]| as_user(&app, user.secret(), &[&["experiment"], arguments].concat()).await;
    assert!(command(&["pause", &experiment]).await.ok().contains("paused by"));
    command(&["resume", &experiment]).await.ok();
    let pages = user.clone().in_browser();
    let place = format!("/experiments/{experiment}");
    assert_eq!(fill_in(&pages, &format!("{place}/pause"), "").await.header("location"), place);
    fill_in(&pages, &format!("{place}/resume"), "").await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let path = format!("/api/v1{place}");
    assert_eq!(
        user.post(&format!("{path}/pause"), &()).await.refused(409),
        "the experiment is over and can't be paused"
    );
    let added = command(&["add", &experiment, "--repeat", "2", "--json"]).await.json();
    assert_eq!((&added["progress"]["total"], &added["experiment"]["plan"]["repetitions"]), (&json!(3), &json!(3)));
    assert!(pages.get(&format!("{place}/repetitions")).await.ok().text().contains("Each repetition adds 1 run"));
    fill_in(&pages, &format!("{place}/repetitions"), "repetitions=1").await;
    let repetitions: Vec<_> = fetch(&user, &experiment).await["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .map(|run| run["repetition"].clone())
        .collect();
    assert_eq!(repetitions, [1, 2, 3, 4]);
    for wrong in ["repetitions=0", "repetitions=many", "repetitions=99999"] {
        assert_eq!(fill_in(&pages, &format!("{place}/repetitions"), wrong).await.status.as_u16(), 422, "{wrong}");
    }
    let confirmation = pages.get(&format!("{place}/cancel")).await.ok().text();
    assert!(confirmation.contains("3 runs will be cancelled"), "{confirmation}");
    command(&["cancel", &experiment, "--yes"]).await.ok();
    assert_eq!(fetch(&user, &experiment).await["progress"]["state"], "finished");
    let log = admin.get("/api/v1/audit").await.ok().json();
    let actions: Vec<_> =
        log["entries"].as_array().expect("entries").iter().map(|entry| text(&entry["action"])).collect();
    for action in ["experiment paused", "experiment resumed", "repetitions added", "experiment cancelled"] {
        assert!(actions.iter().any(|known| known == action), "{action}: {actions:?}");
    }
}

/// Waits until an experiment whose runs have all ended has more runs or is over.
async fn wait_for_decision(app: &App, user: &Actor, before: &Value) {
    let id = text(&before["experiment"]["id"]);
    app.until("a decision", async || {
        let now = fetch(user, &id).await["progress"].clone();
        (now["state"] == "finished" || now["total"] != before["progress"]["total"]).then_some(())
    })
    .await;
}

/// Does jobs until the experiment is over: `fast` is 20 % faster, and results vary by up to four times `scatter`.
async fn do_all(app: &App, user: &Actor, agent: &mut Agent, id: &str, scatter: f64) -> Value {
    let mut done = 0_u32;
    loop {
        let now = fetch(user, id).await;
        if now["progress"]["state"] == "finished" {
            return now;
        }
        if now["progress"]["ended"] == now["progress"]["total"] {
            wait_for_decision(app, user, &now).await;
            continue;
        }
        let job = agent.job().await;
        done += 1;
        let faster = if job.spec.target == "fast" { 1.2 } else { 1.0 };
        let noise = 1.0 + scatter * f64::from(done * 7 % 5);
        agent.finish(&job, &scaled(faster * noise)).await;
    }
}

#[tokio::test]
async fn an_experiment_adds_repetitions_until_its_intervals_are_narrow() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let until = json!({"narrower_than": 0.05, "at_most": 7});
    let plan = plan_with(&json!({"targets": ["slow", "fast"], "repetitions": 2, "stopping_rule": until}));
    let (experiment, runs) = submit(&user, &plan).await;
    assert_eq!(runs.len(), 4);
    let full = do_all(&app, &user, &mut agent, &experiment, 0.001).await;
    let narrowing = &full["narrowing"];
    assert_eq!((&narrowing["repetitions"], full["runs"].as_array().map(Vec::len)), (&json!(4), Some(8)), "{narrowing}");
    let pair = &narrowing["pairs"][0];
    assert_eq!((&pair["target"], &pair["against"], &pair["state"]), (&json!("fast"), &json!("slow"), &json!("narrow")));
    assert!((pair["ratio"].as_f64().expect("a ratio") - 1.2).abs() < 0.02, "{pair}");
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("Adaptive repetitions") && page.contains("narrow enough"), "{page}");
    let shown = as_user(&app, user.secret(), &["experiment", "show", &experiment]).await.ok();
    assert!(shown.contains("1 of 1 interval narrower than 5%, after 4 of at most 7 repetitions"), "{shown}");

    let (experiment, _) = submit(&user, &plan).await;
    let full = do_all(&app, &user, &mut agent, &experiment, 0.2).await;
    assert_eq!(
        (&full["narrowing"]["repetitions"], &full["narrowing"]["pairs"][0]["state"]),
        (&json!(7), &json!("wide"))
    );
    user.post(&format!("/api/v1/experiments/{experiment}/repetitions"), &json!({"repetitions": 1})).await.ok();
}

#[tokio::test]
async fn a_cancelled_experiment_adds_no_repetitions() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let until = json!({"narrower_than": 0.0001, "at_most": 9});
    let plan = plan_with(&json!({"targets": ["slow", "fast"], "stopping_rule": until}));
    let (experiment, _) = submit(&user, &plan).await;
    let add = format!("/api/v1/experiments/{experiment}/repetitions");
    let refused = user.post(&add, &json!({"repetitions": 1})).await.refused(409);
    assert!(refused.starts_with("the experiment adds repetitions itself"), "{refused}");
    let first = agent.job().await;
    agent.finish(&first, &good()).await;
    let second = agent.job().await;
    user.post(&format!("/api/v1/experiments/{experiment}/cancel"), &()).await.ok();
    agent.end_cancelled(&second).await;
    let full = wait_until_over(&app, &user, &experiment).await;
    assert_eq!(full["progress"]["total"], 2, "no further block");
}

/// A valid summary with this p99, ms.
fn with_p99(p99: f64) -> String {
    let mut summary: Value = serde_json::from_str(&good_with("http_req_duration", "max", &json!(100.0))).expect("JSON");
    summary["metrics"]["http_req_duration"]["values"]["p(99)"] = json!(p99);
    summary.to_string()
}

/// Runs a knee search of `fast`, whose p99 is 10 ms up to the rate `knee` and 90 ms beyond; returns the experiment.
async fn search(app: &App, user: &Actor, agent: &mut Agent, knee: f64, changes: &Value) -> Value {
    let objective = json!({"objective": "p99<50ms, failures<1%", "from": 1_000, "to": 16_000, "duration_s": 1.0});
    let mut plan = plan_with(&json!({"knee": objective, "repetitions": 2}));
    for (name, value) in changes.as_object().expect("fields") {
        plan[name] = value.clone();
    }
    plan.as_object_mut().expect("fields").remove("load");
    let (experiment, _) = submit(user, &plan).await;
    loop {
        let now = fetch(user, &experiment).await;
        if now["progress"]["state"] == "finished" {
            return now;
        }
        if now["progress"]["ended"] == now["progress"]["total"] {
            wait_for_decision(app, user, &now).await;
            continue;
        }
        let job = agent.job().await;
        let rate = f64::from(job.spec.load().shape().expect("a shape").peak());
        agent.finish(&job, &with_p99(if rate <= knee { 10.0 } else { 90.0 })).await;
    }
}

#[tokio::test]
async fn a_knee_search_finds_the_knee_with_an_interval_and_shows_its_steps() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let full = search(&app, &user, &mut agent, 5_000.0, &json!({})).await;
    let found = &full["searches"][0];
    assert_eq!((&found["state"], &found["target"]), (&json!("found"), &json!("fast")));
    let knee = found["knee"].as_f64().expect("a rate");
    assert!((4_850.0..=5_150.0).contains(&knee), "{found}");
    let [low, high] = ["knee_low", "knee_high"].map(|end| found[end].as_f64().expect("a rate"));
    assert!(low < 5_000.0 && 5_000.0 < high && high < 1.15 * low && found["contradiction"].is_null(), "{found}");
    assert!(found["path"].as_array().expect("a path").len() > 4, "{found}");
    let id = text(&full["experiment"]["id"]);
    let page = user.clone().in_browser().get(&format!("/experiments/{id}")).await.ok().text();
    assert!(
        page.contains("The knee is at") && page.contains("Steps of the knee search") && page.contains("held"),
        "{page}"
    );
    let shown = as_user(&app, user.secret(), &["experiment", "watch", &id]).await.ok();
    assert!(shown.contains("the knee is at") && shown.contains("95 % interval"), "{shown}");
    let refused =
        user.post(&format!("/api/v1/experiments/{id}/repetitions"), &json!({"repetitions": 1})).await.refused(409);
    let comparison = user.get(&format!("/api/v1/compare?experiments={id}")).await.ok().json();
    assert!(!comparison["notes"].to_string().contains("knee"), "one statement: {}", comparison["notes"]);
    assert_eq!(refused, "repetitions can't be added to a knee search, which decides how often it measures");
}

#[tokio::test]
async fn a_knee_search_of_suspect_runs_is_undecided_everywhere() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let knee = json!({"objective": "p99<50ms", "from": 1_000, "to": 16_000, "duration_s": 1.0});
    let mut plan = plan_with(&json!({"knee": knee, "repetitions": 2}));
    plan.as_object_mut().expect("fields").remove("load");
    let (experiment, _) = submit(&user, &plan).await;
    let busy = IdleWaitResult { waited_ms: 9_000, busy_cores: 1.4, limit_cores: 0.2, idle: false };
    let full = loop {
        let now = fetch(&user, &experiment).await;
        if now["progress"]["state"] == "finished" {
            break now;
        }
        if now["progress"]["ended"] == now["progress"]["total"] {
            wait_for_decision(&app, &user, &now).await;
            continue;
        }
        let job = agent.job().await;
        // The objective holds at each rate up to 5,000.
        let holds = job.spec.load().shape().expect("a shape").peak() <= 5_000;
        let mut outcome = outcome(&job, &with_p99(if holds { 10.0 } else { 90.0 }));
        outcome.conditions.idle_wait = Some(busy);
        agent.end(outcome).await;
    };
    let found = &full["searches"][0];
    assert_eq!((&found["state"], &found["knee"]), (&json!("suspect"), &Value::Null), "{found}");
    let description = text(&found["description"]);
    let expected = "undecided: 6 of 6 runs at ";
    assert!(description.starts_with(expected) && description.contains("the machine was not idle"), "{description}");
    assert!(found["path"].to_string().contains("\"confirmed\":false"), "{found}");
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("Undecided: 6 of 6 runs") && page.contains("6 suspect"), "{page}");
    assert!(!page.contains("no knee") && !page.contains("knee is at"), "{page}");
    let watched = as_user(&app, user.secret(), &["experiment", "watch", &experiment]).await;
    assert_eq!(watched.code, Some(4), "{}", watched.err);
    assert!(watched.err.contains("Undecided: 6 of 6 runs at "), "{}", watched.err);
    let shown = as_user(&app, user.secret(), &["experiment", "show", &experiment]).await.ok();
    assert!(shown.contains(expected) && !shown.contains("no knee") && !shown.contains("knee at"), "{shown}");
}

#[tokio::test]
async fn a_knee_search_reports_that_its_range_has_no_knee() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let above = search(&app, &user, &mut agent, 90_000.0, &json!({})).await;
    assert_eq!((&above["searches"][0]["state"], &above["searches"][0]["knee"]), (&json!("above_range"), &Value::Null));
    let below = search(&app, &user, &mut agent, 10.0, &json!({})).await;
    assert_eq!(below["searches"][0]["state"], "below_range");
    // The summary has 51,230 iterations, so k6 reached no higher rate than that.
    let wide = json!({"knee": {"objective": "p99<50ms", "from": 1_000, "to": 200_000, "duration_s": 1.0}});
    let saturated = search(&app, &user, &mut agent, 1e9, &wide).await;
    let found = &saturated["searches"][0];
    assert_eq!((&found["state"], &found["knee"]), (&json!("saturated"), &Value::Null), "{found}");
    assert!(text(&found["description"]).contains("the generator, not the target, is at its limit"), "{found}");
}
