//! Duets: two runs that one agent executes at the same time, from the plan to the comparison.

use brewbench_wire::{
    engine::{Capability, EngineVersion},
    job::Job,
    messages::AgentMessage,
    outcome::Outcome,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    submit::{plan_with, reaches, submit, text},
    summaries::{distinct, good, scaled},
};

fn duet(changes: &Value) -> Value {
    let mut plan = plan_with(&json!({"targets": ["fast", "slow"], "duet": true, "repetitions": 1}));
    plan.as_object_mut().expect("fields").extend(changes.as_object().expect("fields").clone());
    plan
}

async fn agent(app: &App) -> Agent {
    Agent::start_with(app, "rack", |hello| {
        let k6 = hello.engines[0].clone();
        let mut native = k6;
        (native.name, native.version) = ("native".to_owned(), "1".to_owned());
        native.capabilities = vec![Capability::Series, Capability::Percentiles, Capability::Pausing, Capability::Turns];
        hello.engines.push(native);
    })
    .await
}

/// Ends both runs of a job, that of the partner first.
async fn end(agent: &Agent, job: &Job, summaries: [&str; 2]) {
    let partner = job.of_partner().expect("a partner");
    for (job, summary) in [(&partner, summaries[1]), (job, summaries[0])] {
        let engine = Some(EngineVersion { name: "native".to_owned(), version: "1".to_owned() });
        agent.end(Outcome { engine, ..outcome(job, summary) }).await;
    }
}

async fn phases(user: &Actor, runs: &[String]) -> Vec<String> {
    let mut phases = Vec::new();
    for run in runs {
        phases.push(text(&user.run(run).await["phase"]));
    }
    phases
}

#[tokio::test]
async fn an_agent_gets_both_runs_of_a_duet_in_one_job() {
    let app = App::start().await;
    let (user, mut rack) = (app.user().await, agent(&app).await);
    let (_, runs) = submit(&user, &duet(&json!({"repetitions": 2, "seed": 1}))).await;
    for _ in 0..2 {
        let job = rack.job().await;
        let partner = job.partner.clone().expect("a partner");
        assert_ne!(job.spec.target, partner.target);
        let own = [job.run.to_string(), partner.run.to_string()];
        for run in &own {
            let shown = reaches(&app, &user, run, "leased").await;
            assert_eq!((&shown["agent"], &shown["duet"]), (&json!("rack"), &json!(true)));
            assert_eq!(shown["requested_engine"], "native", "chosen for the duet");
        }
        let [first, second] = [user.run(&own[0]).await, user.run(&own[1]).await];
        assert_eq!(first["repetition"], second["repetition"]);
        rack.send_message(&AgentMessage::Heartbeat { running: vec![job.run, partner.run], fault: None });
        end(&rack, &job, [&good(), &good()]).await;
    }
    assert_eq!(phases(&user, &runs).await, ["finished"; 4]);
}

#[tokio::test]
async fn a_duet_that_the_agent_declines_is_queued_again_and_one_that_is_cancelled_ends_whole() {
    let app = App::start().await;
    let (user, mut rack) = (app.user().await, agent(&app).await);
    let (_, runs) = submit(&user, &duet(&json!({}))).await;
    let job = rack.job().await;
    let partner = job.of_partner().expect("a partner");
    for run in [job.run, partner.run] {
        rack.send_message(&AgentMessage::Declined { run, reason: "busy".to_owned() });
    }
    for run in &runs {
        reaches(&app, &user, run, "queued").await;
    }
    // An agent gets what it declined at its next connection.
    rack.disconnect();
    let mut rack = agent_again(&app, rack).await;
    let job = rack.job().await;
    let partner = job.of_partner().expect("a partner");
    user.post(&format!("/api/v1/runs/{}/cancel", partner.run), &json!({})).await.ok();
    assert_eq!(phases(&user, &runs).await, ["cancelled"; 2]);
    assert_eq!(rack.cancelled().await, job.run, "the agent ends both");
    let (_, queued) = submit(&user, &duet(&json!({"agent": "rack"}))).await;
    user.post(&format!("/api/v1/runs/{}/cancel", queued[0]), &json!({})).await.ok();
    assert_eq!(phases(&user, &queued).await, ["cancelled"; 2]);
}

async fn agent_again(app: &App, mut agent: Agent) -> Agent {
    agent.connect(app).await.expect("accepted");
    agent
}

/// The restarts of a duet scatter by far more than the targets differ; only the pairs show the difference.
#[tokio::test]
async fn a_small_difference_is_found_although_the_restarts_scatter() {
    let app = App::start().await;
    let (user, mut rack) = (app.user().await, agent(&app).await);
    let (experiment, _) = submit(&user, &duet(&json!({"repetitions": 6}))).await;
    for level in [1.0, 0.7, 1.3, 0.9, 1.1, 0.8] {
        let job = rack.job().await;
        let speed = |target: &str| if target == "fast" { level * 1.03 } else { level };
        let partner = job.of_partner().expect("a partner");
        let both = [&job, &partner].map(|job| distinct(scaled(speed(&job.spec.target))));
        end(&rack, &job, [&both[0], &both[1]]).await;
    }
    let comparison: Value = user.get(&format!("/api/v1/compare?experiments={experiment}")).await.ok().json();
    let row = &comparison["rows"][0];
    assert_eq!(row["leaders"]["rps"], json!({"of": 0}), "{}", row["leaders"]);
    let by = row["leads"]["rps"]["by"].as_f64().expect("a lead");
    assert!((by - 0.03).abs() < 0.001, "{by}");
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("with native, in a duet"), "{page}");
}

#[tokio::test]
async fn what_can_not_be_a_duet_is_refused_with_the_field() {
    let app = App::start().await;
    let (user, _rack) = (app.user().await, agent(&app).await);
    for (changes, sentence) in [
        (json!({"targets": ["fast"]}), "duet: needs two targets"),
        (json!({"sizes": ["1/256MiB", "2/256MiB"]}), "duet: needs one size and one load"),
        (json!({"sizes": ["0.5/256MiB"]}), "size: a duet needs whole vCPUs"),
        (json!({"sizes": ["1/20GiB"]}), "size: no connected agent that offers \\\"fast\\\" can provide"),
        (json!({"profiled_repetitions": 4}), "duet: can't be combined with profiled_repetitions"),
        (json!({"http_version": "2"}), "duet: can't be combined with http_version 2"),
        (json!({"generators": ["rack"]}), "duet: can't be combined with generators"),
        (json!({"engine": "k6"}), "duet: rack has k6 1.8.1, which can't take turns"),
    ] {
        let answer = user.post("/api/v1/experiments", &duet(&changes)).await;
        assert!([StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT].contains(&answer.status), "{changes}");
        let answer = answer.text();
        assert!(answer.contains(sentence), "{changes}: {answer}");
    }
}
