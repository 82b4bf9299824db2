//! Targets, machine sizes and scenarios.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, Answer, App,
        program::as_user,
        submit::{plan, plan_with, submit, text},
        summaries::good,
    },
    new_run::fill_in,
};

const GIB: u64 = 1 << 30;

#[tokio::test]
async fn the_first_start_creates_six_sizes_and_four_scenarios() {
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
    assert_eq!(names, ["get", "hash", "single-file", "site-mix"]);
}

#[tokio::test]
async fn a_size_can_be_added_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let half = json!({"name": "half", "vcpus": 0.5, "memory_bytes": GIB, "replicas": 1});
    assert_eq!(admin.post("/api/v1/sizes", &half).await.status, 201);
    let again = admin.post("/api/v1/sizes", &half).await.refused(409);
    assert_eq!(again, "size \"half\" already exists; choose another name");
    let sizes = admin.get("/api/v1/sizes").await.ok().json();
    assert_eq!(sizes["sizes"][0], half, "smallest first");
}

#[tokio::test]
async fn an_impossible_size_is_refused_with_its_field() {
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
        (json!({"name": "x", "vcpus": 1.0, "memory_bytes": GIB, "replicas": 0}), "replicas"),
        (json!({"name": "x", "vcpus": 1.0, "memory_bytes": GIB, "replicas": 101}), "replicas"),
        (json!({"name": "", "vcpus": 1.0, "memory_bytes": GIB}), "name"),
    ];
    for (size, field) in bad {
        let error = admin.post("/api/v1/sizes", &size).await.refused(422);
        assert!(error.contains(field), "{size}: {error}");
    }
}

fn script(text: &str) -> Value {
    json!({"name": "mine", "script": text, "files": {"list.json": "[]"}, "defaults": {"SIZE": "1k"}})
}

#[tokio::test]
async fn every_revision_of_a_scenario_is_stored_and_the_last_one_is_current() {
    let app = App::start().await;
    let user = app.user().await;
    let add = async |text: &str| user.post("/api/v1/scenarios", &script(text)).await.ok().json();
    let current = async || text(&user.get("/api/v1/scenarios/mine").await.ok().json()["files"]["script.js"]);
    let first = add("export default 1").await;
    let second = add("export default 2").await;
    assert_eq!((&first["revisions"], &second["revisions"]), (&json!(1), &json!(2)));
    assert_ne!(first["sha256"], second["sha256"]);
    assert_eq!(current().await, "export default 2");
    // The first script again is the same revision, which becomes current.
    let back = add("export default 1").await;
    assert_eq!((&back["revisions"], &back["sha256"]), (&json!(2), &first["sha256"]));
    assert_eq!(current().await, "export default 1");
}

#[tokio::test]
async fn a_changed_bundled_scenario_stays_changed_after_a_restart() {
    let app = App::start().await;
    let body = json!({"name": "hash", "script": "export default function () {}"});
    let changed = app.user().await.post("/api/v1/scenarios", &body).await.ok().json();
    let app = App::on(app.stop().await, |_| ()).await;
    let list = app.reader().await.get("/api/v1/scenarios").await.ok().json();
    let hash = &list["scenarios"][1];
    assert_eq!((&hash["name"], &hash["sha256"]), (&json!("hash"), &changed["sha256"]));
}

#[tokio::test]
async fn an_idle_agent_checks_a_scenario_and_what_k6_refuses_is_not_stored() {
    let app = App::start().await;
    let user = app.user().await;
    let scenario = |text: &str| json!({"name": "mine", "script": text});
    // No agent is connected, then only one that accepts no uploaded scripts.
    let stored = user.post("/api/v1/scenarios", &scenario("first")).await.ok().json();
    assert_eq!(stored["check"], json!(null));
    let _strict = Agent::start(&app, "a-strict").await;
    let refused = user.post("/api/v1/scenarios/mine/check", &()).await.refused(409);
    assert_eq!(refused, "no agent was free to check the script; try again later");

    let _rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let checked = user.post("/api/v1/scenarios/mine/check", &()).await.ok().json();
    assert_eq!(
        (&checked["check"]["agent"], &checked["check"]["engine"]),
        (&json!("rack"), &json!({"name": "k6", "version": "1.8.1"}))
    );
    assert_eq!((&checked["sha256"], &checked["check"]["fault"]), (&stored["sha256"], &json!(null)));
    let refused = user.post("/api/v1/scenarios", &scenario("invalid k6 failed: \u{1b}[31mred\n\tat line 1")).await;
    assert_eq!(refused.refused(422), "script: k6 failed: red at line 1");
    let list = user.get("/api/v1/scenarios/mine/revisions").await.ok().json();
    assert_eq!(list["revisions"].as_array().map(Vec::len), Some(1));
    assert_eq!(list["revisions"][0]["check"], checked["check"]);
    let stored = user.post("/api/v1/scenarios", &scenario("second")).await.ok().json();
    assert_eq!(stored["check"]["agent"], "rack");
    let stored = user.post("/api/v1/scenarios", &scenario("declined it is busy")).await.ok().json();
    assert_eq!(stored["check"], json!(null));
    user.post("/api/v1/scenarios/nothing/check", &()).await.refused(404);
    user.post("/api/v1/scenarios/mine/check?revision=nothing", &()).await.refused(404);
    let pages = user.in_browser();
    let page = pages.get("/scenarios/mine").await.ok().text();
    assert!(page.contains("Not checked: no agent was free") && page.contains("/scenarios/mine/check"), "{page}");
    let first = text(&checked["sha256"]);
    let page = pages.get(&format!("/scenarios/mine?revision={first}")).await.ok().text();
    assert!(page.contains("Checked by rack with k6 1.8.1"), "{page}");
    let again = fill_in(&pages, "/scenarios/mine/check", &format!("revision={first}")).await;
    assert_eq!(again.header("location"), format!("/scenarios/mine?revision={first}"), "{}", again.text());
}

#[tokio::test]
async fn a_later_check_shows_its_fault_with_the_revision() {
    let app = App::start().await;
    let user = app.user().await;
    user.post("/api/v1/scenarios", &json!({"name": "mine", "script": "invalid <b>no</b>"})).await.ok();
    let _rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let checked = user.post("/api/v1/scenarios/mine/check", &()).await.ok().json();
    assert_eq!(checked["check"]["fault"], "<b>no</b>");
    let page = user.in_browser().get("/scenarios/mine").await.ok().text();
    assert!(page.contains("k6 cannot run this script.") && page.contains("&#60;b&#62;no&#60;/b&#62;"), "{page}");
}

#[tokio::test]
async fn a_busy_agent_checks_no_script_and_an_idle_one_works_again_afterwards() {
    let app = App::start().await;
    let user = app.user().await;
    let mut rack = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let scenario = |text: &str| json!({"name": "mine", "script": text});
    submit(&user, &plan()).await;
    let job = rack.job().await;
    let stored = user.post("/api/v1/scenarios", &scenario("first")).await.ok().json();
    assert_eq!(stored["check"], json!(null), "agents check nothing during a measurement");
    rack.finish(&job, &good()).await;
    let free = async || {
        let checked = user.post("/api/v1/scenarios/mine/check", &()).await;
        (checked.status == StatusCode::OK).then_some(())
    };
    app.until("a free agent", free).await;
    submit(&user, &plan()).await;
    let job = rack.job().await;
    rack.finish(&job, &good()).await;
    app.until("a free agent", free).await;

    // An agent that disconnects without an answer blocks no request.
    let second = scenario("silent");
    let disconnect = async {
        rack.inspection_requested().await;
        rack.disconnect();
    };
    let (answer, ()) = tokio::join!(user.post("/api/v1/scenarios", &second), disconnect);
    assert_eq!(answer.ok().json()["check"], json!(null));
}

#[tokio::test]
async fn a_scenario_cannot_leave_its_folder_or_set_the_agents_environment() {
    let app = App::start().await;
    let user = app.user().await;
    let bad = [
        (json!({"name": "x", "script": " \n"}), "script"),
        (json!({"name": "x", "script": "1", "files": {"../../etc/passwd": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"/etc/passwd": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"a\\b": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"a": "", "A": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"a": "", "a/b": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"script.js": ""}}), "script"),
        (json!({"name": "x", "entry": "main.ts", "files": {"main.js": ""}}), "files"),
        (json!({"name": "x", "script": "1", "files": {"": ""}}), "files"),
        (json!({"name": "x", "script": "1", "defaults": {"K6_OUT": "json"}}), "defaults"),
        (json!({"name": "x", "script": "1", "defaults": {"BASE_URL": "http://elsewhere"}}), "defaults"),
        (json!({"name": "x", "script": "1", "defaults": {"A=B": "c"}}), "defaults"),
        (json!({"name": "a\nb", "script": "1"}), "name"),
    ];
    for (scenario, field) in bad {
        let error = user.post("/api/v1/scenarios", &scenario).await.refused(422);
        assert!(error.starts_with(field), "{scenario}: {error}");
    }
    user.get("/api/v1/scenarios/x").await.refused(404);
}

#[tokio::test]
async fn two_files_of_one_name_are_refused() {
    let app = App::start().await;
    let user = app.user().await;
    let twice = r#"{"name": "x", "script": "1", "files": {"common.js": "1", "common.js": "2"}}"#;
    let request = user.request(&Method::POST, "/api/v1/scenarios").header("content-type", "application/json");
    let refused = Answer::to(request.body(twice)).await.refused(422);
    assert!(refused.contains("\"common.js\" occurs twice"), "{refused}");

    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    for (name, text) in [("s/x.js", "export default function () {}"), ("one/common.js", "1"), ("two/common.js", "2")] {
        let path = file(name);
        let parent = std::path::Path::new(&path).parent().expect("a folder").to_owned();
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text)).expect("a file");
    }
    let (script, one, two) = (file("s/x.js"), file("one/common.js"), file("two/common.js"));
    let command = ["scenario", "add", &script, "--file", &one, "--file", &two];
    let refused = as_user(&app, user.secret(), &command).await.refused(1);
    assert!(refused.contains(&format!("{two} and another file are both \"common.js\"")), "{refused}");
    user.get("/api/v1/scenarios/x").await.refused(404);
}

#[tokio::test]
async fn variables_that_a_script_reads_are_its_parameters() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let script = "const { SIZE = '1k' } = __ENV; http.get(`${__ENV.BASE_URL}${__ENV.ROUTE}`); __ENV['K6_X'];";
    let added = json!({"name": "routes", "script": script, "defaults": {"DEPTH": "1"}});
    user.post("/api/v1/scenarios", &added).await.ok();
    let page = user.clone().in_browser().get("/scenarios/routes").await.ok().text();
    for name in ["ROUTE", "SIZE"] {
        assert!(page.contains(&format!("{name}</dt><dd class=\"soft\">no default</dd>")), "{page}");
    }
    let plan = |parameters: Value| plan_with(&json!({"scenario": "routes", "parameters": parameters}));
    for (parameters, expected) in [
        (json!({"ROUT": "/x"}), "parameters: \"routes\" has no parameter \"ROUT\"; it has DEPTH, ROUTE, SIZE"),
        (
            json!({"K6_X": "1"}),
            "parameters: \"K6_X\" is not a parameter name: k6 reads variables that begin with K6_ as its own options",
        ),
        (
            json!({"BASE_URL": "x"}),
            "parameters: \"BASE_URL\" is not a parameter name: it is the target's address, which each run sets",
        ),
    ] {
        assert_eq!(user.post("/api/v1/experiments", &plan(parameters)).await.refused(422), expected);
    }
    submit(&user, &plan(json!({"ROUTE": "/x"}))).await;
    let job = agent.job().await;
    assert_eq!(job.spec.parameters.get("ROUTE").map(String::as_str), Some("/x"));
}

#[tokio::test]
async fn targets_stay_listed_when_their_agent_disconnects() {
    let app = App::start().await;
    let reader = app.reader().await;
    let mut agent = Agent::start(&app, "rack").await;
    agent.disconnect();
    let away = app.until("the agent to disconnect", async || {
        let list = reader.get("/api/v1/agents").await.ok().json();
        Some(list["agents"][0].clone()).filter(|agent| agent["connected"] == false)
    });
    let away = away.await;
    assert_eq!((&away["name"], &away["about"]["cores"]), (&json!("rack"), &json!(8)));
    let targets = reader.get("/api/v1/targets").await.ok().json();
    let names: Vec<_> = targets["targets"].as_array().expect("a list").iter().map(|one| text(&one["name"])).collect();
    assert_eq!(names, ["fast", "slow"]);
}
