//! Experiments as tests submit them, and runs as they import them.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Actor, Answer, App, summaries::scaled};

/// A plan of one target, `fast`, at one size, once.
pub fn plan() -> Value {
    json!({"targets": ["fast"], "sizes": ["1/256MiB"], "scenario": "hash", "load": vus(2, 1.0),
        "warm_up_s": 0.0, "repetitions": 1})
}

/// A constant number of virtual users.
pub fn vus(vus: u32, duration_s: f64) -> Value {
    json!({"kind": "vus", "vus": vus, "duration_s": duration_s})
}

/// A plan with some of its fields changed.
pub fn plan_with(changes: &Value) -> Value {
    let mut plan = plan();
    for (name, value) in changes.as_object().expect("fields") {
        plan[name] = value.clone();
    }
    plan
}

/// Submits; gives the experiment's id and those of its runs in order.
pub async fn submit(user: &Actor, plan: &Value) -> (String, Vec<String>) {
    let made = user.post("/api/v1/experiments", plan).await.ok().json();
    let runs = made["runs"].as_array().expect("runs");
    let ids = runs.iter().map(|run| text(&run["id"])).collect();
    (text(&made["experiment"]["id"]), ids)
}

/// Submits [`plan`]; gives the id of its run.
pub async fn submit_one(user: &Actor) -> String {
    submit(user, &plan()).await.1.remove(0)
}

/// Waits until a run is in a phase; gives it.
pub async fn reaches(app: &App, user: &Actor, id: &str, phase: &str) -> Value {
    app.until(&format!("run {id} to be {phase}"), async || Some(user.run(id).await).filter(|run| run["phase"] == phase))
        .await
}

/// The run that repeats a lost one, if there is one.
pub async fn retry_of(user: &Actor, id: &str) -> Option<Value> {
    let list = user.get("/api/v1/runs").await.ok().json();
    list["runs"].as_array().expect("a list").iter().find(|run| run["retry_of"] == id).cloned()
}

/// A JSON string as text.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// Imports so many repetitions of a target in a version that is so many times as fast; gives their ids.
pub async fn repetitions(user: &Actor, target: &str, version: &str, count: u32, faster: f64) -> Vec<String> {
    let mut ids = Vec::new();
    for repetition in 1..=count {
        let about = [("target", target), ("version", version), ("scenario", "hash"), ("size", "2/4GiB")];
        let request = user.request(&Method::POST, "/api/v1/runs/import").query(&about);
        let request = request.query(&[("repetition", repetition)]);
        let wobble = 1.0 + 0.001 * f64::from(repetition);
        let answer = Answer::of(request.body(scaled(faster * wobble))).await.ok().json();
        ids.push(text(&answer["runs"][0]["id"]));
    }
    ids
}
