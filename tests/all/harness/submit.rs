//! Submission of experiments and import of runs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    Actor, App,
    summaries::{distinct, scaled},
};

/// A plan with one run of the target `fast`.
pub fn plan() -> Value {
    json!({"targets": ["fast"], "sizes": ["1/256MiB"], "scenario": "hash", "load": vus(2, 1.0),
        "warm_up_s": 0.0, "repetitions": 1})
}

/// A constant number of virtual users.
pub fn vus(vus: u32, duration_s: f64) -> Value {
    json!({"kind": "vus", "vus": vus, "duration_s": duration_s})
}

/// [`plan`] with some fields changed.
pub fn plan_with(changes: &Value) -> Value {
    let mut plan = plan();
    for (name, value) in changes.as_object().expect("fields") {
        plan[name] = value.clone();
    }
    plan
}

/// Submits a plan. Returns the ids of the experiment and of its runs in order.
pub async fn submit(user: &Actor, plan: &Value) -> (String, Vec<String>) {
    let created = user.post("/api/v1/experiments", plan).await.ok().json();
    let runs = created["runs"].as_array().expect("runs");
    let ids = runs.iter().map(|run| text(&run["id"])).collect();
    (text(&created["experiment"]["id"]), ids)
}

/// Submits [`plan`]. Returns the id of its run.
pub async fn submit_one(user: &Actor) -> String {
    submit(user, &plan()).await.1.remove(0)
}

/// Waits until a run is in a phase. Returns the run.
pub async fn reaches(app: &App, user: &Actor, id: &str, phase: &str) -> Value {
    app.until(&format!("run {id} to be {phase}"), async || Some(user.run(id).await).filter(|run| run["phase"] == phase))
        .await
}

/// Returns the retry of a lost run.
pub async fn retry_of(user: &Actor, id: &str) -> Option<Value> {
    let list = user.get("/api/v1/runs").await.ok().json();
    list["runs"].as_array().expect("a list").iter().find(|run| run["retry_of"] == id).cloned()
}

/// Returns the text of a JSON string.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

/// Imports `count` repetitions of a version that is `faster` times as fast as the fixture. Returns their ids.
pub async fn repetitions(user: &Actor, target: &str, version: &str, count: u32, faster: f64) -> Vec<String> {
    let mut ids = Vec::new();
    for repetition in 1..=count {
        let number = repetition.to_string();
        let about = [
            ("target", target),
            ("version", version),
            ("scenario", "hash"),
            ("size", "2/4GiB"),
            ("repetition", &number),
        ];
        let wobble = 1.0 + 0.001 * f64::from(repetition);
        let answer = user.import_as(&about, scaled(faster * wobble)).await.ok().json();
        ids.push(text(&answer["runs"][0]["id"]));
    }
    ids
}

/// Imports `count` blocks of interleaved runs as one experiment. Each target has a name, a version, and how many times
/// as fast it is as the fixture. Returns the ids of each target's runs.
pub async fn interleaved(user: &Actor, targets: &[(&str, &str, f64)], count: u32) -> Vec<Vec<String>> {
    let (mut index, mut files) = (Vec::new(), BTreeMap::new());
    let all = targets.len();
    for repetition in 1..=count {
        for (place, (target, version, faster)) in targets.iter().enumerate() {
            let name = format!("{target}-{version}-{repetition}.json");
            let wobble = 1.0 + 0.001 * f64::from(repetition * 7 % 5) + 0.0001 * place as f64;
            files.insert(name.clone(), distinct(scaled(faster * wobble)));
            // Mirrored in each pair of repetitions.
            let order = all * (repetition as usize - 1) + if repetition % 2 == 1 { place + 1 } else { all - place };
            index.push(json!({"file": name, "target": target, "version": version, "scenario": "hash", "vcpus": 2.0,
                "memory_mib": 4096, "repetition": repetition, "order": order}));
        }
    }
    let index = serde_json::to_string(&index).expect("JSON");
    let imported = user.import_folder(&index, &files).await.ok().json();
    let ids: Vec<String> = imported["runs"].as_array().expect("runs").iter().map(|run| text(&run["id"])).collect();
    user.post("/api/v1/experiments/from-imports", &json!({"name": "in turn", "runs": ids})).await.ok();
    (0..targets.len()).map(|place| ids.iter().skip(place).step_by(targets.len()).cloned().collect()).collect()
}
