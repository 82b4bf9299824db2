//! Experiments that measure a baseline again, next to its candidate.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Agent, App,
        program::as_user,
        submit::{plan_with, submit, text, vus},
        summaries::good,
    },
    new_run::fill_in,
};

/// Measures `fast` 1.0 and stores it as the baseline `main`; returns the experiment.
async fn measure_baseline(user: &Actor, agent: &mut Agent) -> String {
    let (experiment, runs) = submit(user, &plan_with(&json!({"repetitions": 2}))).await;
    for _ in &runs {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    user.put("/api/v1/baselines/main", &json!({"experiments": [experiment]})).await.ok();
    experiment
}

fn plan_against(changes: &Value) -> Value {
    let mut plan = json!({"against": "main", "targets": ["slow"], "repetitions": 2, "warm_up_s": 0.0});
    for (name, value) in changes.as_object().expect("fields") {
        plan[name] = value.clone();
    }
    plan
}

fn targets(runs: &Value) -> Vec<String> {
    let mut all: Vec<String> = runs.as_array().expect("runs").iter().map(|run| text(&run["target"])).collect();
    all.sort();
    all
}

#[tokio::test]
async fn the_baseline_is_measured_again_in_turn_with_the_candidate() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let experiment = measure_baseline(&user, &mut agent).await;
    let created = user.post("/api/v1/experiments", &plan_against(&json!({}))).await.ok().json();
    assert_eq!(targets(&created["runs"]), ["fast", "fast", "slow", "slow"]);
    let plan = &created["experiment"]["plan"];
    assert_eq!((&plan["targets"], &plan["against"]), (&json!(["fast", "slow"]), &json!("main")));
    assert_eq!((&plan["sizes"], &plan["scenario"]), (&json!(["1 vCPU / 256 MiB"]), &json!("hash")));
    assert_eq!((&plan["loads"], &plan["agent"]), (&json!([vus(2, 1.0)]), &json!(null)));
    for _ in 0..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let id = text(&created["experiment"]["id"]);
    let page = user.clone().in_browser().get(&format!("/experiments/{id}")).await.ok().text();
    assert!(page.contains("baseline main measured again"), "{page}");
    // The gate compares both sides of the experiment.
    let gate = format!(
        "/api/v1/compare/gate?baseline={id}&candidate={id}&baseline_target=fast&candidate_target=slow&fail_on=rps%3C-5%25"
    );
    let gate = user.get(&gate).await.ok().json();
    assert_eq!(gate["checks"][0]["repetitions"], json!([2, 2]), "{gate}");
    // An experiment can be named instead of a baseline.
    let created = user.post("/api/v1/experiments", &plan_against(&json!({"against": experiment}))).await.ok().json();
    assert_eq!(targets(&created["runs"]), ["fast", "fast", "slow", "slow"]);
}

#[tokio::test]
async fn a_plan_that_differs_from_the_baseline_is_refused_with_the_difference() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measure_baseline(&user, &mut agent).await;
    for (changes, expected) in [
        (json!({"targets": ["fast"]}), "targets: name a candidate; \"main\" already contains fast"),
        (json!({"against": "other"}), "against: baseline \"other\" does not exist"),
        (json!({"sizes": ["2/4GiB"]}), "sizes: \"main\" was measured with 1 vCPU / 256 MiB, not with 2 vCPU / 4 GiB"),
        (json!({"scenario": "site-mix"}), "scenario: \"main\" was measured with hash, not with site-mix"),
        (json!({"loads": [vus(3, 1.0)]}), "loads: \"main\" was measured with 2 VUs, 1 s, not with 3 VUs, 1 s"),
    ] {
        let error = user.post("/api/v1/experiments", &plan_against(&changes)).await.refused(422);
        assert!(error.contains(expected), "{error}");
    }
    let same = json!({"sizes": ["1/256MiB"], "scenario": "hash", "load": vus(2, 1.0)});
    user.post("/api/v1/experiments", &plan_against(&same)).await.ok();
    // Without a baseline, omitted fields have no defaults.
    let error =
        user.post("/api/v1/experiments", &json!({"targets": ["fast"], "sizes": ["1/256MiB"]})).await.refused(422);
    assert!(error.contains("scenario: name one"), "{error}");
}

#[tokio::test]
async fn only_the_version_of_the_baseline_is_measured_again() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measure_baseline(&user, &mut agent).await;
    let newer = |hello: &mut brewbench_wire::messages::Hello| hello.targets[0].version = "1.1".to_owned();
    let _other = Agent::start_with(&app, "attic", newer).await;
    // If another agent offers another version, the plan names the agent with the baseline's.
    let created = user.post("/api/v1/experiments", &plan_against(&json!({}))).await.ok().json();
    assert_eq!(created["experiment"]["plan"]["agent"], "rack");
    let error = user.post("/api/v1/experiments", &plan_against(&json!({"agent": "attic"}))).await.refused(409);
    assert_eq!(
        error,
        "against: no connected agent offers fast@1.0 of \"main\"; offered: fast@1.1, slow@1.0; to measure two \
         versions side by side, offer each under its own name"
    );
    let error = user.post("/api/v1/experiments", &plan_against(&json!({"spread": true}))).await.refused(409);
    assert!(error.starts_with("spread: attic offers another version"), "{error}");
}

#[tokio::test]
async fn the_command_and_the_form_submit_the_same_plan() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measure_baseline(&user, &mut agent).await;
    let arguments = ["run", "new", "--against", "main", "--target", "slow", "--repeat", "3", "--json"];
    let created = as_user(&app, user.secret(), &arguments).await.json();
    assert_eq!(
        (created["runs"].as_array().map(Vec::len), &created["experiment"]["plan"]["against"]),
        (Some(6), &json!("main"))
    );
    let refused = [&arguments[..], &["--vus", "9", "--duration", "1s"]].concat();
    let error = as_user(&app, user.secret(), &refused).await.refused(1);
    assert!(error.contains("not with 9 VUs, 1 s"), "{error}");

    let user = user.in_browser();
    let page = user.get("/baselines/main").await.ok().text();
    assert!(page.contains(r#"href="/experiments/new?against=main""#), "{page}");
    let filled = user.get("/experiments/new?against=main&target=slow").await;
    let query = filled.header("location").strip_prefix("/experiments/new?").expect("the form").to_owned();
    for part in ["target=fast&target=slow&against=main", "size=1+vCPU+%2F+256+MiB", "vus=2&duration=1s"] {
        assert!(query.contains(part), "{query}");
    }
    let form = user.get(&format!("/experiments/new?{query}")).await.ok().text();
    assert!(form.contains("<option value=\"main\" selected>") && form.contains("10 runs"), "{form}");
    let created = fill_in(&user, "/experiments/new", &query).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text());
    // Without a candidate the form shows the error.
    let alone = user.get("/experiments/new?against=main").await;
    let shown = user.get(alone.header("location")).await.ok().text();
    assert!(shown.contains("name a candidate"), "{shown}");
    let unknown = user.get("/experiments/new?against=unknown&target=slow").await.ok().text();
    assert!(unknown.contains("does not exist"), "{unknown}");
}
