//! A baseline that is measured again next to its candidate, in one experiment.

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

/// Has an agent measure `fast` in its version 1.0 and makes that the baseline `main`.
async fn measured(user: &Actor, agent: &mut Agent) -> String {
    let (experiment, runs) = submit(user, &plan_with(&json!({"repetitions": 2}))).await;
    for _ in &runs {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    user.put("/api/v1/baselines/main", &json!({"experiments": [experiment]})).await.ok();
    experiment
}

fn against(changes: &Value) -> Value {
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
    let experiment = measured(&user, &mut agent).await;
    let made = user.post("/api/v1/experiments", &against(&json!({}))).await.ok().json();
    assert_eq!(targets(&made["runs"]), ["fast", "fast", "slow", "slow"]);
    let plan = &made["experiment"]["plan"];
    assert_eq!((&plan["targets"], &plan["against"]), (&json!(["fast", "slow"]), &json!("main")));
    assert_eq!((&plan["sizes"], &plan["scenario"]), (&json!(["1 vCPU / 256 MiB"]), &json!("hash")));
    assert_eq!((&plan["loads"], &plan["agent"]), (&json!([vus(2, 1.0)]), &json!(null)));
    for _ in 0..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let id = text(&made["experiment"]["id"]);
    let page = user.clone().at_pages().get(&format!("/experiments/{id}")).await.ok().text();
    assert!(page.contains("next to the baseline main, measured again"), "{page}");
    // The gate holds both sides of the one experiment against each other.
    let gate = format!(
        "/api/v1/compare/gate?baseline={id}&candidate={id}&baseline_target=fast&candidate_target=slow&fail_on=rps%3C-5%25"
    );
    let gate = user.get(&gate).await.ok().json();
    assert_eq!(gate["checks"][0]["repetitions"], json!([2, 2]), "{gate}");
    // An experiment stands for itself as well as a baseline does.
    let made = user.post("/api/v1/experiments", &against(&json!({"against": experiment}))).await.ok().json();
    assert_eq!(targets(&made["runs"]), ["fast", "fast", "slow", "slow"]);
}

#[tokio::test]
async fn what_cannot_be_measured_next_to_it_is_refused_with_what_differs() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measured(&user, &mut agent).await;
    for (changes, sentence) in [
        (json!({"targets": ["fast"]}), "targets: name a candidate; \"main\" has fast already"),
        (json!({"against": "other"}), "against: there is no baseline \"other\""),
        (json!({"sizes": ["2/4GiB"]}), "sizes: \"main\" was measured with 1 vCPU / 256 MiB, not with 2 vCPU / 4 GiB"),
        (json!({"scenario": "site-mix"}), "scenario: \"main\" was measured with hash, not with site-mix"),
        (json!({"loads": [vus(3, 1.0)]}), "loads: \"main\" was measured with 2 VUs, 1 s, not with 3 VUs, 1 s"),
    ] {
        let told = user.post("/api/v1/experiments", &against(&changes)).await.refused(422);
        assert!(told.contains(sentence), "{told}");
    }
    let same = json!({"sizes": ["1/256MiB"], "scenario": "hash", "load": vus(2, 1.0)});
    user.post("/api/v1/experiments", &against(&same)).await.ok();
    // Without a baseline nothing stands in for what is left out.
    let told =
        user.post("/api/v1/experiments", &json!({"targets": ["fast"], "sizes": ["1/256MiB"]})).await.refused(422);
    assert!(told.contains("scenario: name one"), "{told}");
}

#[tokio::test]
async fn only_the_version_of_the_baseline_stands_in_for_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measured(&user, &mut agent).await;
    let newer = |hello: &mut brewbench_agent::wire::messages::Hello| hello.targets[0].version = "1.1".to_owned();
    let _other = Agent::start_with(&app, "attic", newer).await;
    // Where another agent would measure another version, the right one is named.
    let made = user.post("/api/v1/experiments", &against(&json!({}))).await.ok().json();
    assert_eq!(made["experiment"]["plan"]["agent"], "rack");
    let told = user.post("/api/v1/experiments", &against(&json!({"agent": "attic"}))).await.refused(409);
    assert_eq!(
        told,
        "against: fast@1.0 of \"main\" is offered by no connected agent; offered: fast@1.1, slow@1.0; to measure two \
         versions in turn, offer each under a name of its own"
    );
    let told = user.post("/api/v1/experiments", &against(&json!({"spread": true}))).await.refused(409);
    assert!(told.starts_with("spread: attic offers another version"), "{told}");
}

#[tokio::test]
async fn the_command_and_the_form_do_the_same() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    measured(&user, &mut agent).await;
    let arguments = ["run", "new", "--against", "main", "--target", "slow", "--repeat", "3", "--json"];
    let made = as_user(&app, user.secret(), &arguments).await.json();
    assert_eq!(
        (made["runs"].as_array().map(Vec::len), &made["experiment"]["plan"]["against"]),
        (Some(6), &json!("main"))
    );
    let refused = [&arguments[..], &["--vus", "9", "--duration", "1s"]].concat();
    let told = as_user(&app, user.secret(), &refused).await.refused(1);
    assert!(told.contains("not with 9 VUs, 1 s"), "{told}");

    let user = user.at_pages();
    let page = user.get("/baselines/main").await.ok().text();
    assert!(page.contains(r#"href="/experiments/new?against=main""#), "{page}");
    let filled = user.get("/experiments/new?against=main&target=slow").await;
    let query = filled.header("location").strip_prefix("/experiments/new?").expect("the form").to_owned();
    for part in ["target=fast&target=slow&against=main", "size=1+vCPU+%2F+256+MiB", "vus=2&duration=1s"] {
        assert!(query.contains(part), "{query}");
    }
    let form = user.get(&format!("/experiments/new?{query}")).await.ok().text();
    assert!(form.contains("<option value=\"main\" selected>") && form.contains("10 runs"), "{form}");
    let made = fill_in(&user, "/experiments/new", &query).await;
    assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text());
    // Without a candidate the form says so, and what was not asked for stays as it was.
    let alone = user.get("/experiments/new?against=main").await;
    let shown = user.get(alone.header("location")).await.ok().text();
    assert!(shown.contains("name a candidate"), "{shown}");
    let unknown = user.get("/experiments/new?against=nobody&target=slow").await.ok().text();
    assert!(unknown.contains("there is no baseline"), "{unknown}");
}
