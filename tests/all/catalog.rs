//! Targets, machine sizes and scenarios.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, App,
        submit::{plan, submit, text},
        summaries::good,
    },
    new_run::fill_in,
};

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
async fn a_free_agent_looks_at_a_scenario_first_and_what_k6_refuses_is_not_kept() {
    let app = App::start().await;
    let user = app.user().await;
    let scenario = |text: &str| json!({"name": "mine", "script": text});
    // Nobody is connected, then only one that takes no such scripts.
    let stored = user.post("/api/v1/scenarios", &scenario("first")).await.ok().json();
    assert_eq!(stored["check"], json!(null));
    let _strict = Agent::start(&app, "a-strict").await;
    let refused = user.post("/api/v1/scenarios/mine/check", &()).await.refused(409);
    assert_eq!(refused, "no agent was free to check it; try again later");

    let _rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let looked = user.post("/api/v1/scenarios/mine/check", &()).await.ok().json();
    assert_eq!(
        (&looked["check"]["agent"], &looked["check"]["engine"]),
        (&json!("rack"), &json!({"name": "k6", "version": "1.8.1"}))
    );
    assert_eq!((&looked["sha256"], &looked["check"]["fault"]), (&stored["sha256"], &json!(null)));
    let refused = user.post("/api/v1/scenarios", &scenario("invalid k6 failed: \u{1b}[31mred\n\tat line 1")).await;
    assert_eq!(refused.refused(422), "script: k6 failed: red at line 1");
    let list = user.get("/api/v1/scenarios/mine/revisions").await.ok().json();
    assert_eq!(list["revisions"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["revisions"][0]["check"], looked["check"]);
    let stored = user.post("/api/v1/scenarios", &scenario("second")).await.ok().json();
    assert_eq!(stored["check"]["agent"], "rack");
    let stored = user.post("/api/v1/scenarios", &scenario("declined it is busy")).await.ok().json();
    assert_eq!(stored["check"], json!(null));
    user.post("/api/v1/scenarios/nothing/check", &()).await.refused(404);
    user.post("/api/v1/scenarios/mine/check?revision=nothing", &()).await.refused(404);
    let pages = user.at_pages();
    let page = pages.get("/scenarios/mine").await.ok().text();
    assert!(page.contains("Not checked: no agent was free") && page.contains("/scenarios/mine/check"), "{page}");
    let first = text(&looked["sha256"]);
    let page = pages.get(&format!("/scenarios/mine?revision={first}")).await.ok().text();
    assert!(page.contains("checked by rack with k6 1.8.1"), "{page}");
    let again = fill_in(&pages, "/scenarios/mine/check", &format!("revision={first}")).await;
    assert_eq!(again.header("location"), format!("/scenarios/mine?revision={first}"), "{}", again.text());
}

#[tokio::test]
async fn what_k6_refuses_later_is_told_with_the_revision() {
    let app = App::start().await;
    let user = app.user().await;
    user.post("/api/v1/scenarios", &json!({"name": "mine", "script": "invalid <b>no</b>"})).await.ok();
    let _rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let looked = user.post("/api/v1/scenarios/mine/check", &()).await.ok().json();
    assert_eq!(looked["check"]["fault"], "<b>no</b>");
    let page = user.at_pages().get("/scenarios/mine").await.ok().text();
    assert!(page.contains("k6 can’t run it.") && page.contains("&#60;b&#62;no&#60;/b&#62;"), "{page}");
}

#[tokio::test]
async fn who_works_is_not_asked_and_who_was_asked_works_again() {
    let app = App::start().await;
    let user = app.user().await;
    let mut rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let scenario = |text: &str| json!({"name": "mine", "script": text});
    submit(&user, &plan()).await;
    let job = rack.job().await;
    let stored = user.post("/api/v1/scenarios", &scenario("first")).await.ok().json();
    assert_eq!(stored["check"], json!(null), "nothing goes on beside a measurement");
    rack.finish(&job, &good()).await;
    let free = async || {
        let looked = user.post("/api/v1/scenarios/mine/check", &()).await;
        (looked.status == StatusCode::OK).then_some(())
    };
    app.until("a free agent", free).await;
    submit(&user, &plan()).await;
    let job = rack.job().await;
    rack.finish(&job, &good()).await;
    app.until("a free agent", free).await;

    // One that goes away without an answer leaves nobody waiting.
    let second = scenario("silent");
    let leaves = async {
        rack.asked().await;
        rack.hang_up();
    };
    let (answer, ()) = tokio::join!(user.post("/api/v1/scenarios", &second), leaves);
    assert_eq!(answer.ok().json()["check"], json!(null));
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
