//! Pages that update without being reloaded.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_wire::Phase;
use serde_json::json;

use super::{Tab, two_targets, wait_for_chart};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit, submit_one},
    summaries::good,
};

/// Starts a server whose leases do not expire while a browser is slow.
async fn start() -> App {
    App::with(|config| config.lease = Duration::from_mins(10)).await
}

/// Sets a variable that a reload of the page removes.
async fn mark(tab: &Tab) {
    tab.eval::<bool>("window.same = true").await;
}

async fn assert_not_reloaded(tab: &Tab) {
    assert!(tab.eval::<bool>("window.same === true").await, "the page was reloaded");
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn the_page_of_a_run_updates_from_the_queue_to_its_charts() {
    let app = start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    // The agent is busy with another run.
    let before = submit_one(&user).await;
    let first = agent.job().await;
    let id = submit_one(&user).await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go(&format!("/runs/{id}")).await;
    mark(&tab).await;
    tab.shows("main h2", "Waiting for an agent.").await;
    assert_eq!(first.run.to_string(), before);
    agent.finish(&first, &good()).await;
    let job = agent.job().await;
    tab.shows("main h2", "Assigned to an agent.").await;
    for (phase, sentence) in [
        (Phase::Preparing, "The agent starts the target in its sandbox and waits until the machine is idle."),
        (Phase::WarmingUp, "The target is warmed up"),
        (Phase::Measuring, "The load is measured."),
        (Phase::Collecting, "The agent collects the results."),
    ] {
        agent.enter(job.run, phase);
        tab.shows("main h2", sentence).await;
    }
    agent.finish(&job, &good()).await;
    wait_for_chart(&tab, "run-latency").await;
    tab.shows(".cards", "17,070").await;
    tab.until("!document.querySelector('#follow')").await;
    assert_not_reloaded(&tab).await;
}

#[tokio::test]
async fn the_history_updates_during_an_experiment_and_keeps_the_selection() {
    let app = start().await;
    let ids = two_targets(&app).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/runs").await;
    mark(&tab).await;
    let oldest = format!("input[value='{}']", ids[5]);
    tab.click(&oldest).await;

    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    tab.shows("#unfinished", "1 running, 1 queued").await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Measuring);
    tab.shows(&format!("#unfinished #run-{}", runs[0]), "measuring").await;
    agent.finish(&job, &good()).await;
    let second = "document.querySelectorAll('#choice tbody tr')[1].id";
    tab.until(&format!("{second} === 'run-{}'", runs[0])).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    tab.until(&format!("{second} === 'cell-{}'", runs[1])).await;
    tab.until("document.querySelector('#unfinished').hidden").await;
    let ticked: Vec<String> =
        tab.eval("[...document.querySelectorAll('#choice :checked')].map((box) => box.value)").await;
    assert_eq!(ticked, [ids[5].clone()]);
    assert_not_reloaded(&tab).await;

    // The experiment opens and closes, and the selection stays.
    tab.click("#choice .expand").await;
    tab.until(&format!("document.querySelector('#choice #run-{}') !== null", runs[0])).await;
    tab.until(&format!("document.querySelector(\"{oldest}\")?.checked")).await;
    for id in &runs {
        tab.click(&format!("input[value='{id}']")).await;
    }
    tab.click("#choice .expand").await;
    tab.until(&format!("document.querySelector('#cell-{} input')?.checked", runs[1])).await;
    assert!(tab.eval::<bool>(&format!("document.querySelector('#choice #run-{}') === null", runs[0])).await);
}

#[tokio::test]
async fn the_page_of_an_experiment_extends_its_comparison() {
    let app = start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, _) = submit(&user, &plan_with(&json!({"targets": ["fast", "slow"]}))).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go(&format!("/experiments/{experiment}")).await;
    mark(&tab).await;
    tab.shows("#comparison", "No result yet").await;
    for done in 1..=2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
        wait_for_chart(&tab, "throughput").await;
        tab.until(&format!("document.querySelectorAll('#throughput svg .trace.bars').length === {done}")).await;
    }
    tab.until("document.querySelector('#progress').hidden").await;
    assert_not_reloaded(&tab).await;
}
