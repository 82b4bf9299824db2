//! The page of a run draws on while the run goes on.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_agent::wire::{Phase, RunId, messages::AgentMessage, series::Part};

use super::{Tab, is_drawn};
use crate::harness::{Agent, App, series::portion, submit::submit_one, summaries::good};

fn tell(agent: &Agent, run: RunId, part: Part, seconds: std::ops::RangeInclusive<u32>) {
    agent.say(&AgentMessage::Series(Box::new(portion(run, part, seconds))));
}

/// Waits until the curves have points at whole seconds from 1, once each; where warm-up and measurement meet, there is
/// a gap.
async fn draws(tab: &Tab, last: u32) {
    let data = |chart: &str| format!("document.querySelector('#{chart} .js-plotly-plot')?.data");
    let ends = "(data) => data?.[0].x.filter((x, place) => data[0].y[place] !== null).join()";
    let expected: Vec<String> = (1..=last).map(|second| second.to_string()).collect();
    let (rate, expected) = (data("run-rate"), expected.join(","));
    tab.until(&format!("({ends})({rate}) === '{expected}'")).await;
    // The same on the chart that has a column a second, and on one of what was used.
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
async fn points_come_onto_the_page_and_none_is_doubled_when_the_server_was_started_anew() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::WarmingUp);
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go(&format!("/runs/{id}")).await;
    tab.eval::<bool>("window.same = true").await;
    tab.says("#doing h2", "k6 warms the target up").await;
    tell(&agent, job.run, Part::WarmUp, 1..=1);
    draws(&tab, 1).await;
    tell(&agent, job.run, Part::WarmUp, 2..=3);
    draws(&tab, 3).await;
    agent.enter(job.run, Phase::Measuring);
    tell(&agent, job.run, Part::Measured, 1..=1);
    draws(&tab, 4).await;
    for second in 2..=5 {
        tell(&agent, job.run, Part::Measured, second..=second);
        draws(&tab, 3 + second).await;
    }
    tab.says("#doing", "1,000\u{a0}requests/s").await;
    // Whoever comes late has the past at once.
    let late = Tab::of(&app, Role::Viewer).await;
    late.go(&format!("/runs/{id}")).await;
    draws(&late, 8).await;

    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| {
        config.listen.set_port(port);
        config.lease = Duration::from_mins(10);
    })
    .await;
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.dial(&app).await.expect("a welcome");
    tell(&agent, job.run, Part::WarmUp, 1..=3);
    tell(&agent, job.run, Part::Measured, 1..=4);
    tell(&agent, job.run, Part::Measured, 5..=6);
    for tab in [&tab, &late] {
        draws(tab, 9).await;
        assert!(tab.eval::<bool>("document.querySelector('#news').childElementCount === 0").await);
    }
    // In the tenth second all charts are drawn anew, and then they grow again.
    for second in 7..=12 {
        tell(&agent, job.run, Part::Measured, second..=second);
        draws(&tab, 3 + second).await;
    }
    tab.until("document.querySelectorAll('#seconds-of-run tbody tr').length >= 13").await;
    assert!(tab.eval::<bool>("window.same === true").await, "the page was loaded again");

    agent.finish(&job, &good()).await;
    is_drawn(&tab, "run-latency").await;
    tab.until("!document.querySelector('#follow') && !document.querySelector('#doing')").await;
    // The server was away for a moment, of which the browser complains by itself; nothing else is wrong.
    let complaints = tab.complaints();
    assert!(complaints.iter().all(|said| said.contains("net::ERR")), "{complaints:#?}");
}
