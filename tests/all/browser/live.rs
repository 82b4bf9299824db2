//! Live charts on the page of a run, and the current run on the page of its experiment.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_wire::{Phase, RunId, messages::AgentMessage, series::WindowKind};

use serde_json::json;

use super::{Tab, wait_for_chart};
use crate::harness::{
    Agent, App,
    series::delta,
    submit::{plan_with, submit, submit_one},
    summaries::{good, scaled},
};

fn send_seconds(agent: &Agent, run: RunId, part: WindowKind, seconds: std::ops::RangeInclusive<u32>) {
    agent.send_message(&AgentMessage::Series(Box::new(delta(run, part, seconds))));
}

/// Waits until the curves have one point per second; between warm-up and measurement there is a gap. Opens all charts.
async fn wait_for_points(tab: &Tab, last: u32) {
    tab.until("document.querySelector('#run-heat')?.closest('details').setAttribute('open', '') === undefined && !!document.querySelector('#run-heat')").await;
    let data = |chart: &str| format!("document.querySelector('#{chart} .js-plotly-plot')?.data");
    let ends = "(data) => data?.[0].x.filter((x, place) => data[0].y[place] !== null).join()";
    let expected: Vec<String> = (1..=last).map(|second| second.to_string()).collect();
    let (rate, expected) = (data("run-rate"), expected.join(","));
    tab.until(&format!("({ends})({rate}) === '{expected}'")).await;
    // The heat map has a column per second; so does a chart of usage.
    let heat = data("run-heat");
    tab.until(&format!(
        "(({{x, y, z, customdata}}) => x.join() === '{expected}' && [z, customdata].every((rows) =>
            rows.length === y.length && rows.every((row) => row.length === {last})))({heat}[0])"
    ))
    .await;
    let cpu = data("run-cpu");
    tab.until(&format!("{cpu}[0].x.at(-1) === {last} && {cpu}.at(-1).x.at(-1) === {last}")).await;
}

#[tokio::test]
async fn points_are_appended_and_not_duplicated_after_a_server_restart() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::WarmingUp);
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go(&format!("/runs/{id}")).await;
    tab.eval::<bool>("window.same = true").await;
    tab.shows("#doing h2", "The target is warmed up").await;
    send_seconds(&agent, job.run, WindowKind::WarmUp, 1..=1);
    wait_for_points(&tab, 1).await;
    send_seconds(&agent, job.run, WindowKind::WarmUp, 2..=3);
    wait_for_points(&tab, 3).await;
    agent.enter(job.run, Phase::Measuring);
    send_seconds(&agent, job.run, WindowKind::Measured, 1..=1);
    wait_for_points(&tab, 4).await;
    for second in 2..=5 {
        send_seconds(&agent, job.run, WindowKind::Measured, second..=second);
        wait_for_points(&tab, 3 + second).await;
    }
    tab.shows("#doing", "1,000\u{a0}requests/s").await;
    // A page opened later shows the earlier points at once.
    let late = Tab::signed_in(&app, Role::Viewer).await;
    late.go(&format!("/runs/{id}")).await;
    wait_for_points(&late, 8).await;

    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| {
        config.listen.set_port(port);
        config.lease = Duration::from_mins(10);
    })
    .await;
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.connect(&app).await.expect("accepted");
    send_seconds(&agent, job.run, WindowKind::WarmUp, 1..=3);
    send_seconds(&agent, job.run, WindowKind::Measured, 1..=4);
    send_seconds(&agent, job.run, WindowKind::Measured, 5..=6);
    for tab in [&tab, &late] {
        wait_for_points(tab, 9).await;
        assert!(tab.eval::<bool>("document.querySelector('#news').childElementCount === 0").await);
    }
    // The tenth second redraws all charts; later ones are appended.
    for second in 7..=12 {
        send_seconds(&agent, job.run, WindowKind::Measured, second..=second);
        wait_for_points(&tab, 3 + second).await;
    }
    tab.until("document.querySelectorAll('#charts tbody tr').length >= 13").await;
    assert!(tab.eval::<bool>("window.same === true").await, "the page was reloaded");

    agent.finish(&job, &good()).await;
    wait_for_chart(&tab, "run-latency").await;
    tab.until("!document.querySelector('#follow') && !document.querySelector('#doing')").await;
    // The browser reports the restart of the server itself; no other error is allowed.
    let errors = tab.errors();
    assert!(errors.iter().all(|error| error.contains("net::ERR")), "{errors:#?}");
}

/// Adds up how far the page has moved without an action of the user.
const OBSERVE_SHIFTS: &str = "(() => {
    window.shifted = 0;
    new PerformanceObserver((list) => {
        for (const shift of list.getEntries()) if (!shift.hadRecentInput) window.shifted += shift.value;
    }).observe({ type: 'layout-shift' });
    return true;
})()";

#[tokio::test]
async fn the_page_of_an_experiment_shows_the_current_run_and_how_intervals_narrow() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let until =
        json!({"targets": ["fast", "slow"], "repetitions": 4, "stopping_rule": {"narrower_than": 0.5, "at_most": 6}});
    let (experiment, runs) = submit(&user, &plan_with(&until)).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go(&format!("/experiments/{experiment}")).await;
    tab.eval::<bool>("window.same = true").await;
    tab.shows("#so-far", "0 of at least 4 repetitions; an interval needs 4").await;

    let job = agent.job().await;
    agent.enter(job.run, Phase::WarmingUp);
    let card = format!("#current-{}", runs[0]);
    tab.shows(&card, "warming up").await;
    tab.eval::<bool>(OBSERVE_SHIFTS).await;
    send_seconds(&agent, job.run, WindowKind::WarmUp, 1..=2);
    let points = |spark: usize| {
        format!("document.querySelectorAll('{card} polyline')[{spark}]?.getAttribute('points').split(' ').length")
    };
    tab.until(&format!("{} === 2 && {} === 2", points(0), points(1))).await;
    agent.enter(job.run, Phase::Measuring);
    tab.shows(&card, "measuring").await;
    tab.shows(&card, "repetition 1 of at most 6").await;
    for second in 1..=3 {
        send_seconds(&agent, job.run, WindowKind::Measured, second..=second);
        tab.until(&format!("{} === {}", points(0), 2 + second)).await;
    }
    tab.shows(&card, "1,000\u{a0}requests/s").await;
    assert!(
        tab.eval::<bool>(&format!("document.querySelector('{card} rect') !== null")).await,
        "the warm-up is shaded"
    );
    let shifted: f64 = tab.eval("window.shifted").await;
    assert!(shifted < 0.01, "the card of the current run moves the page by {shifted}");

    agent.finish(&job, &good()).await;
    let mut shifts = Vec::new();
    for ended in 1..runs.len() {
        tab.shows("#progress", &format!("{ended} of 8 runs ended")).await;
        if ended == 4 {
            tab.shows("#so-far", "2 of at least 4 repetitions; an interval needs 4").await;
            assert!(tab.eval::<bool>("document.querySelector('#so-far :is(.good, .bad)') === null").await);
        }
        let job = agent.job().await;
        tab.until("document.querySelector('#progress .current .target') !== null").await;
        shifts.push(tab.eval::<f64>("[window.shifted, window.shifted = 0][0]").await);
        let speed = if job.spec.target == "fast" { 1.3 } else { 1.0 };
        agent.finish(&job, &scaled(speed * (1.0 + 0.001 * ended as f64))).await;
    }
    // A browser calls a page unstable from 0.1 on.
    assert!(shifts.iter().all(|shifted| *shifted < 0.1), "new results move the page: {shifts:?}");
    tab.shows("#so-far", "narrow enough after 4 repetitions").await;
    tab.shows("#so-far", "wanted: 50%").await;
    tab.until("document.querySelectorAll('#so-far svg.interval rect').length === 1").await;
    tab.until("document.querySelector('#progress').hidden && !document.querySelector('#follow')").await;
    assert!(tab.eval::<bool>("window.same === true").await, "the page was reloaded");
    tab.assert_no_errors().await;
}
