//! The rate of a run is that of its load, and its requests are those that the target counted: with one real agent, and
//! with two generators whose results are merged.

use std::{fs, path::Path};

use brewbench_testing::Counter;
use serde_json::{Value, json};

use crate::harness::{
    Actor, App,
    program::{Running, Tools, brewbench},
    submit::{plan_with, submit, vus},
};

/// Starts a real agent that knows the counter as a target.
async fn agent(app: &App, tools: &Tools, folder: &Path, name: &str, counter: &Counter) -> Running {
    let (url, key, k6) = (app.url.to_string(), app.one_time_key(name).await, tools.k6.display().to_string());
    let (state, manifests) = (folder.join(name), folder.join(format!("{name}-targets")));
    fs::create_dir(&manifests).expect("a folder");
    let text =
        format!("name = \"counter\"\nversion = \"1\"\n[url]\nbase = \"{}\"\n[ready]\npath = \"/\"\n", counter.base);
    fs::write(manifests.join("counter.toml"), text).expect("a manifest");
    let mut agent = brewbench(&["agent", "--server", &url, "--key", &key, "--k6", &k6, "--any-scenario"]);
    agent.arg("--state").arg(state).arg("--manifests").arg(manifests).args(["--load-address", "127.0.0.2"]);
    Running::start(agent)
}

async fn connected(app: &App, user: &Actor, number: usize) {
    app.until("all agents", async || {
        let list = user.get("/api/v1/agents").await.ok().json();
        let connected = list["agents"].as_array()?.iter().filter(|agent| agent["connected"] == true).count();
        (connected == number).then_some(())
    })
    .await;
}

/// Adds a scenario whose setup, teardown and iterations wait and request.
async fn add(user: &Actor) {
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        const get = (path) => http.get(`${__ENV.BASE_URL}${path}`);
        export function setup() { get('/setup'); sleep(2); }
        export default function () { get('/load'); sleep(0.02); if (__ITER === 150) sleep(5); }
        export function teardown() { get('/teardown'); sleep(2); }";
    user.post("/api/v1/scenarios", &json!({"name": "around", "script": script, "files": {}, "defaults": {}}))
        .await
        .ok();
}

async fn ended(app: &App, user: &Actor, run: &str) -> Value {
    let ended = app
        .until("the end of the run", async || {
            let run = user.run(run).await;
            ["finished", "failed", "lost"].iter().any(|phase| run["phase"] == *phase).then_some(run)
        })
        .await;
    assert_eq!(ended["phase"], "finished", "{ended}");
    ended
}

/// Asserts that requests and rate are those of a load of three seconds.
fn assert_load(run: &Value, counter: &Counter) {
    let requests = counter.count("/load");
    assert_eq!(run["requests"], json!(requests), "{run}");
    assert_eq!(run["failed"], 0, "{run}");
    let (seconds, rps) = (run["measured_s"].as_f64().expect("seconds"), run["rps"].as_f64().expect("a rate"));
    assert!((3.0..4.2).contains(&seconds), "{run}");
    assert!((rps * seconds - requests as f64).abs() < 1.5, "{run}");
    for code in ["too_short", "generator_held_back", "not_steady", "ended_early", "series_incomplete"] {
        assert!(!run["reasons"].to_string().contains(code), "{code}: {run}");
    }
}

#[tokio::test]
async fn a_run_counts_its_load_and_nothing_else() {
    let Some(tools) = Tools::find() else { return };
    let (app, counter) = (App::start().await, Counter::start());
    let (user, folder) = (app.admin().await, tempfile::tempdir().expect("a folder"));
    let _agent = agent(&app, &tools, folder.path(), "rack", &counter).await;
    connected(&app, &user, 1).await;
    add(&user).await;
    let changes =
        json!({"targets": ["counter"], "scenario": "around", "load": vus(4, 3.0), "warm_up_s": 0, "retries": 0});
    let (_, runs) = submit(&user, &plan_with(&changes)).await;
    let run = ended(&app, &user, &runs[0]).await;
    assert_load(&run, &counter);
    assert_eq!((counter.count("/setup"), counter.count("/teardown")), (1, 1));
}

#[tokio::test]
async fn the_merged_rate_of_two_generators_is_over_their_loads() {
    let Some(tools) = Tools::find() else { return };
    let (app, counter) = (App::start().await, Counter::start());
    let (user, folder) = (app.admin().await, tempfile::tempdir().expect("a folder"));
    let mut agents = Vec::new();
    for name in ["rack", "one", "two"] {
        agents.push(agent(&app, &tools, folder.path(), name, &counter).await);
    }
    connected(&app, &user, 3).await;
    add(&user).await;
    let mut plan =
        plan_with(&json!({"targets": ["counter"], "scenario": "around", "agent": "rack", "load": vus(4, 3.0),
        "warm_up_s": 0, "retries": 0}));
    plan["generators"] = json!(["one", "two"]);
    let (_, runs) = submit(&user, &plan).await;
    let run = ended(&app, &user, &runs[0]).await;
    assert_load(&run, &counter);
    assert_eq!((counter.count("/setup"), counter.count("/teardown")), (2, 2), "each k6 has its own");
    assert!(run["p99_ms"].as_f64().is_some_and(|ms| ms > 0.0), "the histograms have every request: {run}");
    let list = user.get(&format!("/api/v1/runs/{}/generators", runs[0])).await.ok().json();
    let parts = list["generators"].as_array().expect("a list");
    let sum: u64 = parts.iter().filter_map(|part| part["requests"].as_u64()).sum();
    assert_eq!(run["requests"], json!(sum));
}
