//! Targets, machine sizes and scenarios.

use serde_json::{Value, json};

use crate::harness::{Agent, App, submit::text};

const GIB: u64 = 1 << 30;

#[tokio::test]
async fn the_first_start_brings_six_sizes_and_three_scenarios() {
    let app = App::start().await;
    let reader = app.reader().await;
    let sizes = reader.get("/api/v1/sizes").await.ok().json();
    let sizes: Vec<_> = sizes["sizes"].as_array().expect("a list").iter().map(|size| text(&size["name"])).collect();
    let expected = [
        "1 vCPU / 256 MiB",
        "1 vCPU / 512 MiB",
        "2 vCPU / 4 GiB",
        "4 vCPU / 8 GiB",
        "8 vCPU / 16 GiB",
        "16 vCPU / 16 GiB",
    ];
    assert_eq!(sizes, expected);
    let scenarios = reader.get("/api/v1/scenarios").await.ok().json();
    let names: Vec<_> =
        scenarios["scenarios"].as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["hash", "single-file", "site-mix"]);
}

#[tokio::test]
async fn a_size_can_be_added_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let half = json!({"name": "half", "vcpus": 0.5, "memory_bytes": GIB});
    assert_eq!(admin.post("/api/v1/sizes", &half).await.status, 201);
    let again = admin.post("/api/v1/sizes", &half).await.refused(409);
    assert_eq!(again, "there is a size \"half\" already; choose another name");
    let sizes = admin.get("/api/v1/sizes").await.ok().json();
    assert_eq!(sizes["sizes"][0], half, "smallest first");
}

#[tokio::test]
async fn a_size_that_no_machine_has_is_refused_with_its_field() {
    let app = App::start().await;
    let admin = app.admin().await;
    let bad = [
        (json!({"name": "x", "vcpus": 0.0, "memory_bytes": GIB}), "vcpus"),
        (json!({"name": "x", "vcpus": -1.0, "memory_bytes": GIB}), "vcpus"),
        (json!({"name": "x", "vcpus": 5000.0, "memory_bytes": GIB}), "vcpus"),
        (json!({"name": "x", "vcpus": "2", "memory_bytes": GIB}), "vcpus"),
        (json!({"name": "x", "vcpus": 1.0, "memory_bytes": 0}), "memory_bytes"),
        (json!({"name": "x", "vcpus": 1.0, "memory_bytes": -1}), "memory_bytes"),
        (json!({"name": "x", "vcpus": 1.0, "memory_bytes": u64::MAX}), "memory_bytes"),
        (json!({"name": "x", "vcpus": 1.0}), "memory_bytes"),
        (json!({"name": "", "vcpus": 1.0, "memory_bytes": GIB}), "name"),
    ];
    for (size, place) in bad {
        let sentence = admin.post("/api/v1/sizes", &size).await.refused(422);
        assert!(sentence.contains(place), "{size}: {sentence}");
    }
}

fn script(text: &str) -> Value {
    json!({"name": "mine", "script": text, "files": {"list.json": "[]"}, "defaults": {"SIZE": "1k"}})
}

#[tokio::test]
async fn every_revision_of_a_scenario_is_kept_and_what_was_stored_last_counts() {
    let app = App::start().await;
    let user = app.user().await;
    let add = async |text: &str| user.post("/api/v1/scenarios", &script(text)).await.ok().json();
    let current = async || text(&user.get("/api/v1/scenarios/mine").await.ok().json()["script"]);
    let first = add("export default 1").await;
    let second = add("export default 2").await;
    assert_eq!((&first["revisions"], &second["revisions"]), (&json!(1), &json!(2)));
    assert_ne!(first["sha256"], second["sha256"]);
    assert_eq!(current().await, "export default 2");
    // Back to what it was: the same revision, and it counts again.
    let back = add("export default 1").await;
    assert_eq!((&back["revisions"], &back["sha256"]), (&json!(2), &first["sha256"]));
    assert_eq!(current().await, "export default 1");
}

#[tokio::test]
async fn a_bundled_scenario_that_somebody_changed_stays_changed_after_a_restart() {
    let app = App::start().await;
    let body = json!({"name": "hash", "script": "export default function () {}"});
    let changed = app.user().await.post("/api/v1/scenarios", &body).await.ok().json();
    let app = App::on(app.stop().await, |_| ()).await;
    let list = app.reader().await.get("/api/v1/scenarios").await.ok().json();
    assert_eq!((&list["scenarios"][0]["name"], &list["scenarios"][0]["sha256"]), (&json!("hash"), &changed["sha256"]));
}

#[tokio::test]
async fn a_scenario_can_not_reach_out_of_its_folder_or_into_the_agents_environment() {
    let app = App::start().await;
    let user = app.user().await;
    let bad = [
        (json!({"name": "x", "script": " \n"}), "script"),
        (json!({"name": "x", "script": "1", "files": {"../../etc/passwd": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"/etc/passwd": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {".hidden": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"": ""}}), "files"),
        (json!({"name": "x", "script": "1", "defaults": {"K6_OUT": "json"}}), "defaults"),
        (json!({"name": "x", "script": "1", "defaults": {"BASE_URL": "http://elsewhere"}}), "defaults"),
        (json!({"name": "x", "script": "1", "defaults": {"A=B": "c"}}), "defaults"),
        (json!({"name": "a\nb", "script": "1"}), "name"),
    ];
    for (scenario, place) in bad {
        let sentence = user.post("/api/v1/scenarios", &scenario).await.refused(422);
        assert!(sentence.starts_with(place), "{scenario}: {sentence}");
    }
    user.get("/api/v1/scenarios/x").await.refused(404);
}

#[tokio::test]
async fn what_an_agent_offers_is_remembered_when_it_is_gone() {
    let app = App::start().await;
    let reader = app.reader().await;
    let mut agent = Agent::start(&app, "rack").await;
    agent.hang_up();
    let away = app.until("its absence", async || {
        let list = reader.get("/api/v1/agents").await.ok().json();
        Some(list["agents"][0].clone()).filter(|agent| agent["connected"] == false)
    });
    let away = away.await;
    assert_eq!((&away["name"], &away["about"]["cores"]), (&json!("rack"), &json!(8)));
    let targets = reader.get("/api/v1/targets").await.ok().json();
    let names: Vec<_> = targets["targets"].as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["fast", "slow"]);
}
