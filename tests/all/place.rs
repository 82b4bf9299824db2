//! Which agents run an experiment: those with a label, or several at once.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::{
    job::Job,
    outcome::{Cause, Ended, Outcome},
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Agent, App,
        agent::outcome,
        program::as_user,
        submit::{plan_with, retry_of, submit, text},
        summaries::{good, scaled},
    },
    new_run::fill_in,
};

async fn label(admin: &Actor, agent: &str, labels: &[&str]) {
    admin.put(&format!("/api/v1/agents/{agent}/labels"), &json!({"labels": labels})).await.ok();
}

/// Waits until the wait reason of the first queued run contains a text; returns the queue entry.
async fn waits(app: &App, user: &Actor, why: &str) -> Value {
    app.until(why, async || {
        let first = user.get("/api/v1/queue").await.ok().json()["waiting"][0].clone();
        first["message"].as_str().is_some_and(|reason| reason.contains(why)).then_some(first)
    })
    .await
}

#[tokio::test]
async fn a_label_selects_the_agent_and_an_experiment_stays_where_it_has_started() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let (mut one, mut two) = (Agent::start(&app, "one").await, Agent::start(&app, "two").await);
    label(&admin, "two", &["arm"]).await;
    let plan = plan_with(&json!({"repetitions": 2, "agent_label": "arm"}));
    let (_, first) = submit(&user, &plan).await;
    let job = two.job().await;
    assert_eq!(job.run.to_string(), first[0]);
    let waiting = waits(&app, &user, "two is busy").await;
    assert_eq!((&waiting["agent_label"], &waiting["required_agent"]), (&json!("arm"), &Value::Null));

    // The label moves to the other agent: a started experiment stays, a new one follows the label at once.
    label(&admin, "two", &[]).await;
    let sentence = user.post("/api/v1/experiments", &plan).await.refused(422);
    assert_eq!(sentence, "agent_label: no agent has the label \"arm\"; there are no labels");
    label(&admin, "one", &["arm"]).await;
    let (_, second) = submit(&user, &plan).await;
    let other = one.job().await;
    assert_eq!(other.run.to_string(), second[0]);
    two.finish(&job, &good()).await;
    let rest = two.job().await;
    assert_eq!(rest.run.to_string(), first[1]);
    two.finish(&rest, &good()).await;

    // No agent has the label when its turn comes, until one gets it.
    let (_, third) = submit(&user, &plan_with(&json!({"agent_label": "arm"}))).await;
    label(&admin, "one", &[]).await;
    one.finish(&other, &good()).await;
    let last = one.job().await;
    assert_eq!(last.run.to_string(), second[1]);
    waits(&app, &user, "it requires the label arm, and there is no such agent").await;
    label(&admin, "two", &["arm"]).await;
    assert_eq!(two.job().await.run.to_string(), third[0]);
}

#[tokio::test]
async fn contradictory_choices_of_agents_are_refused() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let (_one, mut two) = (Agent::start(&app, "one").await, Agent::start(&app, "two").await);
    label(&admin, "two", &["arm"]).await;
    let knee = json!({"objective": "p99<50ms", "from": 10, "to": 90, "duration_s": 1.0});
    for (changes, words) in [
        (json!({"agent_label": "arm", "agent": "two"}), "agent_label: can't be combined with agent two"),
        (json!({"agent_label": "x86"}), "agent_label: no agent has the label \"x86\"; existing labels: arm"),
        (json!({"spread": true, "agent": "two"}), "spread: can't be combined with agent two"),
        (json!({"spread": true, "generators": ["one"]}), "spread: can't be combined with generators"),
        (json!({"spread": true, "knee": knee, "load": []}), "spread: can't be combined with knee"),
        (
            json!({"spread": true, "targets": ["fast", "slow"], "stopping_rule": {"narrower_than": 0.02, "at_most": 9}}),
            "spread: can't be combined with stopping_rule",
        ),
    ] {
        let error = user.post("/api/v1/experiments", &plan_with(&changes)).await.refused(422);
        assert!(error.starts_with(words), "{changes}: {error}");
    }
    two.disconnect();
    let error = app
        .until("the agent to be away", async || {
            let answer = user.post("/api/v1/experiments", &plan_with(&json!({"agent_label": "arm"}))).await;
            (answer.status == StatusCode::CONFLICT).then(|| answer.refused(409))
        })
        .await;
    assert_eq!(error, "agent_label: no agent labelled \"arm\" is connected");
}

/// Does the next job: the agent `two` is slightly slower, and the target `slow` much slower.
async fn measure(agent: &mut Agent) -> Job {
    let job = agent.job().await;
    let machine = if agent.name == "two" { 0.95 } else { 1.0 };
    let target = if job.spec.target == "slow" { 0.8 } else { 1.0 };
    agent.finish(&job, &scaled(machine * target)).await;
    job
}

#[tokio::test]
async fn several_agents_share_the_repetitions_and_their_results_name_a_winner() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut one, mut two) = (Agent::start(&app, "one").await, Agent::start(&app, "two").await);
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 6, "spread": true}));
    let (experiment, runs) = submit(&user, &plan).await;
    for _ in 0..6 {
        measure(&mut one).await;
        measure(&mut two).await;
    }
    let mut places: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for id in &runs {
        let run = user.run(id).await;
        let repetition = run["repetition"].as_u64().expect("a number");
        places.entry(repetition).or_default().insert(text(&run["agent"]));
    }
    assert_eq!(places.len(), 6);
    assert!(places.values().all(|agents| agents.len() == 1), "each repetition has one agent: {places:?}");
    let of_one = places.values().filter(|agents| agents.contains("one")).count();
    assert_eq!(of_one, 3, "{places:?}");

    let compared = async |runs: &[String]| -> Value {
        user.get(&format!("/api/v1/compare?runs={}", runs.join(","))).await.ok().json()
    };
    let rps = |comparison: &Value| text(&comparison["rows"][0]["cells"][1]["stats"][0]["decision"]);
    let full = compared(&runs).await;
    assert_eq!((rps(&full).as_str(), &full["rows"][0]["confounders"]), ("worse", &json!([])), "{full}");
    let notes = full["notes"].as_array().expect("notes");
    assert!(notes.iter().any(|note| note["title"] == "Measured on several machines."), "{full}");
    let part = compared(&runs[1..]).await;
    assert_eq!(
        (rps(&part).as_str(), &part["rows"][0]["confounders"][0]["what"]),
        ("not_comparable", &json!("Agents")),
        "{part}"
    );
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("spread over several machines"), "{page}");
}

#[tokio::test]
async fn a_retry_runs_on_the_agent_of_its_repetition() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut one, mut two) = (Agent::start(&app, "one").await, Agent::start(&app, "two").await);
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2, "spread": true}));
    submit(&user, &plan).await;
    let first = two.job().await;
    let ended = Ended::Failed { reason: "the port was taken".to_owned(), cause: Cause::Other };
    two.end(Outcome { ended, summary: None, ..outcome(&first, "") }).await;
    let second = two.job().await;
    two.disconnect();
    measure(&mut one).await;
    measure(&mut one).await;
    let again = retry_of(&user, &first.run.to_string()).await.expect("a retry");
    let waiting = waits(&app, &user, "its repetition is measured on two, which is not connected").await;
    assert_eq!(waiting["run"]["id"], again["id"], "no other agent may do it");
    two.hello.holds = vec![second.run];
    two.hello.running = Some(second.run);
    two.connect(&app).await.expect("a welcome");
    two.finish(&second, &good()).await;
    assert_eq!(two.job().await.run.to_string(), text(&again["id"]));
}

#[tokio::test]
async fn the_form_and_the_command_choose_agents() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let pages = user.clone().in_browser();
    let (_one, _two) = (Agent::start(&app, "one").await, Agent::start(&app, "two").await);
    label(&admin, "two", &["arm"]).await;
    let page = pages.get("/experiments/new").await.ok().text();
    assert!(page.contains(r#"name="agent" value="label:arm" data-preserve"#), "{page}");
    assert!(page.contains("Any with label arm<small>two</small>") && page.contains(r#"name="spread" value="on""#));
    let form = "target=fast&size=1%2F256MiB&vus=1&duration=1s&repeat=2&agent=label:arm&spread=on";
    let checked = pages.get(&format!("/experiments/new?{form}")).await.ok().text();
    let command = "brewbench run new --spread --target fast";
    assert!(checked.contains(command) && checked.contains(" --agent-label arm"), "{checked}");
    let created = fill_in(&pages, "/experiments/new", form).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text());
    let path = format!("/api/v1{}", created.header("location"));
    let plan = user.get(&path).await.ok().json()["experiment"]["plan"].clone();
    assert_eq!((&plan["agent_label"], &plan["spread"]), (&json!("arm"), &json!(true)));
    let shown = pages.get(created.header("location")).await.ok().text();
    assert!(shown.contains("on agents labelled arm · spread over several machines"), "{shown}");
    let again = created.header("location").replace("/experiments/", "/experiments/new?experiment=");
    let query = pages.get(&again).await.header("location").to_owned();
    assert!(query.contains("agent-label=arm") && query.contains("spread=on"), "{query}");
    let wrong = fill_in(&pages, "/experiments/new", &form.replace("label:arm", "two")).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text().contains("combined with agent two"), "{}", wrong.text());

    let request = user.request(&Method::POST, &format!("{path}/cancel"));
    request.send().await.expect("an answer");
    let token = user.secret().to_owned();
    let run = async |flags: &[&str]| {
        let plan = ["run", "new", "--target", "fast", "--size", "1/256MiB", "--vus", "1", "--duration", "1s"];
        as_user(&app, &token, &[&plan, flags].concat()).await
    };
    run(&["--agent-label", "arm", "--spread", "--repeat", "3"]).await.ok();
    let shown = as_user(&app, &token, &["queue"]).await.ok();
    assert!(shown.contains("any arm"), "{shown}");
    let newest = user.get("/api/v1/experiments?limit=1").await.ok().json();
    let plan = &newest["experiments"][0]["experiment"]["plan"];
    assert_eq!((&plan["agent_label"], &plan["spread"]), (&json!("arm"), &json!(true)));
    for flags in [&["--agent-label", "arm", "--agent", "two"][..], &["--spread", "--agent", "two"]] {
        assert!(run(flags).await.refused(2).contains("cannot be used with"), "{flags:?}");
    }
    run(&[]).await.ok();
    let newest = user.get("/api/v1/experiments?limit=1").await.ok().json();
    let plan = newest["experiments"][0]["experiment"]["plan"].as_object().expect("a plan").clone();
    assert!(!plan.contains_key("agent_label") && !plan.contains_key("spread"), "only stored if given: {plan:?}");
}
