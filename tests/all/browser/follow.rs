//! Pages that follow what happens, without being loaded again.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_agent::wire::Phase;
use serde_json::json;

use super::{Tab, is_drawn, two_targets};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit, submit_one},
    summaries::good,
};

/// No lease runs out while a browser takes its time.
async fn patient() -> App {
    App::with(|config| config.lease = Duration::from_mins(10)).await
}

/// Puts a mark on the page that only its reload would take away.
async fn mark(tab: &Tab) {
    tab.eval::<bool>("window.same = true").await;
}

async fn is_the_same(tab: &Tab) {
    assert!(tab.eval::<bool>("window.same === true").await, "the page was loaded again");
    tab.is_quiet().await;
}

#[tokio::test]
async fn the_page_of_a_run_follows_it_from_the_queue_to_its_charts() {
    let app = patient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    // Another has the agent first.
    let before = submit_one(&user).await;
    let first = agent.job().await;
    let id = submit_one(&user).await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go(&format!("/runs/{id}")).await;
    mark(&tab).await;
    tab.says("main h2", "It waits for an agent.").await;
    assert_eq!(first.run.to_string(), before);
    agent.finish(&first, &good()).await;
    let job = agent.job().await;
    tab.says("main h2", "An agent was told to do it.").await;
    for (phase, sentence) in [
        (Phase::Preparing, "The agent starts the target in its sandbox and waits until the machine is quiet."),
        (Phase::WarmingUp, "k6 warms the target up"),
        (Phase::Measuring, "k6 measures."),
        (Phase::Collecting, "The agent gathers the results."),
    ] {
        agent.enter(job.run, phase);
        tab.says("main h2", sentence).await;
    }
    agent.finish(&job, &good()).await;
    is_drawn(&tab, "run-latency").await;
    tab.says(".cards", "17,070").await;
    tab.until("!document.querySelector('#follow')").await;
    is_the_same(&tab).await;
}

#[tokio::test]
async fn the_history_follows_an_experiment_and_keeps_what_is_ticked() {
    let app = patient().await;
    let ids = two_targets(&app).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go("/runs").await;
    mark(&tab).await;
    let oldest = format!("input[value='{}']", ids[5]);
    tab.click(&oldest).await;

    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    tab.says("#unfinished", "1 running, 1 waiting").await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Measuring);
    tab.says(&format!("#unfinished #run-{}", runs[0]), "measuring").await;
    agent.finish(&job, &good()).await;
    tab.until(&format!("document.querySelector('#choice tbody tr').id === 'run-{}'", runs[0])).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    tab.until(&format!("document.querySelector('#choice tbody tr').id === 'run-{}'", runs[1])).await;
    tab.until("document.querySelector('#unfinished').hidden").await;
    let ticked: Vec<String> =
        tab.eval("[...document.querySelectorAll('#choice :checked')].map((box) => box.value)").await;
    assert_eq!(ticked, [ids[5].clone()]);
    is_the_same(&tab).await;
}

#[tokio::test]
async fn the_page_of_an_experiment_grows_its_comparison() {
    let app = patient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, _) = submit(&user, &plan_with(&json!({"targets": ["fast", "slow"]}))).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go(&format!("/experiments/{experiment}")).await;
    mark(&tab).await;
    tab.says("#comparison", "The comparison begins with the first run that ends.").await;
    for done in 1..=2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
        is_drawn(&tab, "throughput").await;
        tab.until(&format!("document.querySelectorAll('#throughput svg .trace.bars').length === {done}")).await;
    }
    tab.until("document.querySelector('#progress').hidden").await;
    is_the_same(&tab).await;
}
