//! The dashboard while agents connect and runs are measured: it updates without being reloaded, and does not jump.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_wire::{Phase, messages::AgentMessage, series::WindowKind};
use serde_json::json;

use super::Tab;
use crate::harness::{
    Agent, App,
    series::delta,
    submit::{plan_with, submit},
    summaries::{good, scaled},
};

/// The largest layout shift of a good page.
const GOOD_SHIFT: f64 = 0.05;

/// Adds up layout shifts from now on.
const OBSERVE: &str = "window.shift = 0; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.shift += entry.value; }).observe({type: 'layout-shift'}); true";

/// Starts a server that keeps its agents while a browser is slow.
async fn start() -> App {
    App::with(|config| {
        config.lease = Duration::from_mins(10);
        config.silence = Duration::from_mins(10);
    })
    .await
}

#[tokio::test]
async fn the_first_steps_are_checked_off_while_the_page_is_open() {
    let app = start().await;
    let user = app.user().await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/").await;
    tab.eval::<bool>("window.same = true").await;
    tab.shows("#steps", "0 of 3").await;
    let mut agent = Agent::start(&app, "rack").await;
    tab.shows("#steps", "2 of 3").await;
    tab.shows("#steps .done", "Agent connected: rack").await;
    tab.shows("#steps .done", "2 targets found").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 1}));
    agent.disconnect();
    tab.shows("#steps", "Connect an agent").await;
    agent.connect(&app).await.expect("a welcome");
    tab.shows("#steps", "2 of 3").await;
    submit(&user, &plan).await;
    tab.until("!document.querySelector('#steps')").await;
    for faster in [1.0, 0.9] {
        let job = agent.job().await;
        agent.finish(&job, &scaled(faster)).await;
    }
    tab.shows("#home .lead", "2 runs in 1 experiment finished.").await;
    agent.disconnect();
    tab.shows("#attention", "rack is disconnected").await;
    assert!(tab.eval::<bool>("window.same === true").await, "the page was reloaded");
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_run_in_progress_is_drawn_live_without_moving_the_page() {
    let app = start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    // The page of a site in use.
    submit(&user, &plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 1}))).await;
    for _ in 0..2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/").await;
    tab.until("!document.querySelector('#running .live-bar')").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2, "name": "night"}));
    let (experiment, _) = submit(&user, &plan).await;
    let job = agent.job().await;
    tab.shows("#running", "night").await;
    tab.shows("#running", "0 of 4").await;
    agent.enter(job.run, Phase::WarmingUp);
    let send = |part, seconds| agent.send_message(&AgentMessage::Series(Box::new(delta(job.run, part, seconds))));
    send(WindowKind::WarmUp, 1..=3);
    agent.enter(job.run, Phase::Measuring);
    send(WindowKind::Measured, 1..=4);
    let race = format!("#race-{experiment}");
    tab.shows(&race, "now 1,000\u{a0}requests/s").await;
    tab.shows(&race, "no run yet").await;
    tab.until(&format!("document.querySelectorAll('{race} .lane rect').length === 1")).await;
    send(WindowKind::Measured, 5..=5);
    tab.shows("#running", "repetition 1 · measuring").await;
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (390, "light")] {
        tab.set_width(width).await;
        tab.set_scheme(scheme).await;
        tab.screenshot(&format!("dashboard-running-{width}-{scheme}")).await;
    }
    tab.set_width(1440).await;
    agent.finish(&job, &good()).await;
    tab.shows(&race, "17,070\u{a0}requests/s in 1 run").await;
    tab.shows("#running", "1 of 4").await;
    for _ in 1..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    tab.until(&format!("!document.querySelector('#running .live-bar, {race}')")).await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn the_dashboard_reserves_the_space_of_what_appears() {
    let app = start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    submit(&user, &plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 1}))).await;
    for _ in 0..2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    for width in [1440, 390] {
        let tab = Tab::signed_in(&app, Role::Viewer).await;
        tab.set_width(width).await;
        tab.go("/").await;
        tab.until("!!document.querySelector('#running') && !document.querySelector('.live-bar')").await;
        tab.eval::<bool>(OBSERVE).await;
        submit(&user, &plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 1}))).await;
        let job = agent.job().await;
        tab.until("!!document.querySelector('.live-bar') && !!document.querySelector('.race')").await;
        agent.enter(job.run, Phase::Measuring);
        agent.send_message(&AgentMessage::Series(Box::new(delta(job.run, WindowKind::Measured, 1..=4))));
        tab.until("document.querySelectorAll('.lane rect').length === 1").await;
        let shift: f64 = tab.eval("window.shift").await;
        println!("{width} px: layout shift {shift}");
        assert!(shift < GOOD_SHIFT, "{width} px: layout shift {shift}");
        agent.finish(&job, &good()).await;
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
        tab.until("!document.querySelector('.live-bar')").await;
    }
}
