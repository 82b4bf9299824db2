//! Pages without JavaScript: everything is readable, and runs can be compared.

use brewbench::auth::model::Role;
use brewbench_wire::outcome::Outcome;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::{Tab, two_targets};
use crate::harness::{Agent, App, agent::outcome, submit::submit_one, summaries::good};

#[tokio::test]
async fn without_javascript_tables_are_shown_and_runs_can_be_compared() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/runs").await;
    tab.click(&format!("input[value='{}']", ids[0])).await;
    tab.click(&format!("input[value='{}']", ids[3])).await;
    tab.click(".choice button").await;
    tab.wait_for_path(&format!("/compare?runs={}&runs={}", ids[0], ids[3])).await;
    tab.shows("main table", "17,070").await;
    tab.shows("figure noscript", "Charts need JavaScript. The table has the same data.").await;
    tab.click("#all-repetitions summary").await;
    tab.click(&format!("a[href='/runs/{}']", ids[3])).await;
    tab.wait_for_path(&format!("/runs/{}", ids[3])).await;
    tab.click("#counters > summary").await;
    tab.shows("main table", "http_req_duration").await;
    let drawn: usize = tab.eval("document.querySelectorAll('.js-plotly-plot').length").await;
    assert_eq!(drawn, 0, "scripts are disabled");
    tab.assert_no_errors().await;

    tab.go("/login").await;
    tab.shows("noscript", "Passkeys need JavaScript.").await;
}

#[tokio::test]
async fn without_javascript_logs_are_searched_and_metrics_are_explained() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let target_log = "listening\nERROR: full\nbye\n".to_owned();
    agent.end(Outcome { target_log, ..outcome(&job, &good()) }).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go(&format!("/runs/{id}")).await;
    tab.click("#logs > summary").await;
    tab.click("#log-search").await;
    tab.type_text("error").await;
    tab.press("Enter").await;
    tab.until(&format!("location.pathname + location.search + location.hash === '/runs/{id}?log=error#logs'")).await;
    tab.shows("#target-log-found", "ERROR: full").await;
    tab.shows("#logs", "1 of 3 lines").await;

    tab.click("#results .term").await;
    tab.until("document.querySelector('#about-rps').matches(':popover-open')").await;
    tab.shows("#about-rps", "requests/s, higher is better").await;
    tab.press("Escape").await;
    tab.until("!document.querySelector('#about-rps').matches(':popover-open')").await;
    // The keyboard opens it, too: the focus is back on the button.
    tab.press("Enter").await;
    tab.until("document.querySelector('#about-rps').matches(':popover-open')").await;
    tab.assert_no_errors().await;
}
